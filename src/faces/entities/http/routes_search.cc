#include <fmt/format.h>

#include "base/hash.h"
#include "faces/entities/http/operations.h"
#include "faces/entities/http/result_stream.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// Searches: direct ones, which answer with the entities, and search jobs.

namespace pawl::entities {

namespace {

constexpr int64_t kDefaultHits = 1000;
constexpr int64_t kMaxHits = 10'000;
// A result larger than this is streamed.
constexpr size_t kMaxWholeBytes = 256 * 1024;
constexpr std::string_view kLines = "application/x-ndjson";

Result<Query> query_of(HttpExchange& http) {
  TRY(int32_t version, http.version(1));
  TRY(json::Value text, http.body());
  Query query{.tenant = http.tenant(), .model = http.param(0), .version = version};
  TRY(query.condition, http.service().condition(http.tenant(), http.param(0), version, text, true));
  if (query.condition->function())
    return bad_request(
        "a function condition is for workflows; a search cannot ask compute members");
  TRY(query.at, http.time(http::kSearchQuery["pointInTime"]));
  TRY(ModelPtr model, http.service().model(query.tenant, query.model, version));
  query.sort_text = http.request.query_params(http::kSearchQuery["sort"]);
  TRY(query.sort, parse_sort(query.sort_text, model.get()));
  return query;
}

wire::Response lines_response(std::string body) {
  wire::Response response;
  response.headers.emplace_back("Content-Type", kLines);
  response.body = std::move(body);
  return response;
}

// The lines of a search result. The first ones are kept as text, later ones as ids.
class ResultLines {
 public:
  bool add(const EntityView& e) {
    if (text_.size() >= kMaxWholeBytes) {
      ids_.emplace_back(e.id);
      return true;
    }
    append_envelope(text_, e, false);
    text_ += '\n';
    return true;
  }
  // A small result is one response, a large one is streamed.
  void answer(const HttpExchangePtr& http, ReadSnapshot snapshot, std::optional<Seq> seq) {
    if (ids_.empty()) return http->answer(lines_response(std::move(text_)));
    auto slot = http->face.stream_slots().take(http->tenant());
    if (!slot) return http->refuse(slot.error());
    auto stream = std::make_shared<std::unique_ptr<ResultStream>>(std::make_unique<ResultStream>(
        ResultStream{.snapshot = std::move(snapshot), .tenant = http->tenant(), .seq = seq}));
    (*stream)->slot = *std::move(slot);
    (*stream)->lines = std::move(text_);
    (*stream)->ids = std::move(ids_);
    wire::Response response = lines_response({});
    response.stream = [streams = &http->face.result_streams(),
                       stream](std::shared_ptr<wire::Stream> out) {
      (*stream)->out = std::move(out);
      streams->add(std::move(*stream));
    };
    http->answer(std::move(response));
  }

