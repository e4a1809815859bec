// A world's records over HTTP: a page, the next ones when they come, or all from now on as
// Server-Sent Events.

#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

constexpr uint64_t kMaxPage = 1000;
constexpr uint64_t kMaxWaitMs = 60'000;
constexpr Time kKeepalive = 15 * kSecond;
// A stream with this many unsent bytes gets no more until its reader has caught up.
constexpr size_t kMaxBuffered = 256 * 1024;
constexpr Time kRetry = 20 * kMillisecond;

std::string sse(std::string_view event, std::optional<uint64_t> id, const json::Value& data) {
  std::string out = "event: " + std::string(event) + "\n";
  if (id) out += "id: " + std::to_string(*id) + "\n";
  return out + "data: " + json::print(data) + "\n\n";
}

}  // namespace

static Result<RecordQuery> query_of(const wire::Request& request) {
  RecordQuery out;
  out.world_id = {request.caller.tenant, request.params.at(0)};
  TRY(out.limit, query_number(request, http::kRecordsQuery["limit"], kMaxPage));
  out.limit = std::max<uint64_t>(1, out.limit);
  out.kinds = kinds_of(request);
  if (request.query_param(http::kRecordsQuery["from"])) {
    TRY(out.from, query_number(request, http::kRecordsQuery["from"], UINT64_MAX));
  }
  return out;
}

static json::Value entries_json(const RecordPage& page) {
  json::Array out;
  for (const auto& [seq, payload] : page.entries)
    out.push_back(record_json(seq, payload));
  return json::Value(std::move(out));
}

// The peer's form for callers that accept application/cbor: each entry as bytes that hold seq, kind
// and payload.
static Bytes page_cbor(const RecordPage& found) {
  Bytes page;
  cbor::Out out(page);
  out.map(4)
      .text("from")
      .uint(found.from)
      .text("retained_from")
      .uint(found.retained_from)
      .text("next_from")
      .uint(found.next);
  out.text("entries").array(found.entries.size());
  for (const auto& [seq, payload] : found.entries) {
    auto record = cbor::decode(payload);
    Bytes entry;
    cbor::Out(entry)
        .map(3)
        .text("seq")
        .uint(seq)
        .text("kind")
        .text(record ? record_kind(*record) : std::string_view())
        .text("payload")
        .bytes(payload);
    out.map(2).text("seq").uint(seq).text("entry_cbor").bytes(entry);
  }
  return page;
}

void HttpRoutes::journal(Request request, Respond respond) {
  auto query = query_of(request);
  if (query && !query->from) query->from = 0;
  auto found = query ? service_.records(*query) : Result<RecordPage>(fail(query.error()));
  if (!found) return respond(refuse(found.error()));
  if (request.header("Accept").find("application/cbor") != std::string_view::npos) {
    wire::Response out;
    out.headers = {{"Content-Type", "application/cbor"}};
    out.body = page_cbor(*found);
    return respond(std::move(out));
  }
  respond(
      wire::json_response(200, json::print(json::object({{"from", found->from},
                                                         {"next_from", found->next},
                                                         {"next_seq", found->next},
                                                         {"head", found->head},
                                                         {"retained_from", found->retained_from},
                                                         {"entries", entries_json(*found)}}))));
}

namespace {

// A long poll: answers when there are records, or when its time is over.
struct RecordWait {
  Service& service;
  RecordQuery query;
  std::optional<uint64_t> requested;  // as the caller gave it
  uint64_t began;
  Time until;
  wire::Respond respond;

