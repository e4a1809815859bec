// Batches: many starts or completions in one request, each with its own outcome.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "faces/processes/outcome_collector.h"

namespace pawl::processes {

namespace {

constexpr AnswerShape kOutcome{
    "BatchOutcome",
    {integer("status", "The status that the item would have had alone.").example("201"),
     object("instance", "", kInstance).optional(), text("error").optional(),
     text("reason").optional()}};
constexpr AnswerShape kOutcomes{
    "BatchOutcomes",
    {list("items", "In the order of the request.", kOutcome), count("succeeded"), count("failed")}};
constexpr RequestShape kStartBatch{
    "StartBatchRequest",
    {list("items", "The instances to start.", kStart).required().range(1, std::nullopt),
     flag("brief", "Leave the instances out of the answer.").by_default(false)}};
constexpr RequestShape kSettle{
    "SettleJobRequest",
    kFail,
    {text("jobId", "The id of the job.").required(),
     variables("variables", "Of a job that is done: merged into the instance's variables.")}};
constexpr RequestShape kCompleteBatch{
    "CompleteBatchRequest",
    {list("items", "An item with an errorMessage fails its job; any other completes it.", kSettle)
         .required()
         .range(1, std::nullopt)}};
constexpr Operation kStartMany{.id = "startInstances",
                               .headers = &wire::kIdempotencyHeader,
                               .body = {kStartBatch},
                               .replies = {{200, "The outcome of each item.", kOutcomes}},
                               .errors = {413}};
constexpr Operation kCompleteMany{.id = "settleJobs",
                                  .headers = &wire::kIdempotencyHeader,
                                  .body = {kCompleteBatch},
                                  .replies = {{200, "The outcome of each item.", kOutcomes}},
                                  .errors = {413}};

// The body of a batch, whose member "items" is an array.
Result<json::Value> batch_of(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  const json::Value* items = body.find(kStartBatch["items"]);
  if (!items || !items->is_array() || items->array().empty())
    return fail(Code::invalid, "NO_ITEMS", "items must be an array with at least one item");
  if (items->array().size() > kBatchItems)
    return fail(Code::too_large, "TOO_MANY_ITEMS",
                "a batch may have " + std::to_string(kBatchItems) + " items: send several");
  return std::move(body).take();
}

// Each item gets its own idempotency key, so that a repeated batch repeats nothing.
Submitter submitter_for(const Submitter& whole, size_t i) {
  Submitter out = whole;
  if (!out.once.empty()) out.once += "#" + std::to_string(i);
  return out;
}

// {"status":201,"instance":{...}} or {"status":404,"error":...,"reason":...}
void append_outcome(std::string& out, const Result<Bytes>& outcome, int status,
                    std::string_view member) {
  if (!outcome) {
    wire::Response r = refusal(outcome.error());
    while (!r.body.empty() && (r.body.back() == '\n' || r.body.back() == '}'))
      r.body.pop_back();
    out += "{\"status\":" + std::to_string(r.status) + "," + r.body.substr(1) + "}";
    return;
  }
  out += "{\"status\":" + std::to_string(status == 201 ? start_status(*outcome) : status);
  if (!member.empty() && !outcome->empty())
    out.append(",\"").append(member).append("\":").append(*outcome);
  out += '}';
}

OutcomeCollector::AllDone answer(wire::Respond respond, int status, std::string member) {
  return [respond = std::move(respond), status,
          member = std::move(member)](OutcomeCollector::Outcomes outcomes) mutable {
    std::string out = "{\"items\":[";
    size_t failed = 0;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (i) out += ',';
      append_outcome(out, outcomes[i], status, member);
      failed += !outcomes[i];
    }
    respond(ok(200, out += "],\"succeeded\":" + std::to_string(outcomes.size() - failed) +
                           ",\"failed\":" + std::to_string(failed) + "}"));
  };
}

Result<wire::BodyReader> item_reader(json::Value item) {
  if (item.is_object()) return wire::BodyReader(std::move(item), kBody);
  return fail(Code::invalid, "BAD_ITEM",
              "an item must be an object, got " + std::string(item.kind_name()));
}

Result<StartCommand> start_item(json::Value given) {
  TRY(wire::BodyReader item, item_reader(std::move(given)));
  return start_command(item);
}

void start_batch(Service& service, wire::Request request, wire::Respond respond) {
  auto body = batch_of(request);
  if (!body) return respond(refusal(body.error()));
  json::Array& items = body->find(kStartBatch["items"])->array();
  const json::Value* brief = body->find(kStartBatch["brief"]);
  bool with_instance = !(brief && brief->is_bool() && brief->boolean());
  Submitter submitter = submitter_of(request);
  auto collector = OutcomeCollector::create(
      items.size(), answer(std::move(respond), 201, with_instance ? "instance" : ""));
  for (size_t i = 0; i < items.size(); ++i) {
    auto command = start_item(std::move(items[i]));
    if (command)
      service.start(submitter_for(submitter, i), std::move(*command),
                    OutcomeCollector::callback(collector, i));
    else
      OutcomeCollector::callback(collector, i)(fail(std::move(command.error())));
  }
}

// An item with an errorMessage fails its job; any other item completes it.
Result<void> settle_job(Service& service, Submitter submitter, json::Value given, Done& done) {
  TRY(wire::BodyReader item, item_reader(std::move(given)));
  TRY(std::string id, item.text(kSettle["jobId"]));
  TRY(std::string worker, item.text(kSettle["workerId"]));
  if (id.empty()) return fail(Code::invalid, "NO_JOB_ID", "jobId is required");
  if (item.value().find(kSettle["errorMessage"])) {
    FailCommand c{id, worker};
    TRY(c.message, item.text(kSettle["errorMessage"]));
    TRY(c.retryable, item.flag(kSettle["retryable"]));
    service.fail_job(std::move(submitter), std::move(c), std::move(done));
    return {};
  }
  TRY(VariablesPtr variables, take_variables(item));
  service.complete(std::move(submitter),
                   {.id = id, .worker = worker, .variables = std::move(variables)},
                   std::move(done));
  return {};
}

void complete_batch(Service& service, wire::Request request, wire::Respond respond) {
  auto body = batch_of(request);
  if (!body) return respond(refusal(body.error()));
  json::Array& items = body->find(kStartBatch["items"])->array();
  Submitter submitter = submitter_of(request);
  auto collector = OutcomeCollector::create(items.size(), answer(std::move(respond), 204, ""));
  for (size_t i = 0; i < items.size(); ++i) {
    Done done = OutcomeCollector::callback(collector, i);
    auto sent = settle_job(service, submitter_for(submitter, i), std::move(items[i]), done);
    if (!sent) done(fail(std::move(sent.error())));
  }
}

}  // namespace

std::vector<wire::Route> batch_routes(Service& s) {
  using wire::Request, wire::Respond;
  return {
      {"POST", "/pawl/v1/processes/start-batch",
       [&s](Request r, Respond a) { start_batch(s, std::move(r), std::move(a)); },
       "Starts up to 1000 instances, each with its own outcome.", &kStartMany},
      {"POST", "/pawl/v1/processes/complete-batch",
       [&s](Request r, Respond a) { complete_batch(s, std::move(r), std::move(a)); },
       "Completes or fails up to 1000 jobs, each with its own outcome.", &kCompleteMany},
  };
}

}  // namespace pawl::processes