 private:
  std::string text_;
  std::vector<std::string> ids_;
};

void explain(HttpExchange& http, const Plan& plan) {
  http.json(json::print(json::object({
      {"index", plan.index.empty() ? json::Value() : json::Value(plan.index)},
      {"rowsRead", plan.rows_read},
      {"matched", plan.matched},
      {"access", plan.index.empty() ? "SCAN" : "INDEX"},
  })));
}

Result<void> run(const HttpExchangePtr& http, Query query, const ModelPtr& model,
                 bool explain_only) {
  ReadSnapshot snapshot = http->service().kernel().snapshot();
  if (query.at) {
    TRY(query.seq, snapshot.seq_at(*query.at));
    query.at.reset();
  }
  // The lines hold the ids of most matches, not the matches. A sort holds all of them.
  if (query.sort.empty()) query.hold = {};
  ResultLines lines;
  TRY(Plan plan, search(snapshot, query, model.get(),
                        [&](const EntityView& e) { return explain_only || lines.add(e); }));
  if (explain_only)
    explain(*http, plan);
  else
    lines.answer(http, std::move(snapshot), query.seq);
  return {};
}

Result<Query> limited_query(HttpExchange& http) {
  TRY(Query query, query_of(http));
  TRY(int64_t limit, http.number(http::kSearchQuery["limit"]));
  if (limit < 0 || limit > kMaxHits)
    return bad_request(fmt::format("limit is {}; it must be from 0 (which means {}) to {}", limit,
                                   kDefaultHits, kMaxHits));
  query.limit = static_cast<size_t>(limit ? limit : kDefaultHits);
  return query;
}

Result<void> find_in_transaction(const HttpExchangePtr& http, const Query& query,
                                 std::function<void(Bytes lines)> answer) {
  TRY(json::Value condition, http->body());
  http->service().find_in_transaction(http->context(), query, &condition,
                                      [http, answer = std::move(answer)](Result<Bytes> a) {
                                        if (!a) return http->refuse(a.error());
                                        answer(*std::move(a));
                                      });
  return {};
}

Result<void> direct(const HttpExchangePtr& http) {
  TRY(Query query, limited_query(*http));
  if (http->context().reads_in_transaction(query.at))
    return find_in_transaction(
        http, query, [http](Bytes lines) { http->answer(lines_response(std::move(lines))); });
  TRY(ModelPtr model, http->service().model(query.tenant, query.model, query.version));
  const bool explain_only =
      http->request.query_param(http::kDirectQuery["explain"]).value_or("") == "true";
  // An index answers most searches quickly; a long search must not block the thread that reads
  // requests.
  if (model && !query.at && indexed_node(*query.condition, *model)) {
    Query quick = query;
    quick.max_work = kMaxInlineWork;
    auto done = run(http, std::move(quick), model, explain_only);
    if (done || !done.error().is(kSearchTooLong)) return done;
  }
  return http->service().run_query(std::move(query), http->watch_client(),
                                   [http, model, explain_only](const Query& limited) {
                                     if (auto done = run(http, limited, model, explain_only); !done)
                                       http->refuse(done.error());
                                   });
}

Result<Bytes> array_of(HttpExchange& http, const Query& query, const ModelPtr& model) {
  Bytes out = "[";
  TRY_OK(search(http.service().kernel().snapshot(), query, model.get(), [&](const EntityView& e) {
    if (out.size() > 1) out += ',';
    append_envelope(out, e, false);
    return out.size() <= limits::kWholeResultBytes;
  }));
  if (out.size() > limits::kWholeResultBytes) return result_too_large();
  return out += ']';
}

// The older path, which clients of the hosted service still use: the same result as one array.
Result<void> direct_array(const HttpExchangePtr& http) {
  TRY(Query query, limited_query(*http));
  if (http->context().reads_in_transaction(query.at))
    return find_in_transaction(
        http, query, [http](Bytes lines) { http->json(array_of_lines(std::move(lines))); });
  TRY(ModelPtr model, http->service().model(query.tenant, query.model, query.version));
  return http->service().run_query(
      std::move(query), http->watch_client(),
      [http, model](const Query& limited) { http->reply(array_of(*http, limited, model)); });
}

Result<void> start_async(const HttpExchangePtr& http) {
  TRY(Query query, query_of(*http));
  query.request_digest = hex(view(sha256(http->request.query + "\n" + http->request.body)));
  http->service().start_search_job(http->context(), std::move(query), reply_to(http));
  return {};
}

Time time_of(const json::Value& job, std::string_view name) {
  const json::Value* t = job.find(name);
  return t ? t->as_int64().value_or(0) : 0;
}

Result<Bytes> status(HttpExchange& http) {
  TRY(std::string id, http.uuid(0));
  TRY(json::Value job, http.service().search_job(http.tenant(), id));
  const Time created = time_of(job, "createTime");
  const Time finished = time_of(job, "finishTime");
  json::Object out;
  out.add("searchJobStatus", job.string_or("status"));
  out.add("createTime", rfc3339(created));
  if (finished) out.add("finishTime", rfc3339(finished));
  out.add("expirationDate", rfc3339(created + kSearchJobLifetime));
  out.add("entitiesCount", time_of(job, "count"));
  out.add("calculationTimeMillis", finished ? (finished - created) / kMillisecond : int64_t{0});
  return json::print(out);
}

Result<Bytes> results(HttpExchange& http) {
  TRY(std::string id, http.uuid(0));
  TRY(int64_t size, http.number(http::kResultsQuery["pageSize"]));
  TRY(int64_t number, http.number(http::kResultsQuery["pageNumber"]));
  if (size > kMaxHits)
    return bad_request(fmt::format("pageSize is {}; at most {} are allowed", size, kMaxHits));
  if (number < 0 || number > INT32_MAX)
    return bad_request(fmt::format("pageNumber is {}; it must not be negative", number));
  if (size <= 0) size = kDefaultHits;
  TRY(json::Value job, http.service().search_job(http.tenant(), id));
  if (job.string_or("status") != "SUCCESSFUL")
    return bad_request(fmt::format("search job {} is {}; results are there when it is SUCCESSFUL",
                                   id, job.string_or("status")));
  auto page_size = static_cast<uint64_t>(size);
  TRY(Service::Page page, http.service().search_job_page(http.tenant(), job, page_size,
                                                         static_cast<uint64_t>(number), false));
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

Result<void> cancel(const HttpExchangePtr& http) {
  TRY(std::string id, http->uuid(0));
  http->service().cancel_search_job(http->context(), id, [http](Result<Bytes> a) {
    if (a) *a = R"({"isCancelled":true,"cancelled":true,"currentSearchJobStatus":"CANCELLED"})";
    http->reply(std::move(a));
  });
  return {};
}

}  // namespace

void add_search_routes(RouteTable& routes) {
  routes.add_async(
      "POST", "/search/direct/{name}/{version}", direct,
      "Entities that match a condition, one envelope a line. limit, pointInTime, sort, explain.",
      http::kSearch);
  routes.add_async("POST", "/search/{name}/{version}", direct_array,
                   "Entities that match a condition, as one array (older path).",
                   http::kSearchArray);
  routes.add_async("POST", "/search/async/{name}/{version}", start_async,
                   "Starts a search job over a snapshot; answers with its id.", http::kStartJob);
  routes.add("GET", "/search/async/{job}/status", status, "The status of a search job.",
             http::kGetJob);
  routes.add("GET", "/search/async/{job}", results,
             "A page of a search job's result, as of its snapshot.", http::kGetResults);
  routes.slow();
  routes.add_async("PUT", "/search/async/{job}/cancel", cancel, "Cancels a search job.",
                   http::kCancelJob);
}

}  // namespace pawl::entities
