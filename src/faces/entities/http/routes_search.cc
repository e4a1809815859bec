#include <fmt/format.h>

#include <future>

#include "base/hash.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr int64_t kDefaultHits = 1000;
constexpr int64_t kMaxHits = 10'000;
// A result larger than this is streamed while the search goes on.
constexpr size_t kWhole = 256 * 1024;
// Bytes on their way to a slow reader before the search waits for it.
constexpr size_t kAhead = 1024 * 1024;
constexpr std::string_view kLines = "application/x-ndjson";

Result<Query> query_of(Http& http) {
  TRY(int32_t version, http.version(1));
  TRY(json::Value text, http.body());
  Query query{.tenant = http.tenant(), .model = http.param(0), .version = version};
  TRY(query.condition, http.service().condition(http.tenant(), http.param(0), version, text, true));
  if (query.condition->function())
    return bad_request(
        "a function condition is for workflows; a search cannot ask compute members");
  TRY(query.at, http.time("pointInTime"));
  TRY(ModelPtr model, http.service().model(query.tenant, query.model, version));
  query.sort_text = http.request.query_params("sort");
  TRY(query.sort, parse_sort(query.sort_text, model.get()));
  return query;
}

wire::Response lines_response(std::string body) {
  wire::Response response;
  response.headers.emplace_back("Content-Type", kLines);
  response.body = std::move(body);
  return response;
}

// Collects lines; once there are many it turns the answer into a stream and waits for slow readers.
class LineWriter {
 public:
  explicit LineWriter(HttpPtr http) : http_(std::move(http)) {}
  bool add(const EntityView& e) {
    append_envelope(buffer_, e, false);
    buffer_ += '\n';
    return buffer_.size() < kWhole || flush();
  }
  void end() {
    if (!stream_) return http_->answer(lines_response(std::move(buffer_)));
    if (flush()) stream_->end();
  }
  void fail(const Error& error) {
    if (!stream_)
      http_->refuse(error);
    else
      stream_->end();
  }

 private:
  bool flush() {
    if (!stream_ && !begin()) return false;
    while (stream_->buffered() > kAhead && !http_->service().background().stopping())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    bool alive = stream_->write(buffer_);
    buffer_.clear();
    return alive;
  }
  bool begin() {
    auto given = std::make_shared<std::promise<std::shared_ptr<wire::Stream>>>();
    auto stream = given->get_future();
    wire::Response response = lines_response({});
    response.stream = [given](std::shared_ptr<wire::Stream> s) { given->set_value(std::move(s)); };
    http_->answer(std::move(response));
    // A peer that went away before its head was sent never gets a stream.
    if (stream.wait_for(std::chrono::seconds(30)) != std::future_status::ready) return false;
    stream_ = stream.get();
    return true;
  }
  HttpPtr http_;
  std::string buffer_;
  std::shared_ptr<wire::Stream> stream_;
};

void run(const HttpPtr& http, const Query& query, const ModelPtr& model, bool explain) {
  ReadSnapshot snapshot = http->service().kernel().snapshot();
  if (explain) {
    auto plan = search(snapshot, query, model.get(), [](const EntityView&) { return true; });
    if (!plan) return http->refuse(plan.error());
    return http->json(json::print(json::object({
        {"index", plan->index.empty() ? json::Value() : json::Value(plan->index)},
        {"rowsRead", plan->rows_read},
        {"matched", plan->matched},
        {"access", plan->index.empty() ? "SCAN" : "INDEX"},
    })));
  }
  LineWriter lines(http);
  auto plan =
      search(snapshot, query, model.get(), [&](const EntityView& e) { return lines.add(e); });
  if (!plan) return lines.fail(plan.error());
  lines.end();
}

Result<Query> limited_query(Http& http) {
  TRY(Query query, query_of(http));
  TRY(int64_t limit, http.number("limit", kDefaultHits));
  if (limit < 0 || limit > kMaxHits)
    return bad_request(fmt::format("limit is {}; it must be from 0 (which means {}) to {}", limit,
                                   kDefaultHits, kMaxHits));
  query.limit = static_cast<size_t>(limit ? limit : kDefaultHits);
  return query;
}

std::unexpected<Error> too_many() {
  return fail(Code::exhausted, "TOO_MANY_SEARCHES", "too many searches wait already: retry later");
}

Result<void> find_inside(const HttpPtr& http, const Query& query,
                         std::function<void(Bytes lines)> answer) {
  TRY(json::Value condition, http->body());
  http->service().find_inside(http->who(), query, &condition,
                              [http, answer = std::move(answer)](Result<Bytes> a) {
                                a ? answer(*std::move(a)) : http->refuse(a.error());
                              });
  return {};
}

Result<void> direct(const HttpPtr& http) {
  TRY(Query query, limited_query(*http));
  if (http->who().reads_inside(query.at))
    return find_inside(http, query,
                       [http](Bytes lines) { http->answer(lines_response(std::move(lines))); });
  TRY(ModelPtr model, http->service().model(query.tenant, query.model, query.version));
  bool explain = http->request.query_param("explain").value_or("") == "true";
  // An index answers at once; a scan must not hold the thread that reads requests.
  if (model && !query.at && indexed_node(*query.condition, *model)) {
    run(http, query, model, explain);
    return {};
  }
  if (!http->service().background().add(
          [http, query = std::move(query), model, explain] { run(http, query, model, explain); }))
    return too_many();
  return {};
}

