#include <chrono>
#include <thread>

#include "client/transport.h"
#include "json/text.h"

namespace pawl::client {

namespace {

using Clock = std::chrono::steady_clock;

// How long the server holds a poll that finds no job, and how long this side waits for room before
// it looks again whether it is draining.
constexpr int kWaitMs = 5'000;
constexpr int kNoRoomMs = 200;
constexpr size_t kResultsInOneRequest = 500;

// The variables are JSON already, so the item is put together as text.
void append_result(std::string& out, const std::string& worker, const JobResult& done) {
  out += "{\"jobId\":" + json::quote(done.job_id) + ",\"workerId\":" + json::quote(worker);
  if (done.outcome)
    out += ",\"variables\":" + (done.outcome->empty() ? "{}" : *done.outcome) + "}";
  else
    out += ",\"errorMessage\":" + json::quote(done.outcome.error().message) +
           ",\"retryable\":" + (done.outcome.error().retryable ? "true" : "false") + "}";
}

}  // namespace

// A job that the buffer does not accept is dropped: its lease ends and the server offers it again.
Result<void> PollTransport::poll(JobBuffer& buffer, size_t max, int wait_ms) {
  json::Array types;
  for (const std::string& type : options_.job_types)
    types.emplace_back(type);
  json::Value body = json::object({{"workerId", options_.worker_id},
                                   {"jobTypes", std::move(types)},
                                   {"maxJobs", static_cast<int64_t>(max)},
                                   {"leaseSeconds", options_.lease_seconds},
                                   {"maxWaitMs", wait_ms}});
  auto answer = client_.call("POST", "/v1/jobs/poll", json::print(body));
  if (!answer) return std::unexpected(answer.error());
  auto value = json::parse(*answer, {.max_bytes = 1u << 30});
  const json::Value* jobs = value ? value->find("jobs") : nullptr;
  if (!jobs || !jobs->is_array()) return {};
  for (const json::Value& j : jobs->array()) {
    const json::Value* variables = j.find("variables");
    const json::Value* left = j.find("retriesRemaining");
    buffer.put({.id = std::string(j.string_or("id")),
                .type = std::string(j.string_or("jobType")),
                .instance_id = std::string(j.string_or("instanceId")),
                .step_id = std::string(j.string_or("stepId")),
                .retries_left =
                    left && left->is_number() ? static_cast<int>(left->as_int64().value_or(0)) : 0,
                .variables = variables ? json::print(*variables) : "{}"});
  }
  return {};
}

Result<void> PollTransport::send(JobBuffer& buffer, const std::vector<JobResult>& results) {
  std::string body = "{\"items\":[";
  std::vector<const JobResult*> sent;
  for (const JobResult& done : results) {
    // A result that is not JSON would make the server refuse the whole batch.
    if (done.outcome && !done.outcome->empty()) {
      auto parsed = json::parse(*done.outcome);
      if (!parsed || !parsed->is_object()) {
        buffer.refuse(done.job_id, "it is not a JSON object");
        continue;
      }
    }
    if (!sent.empty()) body += ',';
    append_result(body, options_.worker_id, done);
    sent.push_back(&done);
  }
  if (sent.empty()) return {};
  auto answer = client_.call_once("POST", "/pawl/v1/processes/complete-batch", body += "]}");
  if (!answer) return std::unexpected(answer.error());
  auto value = json::parse(*answer, {.max_bytes = 1u << 30});
  const json::Value* items = value ? value->find("items") : nullptr;
  for (size_t i = 0; i < sent.size(); ++i) {
    const json::Value* item =
        items && items->is_array() && i < items->array().size() ? &items->array()[i] : nullptr;
    // The items of the answer are in the order of the request. An answer that is too short refuses
    // the rest.
    std::string_view error = item ? item->string_or("error") : "no outcome";
    if (error.empty())
      buffer.confirm(sent[i]->job_id);
    else
      buffer.refuse(sent[i]->job_id,
                    std::string(error) + ": " + std::string(item ? item->string_or("reason") : ""));
  }
  return {};
}

// One thread polls for jobs, another sends results, so a long poll does not delay a result.
TransportEnd PollTransport::run(JobBuffer& buffer, int max_ms) {
  auto until = Clock::now() + std::chrono::milliseconds(max_ms);
  TransportEnd end{Ended::broken, {}};
  {
    std::jthread sender([&](std::stop_token stop) {
      while (!stop.stop_requested()) {
        auto results = buffer.results(stop, kResultsInOneRequest);
        if (results.empty()) return;
        // The results go back into the buffer; the next transport sends them.
        if (!send(buffer, results)) return buffer.connection_lost();
      }
    });
    while (!buffer.draining() && Clock::now() < until) {
      size_t room = buffer.wait_for_room({}, kNoRoomMs);
      if (room == 0 || buffer.draining()) continue;
      auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      auto polled = poll(buffer, room, static_cast<int>(std::clamp<int64_t>(left, 0, kWaitMs)));
      if (polled) continue;
      // A retryable error counts as unreachable, so the worker pauses longer each time.
      Ended how = polled.error().retryable ? Ended::unreachable : Ended::refused;
      end = {how, polled.error()};
      break;
    }
    // While draining, leased jobs still run and their results are sent.
    if (buffer.draining() && end.how == Ended::broken) buffer.wait_while_working({}, max_ms);
  }
  buffer.connection_lost();
  if (buffer.draining() && buffer.idle()) return {Ended::drained, {}};
  return end;
}

}  // namespace pawl::client
