// A world's records: a page of them, the next ones when they come, or all from now on as
// Server-Sent Events.

#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using Clock = Followers::Clock;

constexpr uint64_t kPage = 1000;
constexpr uint64_t kLooked = 10'000;  // records that one page looks at, whatever it is asked for
constexpr uint64_t kMaxWait = 60'000;
constexpr std::chrono::seconds kSignOfLife{15};
// A reader this far behind is told no more until it has read.
constexpr size_t kBehind = 256 * 1024;
constexpr std::chrono::milliseconds kComeBack{20};

std::string sse(std::string_view event, std::optional<uint64_t> id, const json::Value& data) {
  std::string out = "event: " + std::string(event) + "\n";
  if (id) out += "id: " + std::to_string(*id) + "\n";
  return out + "data: " + json::print(data) + "\n\n";
}

}  // namespace

Result<Service::RecordQuery> Service::asked_of(const Request& request) const {
  RecordQuery out;
  out.world_id = {request.caller.tenant, request.params.at(0)};
  TRY(out.limit, query_number(request, "limit", 100, kPage));
  out.limit = std::max<uint64_t>(1, out.limit);
  out.kinds = kinds_of(request);
  if (request.query_param("from")) {
    TRY(out.from, query_number(request, "from", 0, UINT64_MAX));
  }
  return out;
}

Result<Service::RecordPage> Service::records_from(const RecordQuery& asked) const {
  TRY(WorldSnapshot s, open_snapshot(asked.world_id));
  RecordPage out;
  out.head = s.head.height;
  out.retained_from = s.world.retained_from;
  out.gap = asked.from && *asked.from < out.retained_from;
  out.next = out.from = std::max(asked.from.value_or(out.head), out.retained_from);
  uint64_t looked = 0;
  size_t bytes = 0;
  auto wanted = [&](BytesView payload) {
    if (asked.kinds.empty()) return true;
    auto record = cbor::decode(payload);
    return record && std::find(asked.kinds.begin(), asked.kinds.end(), record_kind(*record)) !=
                         asked.kinds.end();
  };
  TRY_OK(scan_records(s.snapshot, s.world_id, out.from, [&](uint64_t seq, BytesView payload) {
    if (wanted(payload)) out.entries.emplace_back(seq, payload), bytes += payload.size();
    out.next = seq + 1;
    return out.entries.size() < asked.limit && bytes < kShownBytes && ++looked < kLooked;
  }));
  return out;
}

json::Value Service::RecordPage::json() const {
  json::Array out;
  for (const auto& [seq, payload] : entries)
    out.push_back(record_json(seq, payload));
  return json::Value(std::move(out));
}

// As the peer gives it to whoever accepts application/cbor: each entry as bytes that hold seq, kind
// and payload.
static Bytes page_cbor(const Service::RecordPage& found) {
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

void Service::journal(Request request, Respond respond) {
  auto asked = asked_of(request);
  if (asked && !asked->from) asked->from = 0;
  auto found = asked ? records_from(*asked) : Result<RecordPage>(fail(asked.error()));
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
                                                         {"entries", found->json()}}))));
}

// Answers when there are records, or when the time is over.
void Service::journal_wait(Request request, Respond respond) {
  auto asked = asked_of(request);
  auto timeout = asked ? query_number(request, "timeout_ms", 30'000, kMaxWait)
                       : Result<uint64_t>(fail(asked.error()));
  auto now =
      timeout ? open_snapshot(asked->world_id) : Result<WorldSnapshot>(fail(timeout.error()));
  if (!now) return respond(refuse(now.error()));
  const auto until = Clock::now() + std::chrono::milliseconds(*timeout);
  const std::optional<uint64_t> requested = asked->from;
  if (!requested) asked->from = now->head.height;
  const uint64_t began = std::max(*asked->from, now->world.retained_from);
  followers_.add(
      asked->world_id,
      [this, asked = *asked, requested, began, until,
       respond = std::move(respond)](bool over) mutable -> std::optional<Clock::time_point> {
        auto found = records_from(asked);
        if (!found) return respond(refuse(found.error())), std::nullopt;
        const bool late = over || Clock::now() >= until, gap = found->gap;
        if (found->entries.empty() && !gap && !late) {
          // What was looked at and is of other kinds need not be looked at again.
          asked.from = found->next;
          return found->next < found->head ? Clock::now() : until;
        }
        respond(wire::json_response(
            200, json::print(json::object(
                     {{"world_id", asked.world_id.world},
                      {"requested_from", requested ? json::Value(*requested) : json::Value()},
                      {"from", began},
                      {"next_from", found->next},
                      {"head", found->head},
                      {"retained_from", found->retained_from},
                      {"gap", gap},
                      {"timed_out", found->entries.empty() && !gap},
                      {"entries", found->json()}}))));
        return std::nullopt;
      });
}

static std::string told(const std::string& world, const Service::RecordQuery& asked,
                        const Service::RecordPage& found) {
  std::string out;
  if (found.gap)
    out += sse("gap", {},
               json::object({{"world_id", world},
                             {"requested_from", *asked.from},
                             {"retained_from", found.retained_from},
                             {"next_from", found.next}}));
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

void Service::journal_stream(Request request, Respond respond) {
  auto asked = asked_of(request);
  if (const std::string_view last = request.header("Last-Event-ID");
      asked && !asked->from && !last.empty()) {
    auto id = whole_number(last);
    if (!id)
      return respond(refuse({Code::invalid, "invalid_request",
                             "Last-Event-ID is the id of an event, a whole number"}));
    asked->from = *id + 1;
  }
  auto now = asked ? open_snapshot(asked->world_id) : Result<WorldSnapshot>(fail(asked.error()));
  if (!now) return respond(refuse(now.error()));
  if (!asked->from) asked->from = now->head.height;
  wire::Response out;
  out.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  out.stream = [this, asked = *asked](std::shared_ptr<wire::Stream> stream) {
    followers_.add(asked.world_id,
                   [this, asked, stream = std::move(stream), quiet = Clock::now() + kSignOfLife](
                       bool over) mutable -> std::optional<Clock::time_point> {
                     if (over) return stream->end(), std::nullopt;
                     if (stream->buffered() > kBehind) return Clock::now() + kComeBack;
                     auto found = records_from(asked);
                     std::string text =
                         found
                             ? told(asked.world_id.world, asked, *found)
                             : sse("error", {}, json::object({{"message", found.error().message}}));
                     if (text.empty() && Clock::now() >= quiet) text = ": keepalive\n\n";
                     if (!text.empty()) quiet = Clock::now() + kSignOfLife;
                     if (!text.empty() && !stream->write(text)) return std::nullopt;
                     if (!found) return stream->end(), std::nullopt;
                     asked.from = found->next;
                     return found->next < found->head ? Clock::now() : quiet;
                   });
  };
  respond(std::move(out));
}

}  // namespace pawl::worlds