  std::optional<Time> operator()(bool stopping) {
    auto found = service.records(query);
    if (!found) {
      respond(HttpRoutes::refuse(found.error()));
      return std::nullopt;
    }
    const Time now = service.followers().now();
    if (found->entries.empty() && !found->gap && !stopping && now < until) {
      // Records of other kinds need not be read again.
      query.from = found->next;
      return found->next < found->head ? now : until;
    }
    respond(wire::json_response(
        200, json::print(json::object(
                 {{"world_id", query.world_id.world},
                  {"requested_from", requested ? json::Value(*requested) : json::Value()},
                  {"from", began},
                  {"next_from", found->next},
                  {"head", found->head},
                  {"retained_from", found->retained_from},
                  {"gap", found->gap},
                  {"timed_out", found->entries.empty() && !found->gap},
                  {"entries", entries_json(*found)}}))));
    return std::nullopt;
  }
};

std::string events_text(const RecordQuery& query, const RecordPage& found) {
  const std::string& world = query.world_id.world;
  std::string out;
  if (found.gap)
    out += sse("gap", {},
               json::object({{"world_id", world},
                             {"requested_from", *query.from},
                             {"retained_from", found.retained_from},
                             {"next_from", found.from}}));
  for (const auto& [seq, payload] : found.entries) {
    json::Object data;
    data.add("world_id", world);
    const json::Value entry = record_json(seq, payload);
    for (const json::Member& m : entry.object())
      data.add(m.name, m.value);
    data.add("next_from", seq + 1);
    out += sse("journal_record", seq, json::Value(std::move(data)));
  }
  if (found.next > found.from)
    out += sse("world_head", found.next - 1,
               json::object({{"world_id", world},
                             {"head", found.head},
                             {"next_from", found.next},
                             {"retained_from", found.retained_from}}));
  return out;
}

// Sends all records from query.from on as Server-Sent Events.
struct RecordStream {
  Service& service;
  RecordQuery query;
  std::shared_ptr<wire::Stream> stream;
  Time keepalive;  // when to say something at the latest

  std::optional<Time> operator()(bool stopping) {
    if (stopping) return end();
    const Time now = service.followers().now();
    if (stream->buffered() > kMaxBuffered) return now + kRetry;
    auto found = service.records(query);
    std::string text = found ? events_text(query, *found)
                             : sse("error", {}, json::object({{"message", found.error().message}}));
    if (text.empty() && now >= keepalive) text = ": keepalive\n\n";
    if (!text.empty()) {
      keepalive = now + kKeepalive;
      if (!stream->write(text)) return std::nullopt;
    }
    if (!found) return end();
    query.from = found->next;
    return found->next < found->head ? now : keepalive;
  }

 private:
  std::optional<Time> end() {
    stream->end();
    return std::nullopt;
  }
};

}  // namespace

void HttpRoutes::journal_wait(Request request, Respond respond) {
  auto query = query_of(request);
  auto timeout = query ? query_number(request, http::kWaitQuery["timeout_ms"], kMaxWaitMs)
                       : Result<uint64_t>(fail(query.error()));
  auto now = timeout ? service_.open_snapshot(query->world_id)
                     : Result<WorldSnapshot>(fail(timeout.error()));
  if (!now) return respond(refuse(now.error()));
  const std::optional<uint64_t> requested = query->from;
  if (!requested) query->from = now->head.height;
  const Time until = service_.followers().now() + static_cast<Time>(*timeout) * kMillisecond;
  const WorldId world_id = query->world_id;
  const uint64_t began = std::max(*query->from, now->world.retained_from);
  service_.followers().add(world_id, RecordWait{service_, std::move(*query), requested, began,
                                                until, std::move(respond)});
}

void HttpRoutes::journal_stream(Request request, Respond respond) {
  auto query = query_of(request);
  if (const std::string_view last = request.header(http::kStreamHeaders["Last-Event-ID"]);
      query && !query->from && !last.empty()) {
    auto id = whole_number(last);
    if (!id)
      return respond(
          refuse(bad_request("Last-Event-ID is the id of an event, a whole number").error()));
    query->from = *id + 1;
  }
  auto now =
      query ? service_.open_snapshot(query->world_id) : Result<WorldSnapshot>(fail(query.error()));
  if (!now) return respond(refuse(now.error()));
  if (!query->from) query->from = now->head.height;
  wire::Response out;
  out.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  out.stream = [this, query = *query](std::shared_ptr<wire::Stream> stream) {
    const Time keepalive = service_.followers().now() + kKeepalive;
    service_.followers().add(query.world_id,
                             RecordStream{service_, query, std::move(stream), keepalive});
  };
  respond(std::move(out));
}

}  // namespace pawl::worlds