Result<Bytes> array_of(Http& http, const Query& query, const ModelPtr& model) {
  Bytes out = "[";
  TRY_OK(search(http.service().kernel().snapshot(), query, model.get(), [&](const EntityView& e) {
    if (out.size() > 1) out += ',';
    append_envelope(out, e, false);
    return true;
  }));
  return out += ']';
}

// The older address, which clients of the hosted service still use: the same as one array.
Result<void> direct_array(const HttpPtr& http) {
  TRY(Query query, limited_query(*http));
  if (http->who().reads_inside(query.at))
    return find_inside(http, query,
                       [http](Bytes lines) { http->json(array_of_lines(std::move(lines))); });
  TRY(ModelPtr model, http->service().model(query.tenant, query.model, query.version));
  if (!http->service().background().add(
          [http, query = std::move(query), model] { http->reply(array_of(*http, query, model)); }))
    return too_many();
  return {};
}

Result<void> start_async(const HttpPtr& http) {
  TRY(Query query, query_of(*http));
  query.asked = hex(view(sha256(http->request.query + "\n" + http->request.body)));
  http->service().start_job(http->who(), std::move(query),
                            [http](Result<Bytes> a) { http->reply(std::move(a)); });
  return {};
}

Time time_of(const json::Value& job, std::string_view name) {
  const json::Value* t = job.find(name);
  return t ? t->as_int64().value_or(0) : 0;
}

Result<Bytes> status(Http& http) {
  TRY(std::string id, http.uuid(0));
  TRY(json::Value job, http.service().job(http.tenant(), id));
  Time created = time_of(job, "createTime"), finished = time_of(job, "finishTime");
  json::Object out;
  out.add("searchJobStatus", job.string_or("status"));
  out.add("createTime", rfc3339(created));
  if (finished) out.add("finishTime", rfc3339(finished));
  out.add("expirationDate", rfc3339(created + kJobLife));
  out.add("entitiesCount", time_of(job, "count"));
  out.add("calculationTimeMillis", finished ? (finished - created) / kMillisecond : int64_t{0});
  return json::print(out);
}

Result<Bytes> results(Http& http) {
  TRY(std::string id, http.uuid(0));
  TRY(int64_t size, http.number("pageSize", kDefaultHits));
  TRY(int64_t number, http.number("pageNumber", 0));
  if (size > kMaxHits)
    return bad_request(fmt::format("pageSize is {}; at most {} are allowed", size, kMaxHits));
  if (number < 0 || number > INT32_MAX)
    return bad_request(fmt::format("pageNumber is {}; it must not be negative", number));
  if (size <= 0) size = kDefaultHits;
  TRY(json::Value job, http.service().job(http.tenant(), id));
  if (job.string_or("status") != "SUCCESSFUL")
    return bad_request(fmt::format("search job {} is {}; results are there when it is SUCCESSFUL",
                                   id, job.string_or("status")));
  auto page_size = static_cast<uint64_t>(size);
  TRY(Service::Page page,
      http.service().job_page(http.tenant(), job, page_size, static_cast<uint64_t>(number), false));
  std::string out = "{\"content\":[";
  for (size_t i = 0; i < page.envelopes.size(); ++i) {
    if (i) out += ',';
    out += page.envelopes[i];
  }
  uint64_t pages = (page.total + page_size - 1) / page_size;
  out += fmt::format(
      "],\"page\":{{\"number\":{},\"size\":{},\"totalElements\":{},\"totalPages\":{}}}}}", number,
      size, page.total, pages);
  return out;
}

Result<void> cancel(const HttpPtr& http) {
  TRY(std::string id, http->uuid(0));
  http->service().cancel_job(http->who(), id, [http](Result<Bytes> a) {
    if (a) *a = R"({"isCancelled":true,"cancelled":true,"currentSearchJobStatus":"CANCELLED"})";
    http->reply(std::move(a));
  });
  return {};
}

}  // namespace

void add_search_routes(Rows& rows) {
  rows.later(
      "POST", "/search/direct/{name}/{version}", direct,
      "Entities that match a condition, one envelope a line. limit, pointInTime, sort, explain.");
  rows.later("POST", "/search/{name}/{version}", direct_array,
             "The older address of the same: the envelopes as one array.");
  rows.later("POST", "/search/async/{name}/{version}", start_async,
             "Begins a search over a snapshot; answers with the job's id.");
  rows.now("GET", "/search/async/{job}/status", status, "How far a search job is.");
  rows.now("GET", "/search/async/{job}", results,
           "A page of a search job's result, as of its snapshot.");
  rows.later("PUT", "/search/async/{job}/cancel", cancel, "Cancels a search job.");
}

}  // namespace pawl::entities
