#include <chrono>
#include <thread>

#include "client/link.h"
#include "json/text.h"

namespace pawl::client {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWaitMs = 5'000;
constexpr int kNoRoomMs = 200;
constexpr size_t kResultsInOneRequest = 500;

void append_result(std::string& out, const std::string& worker, const Done& done) {
  out += "{\"jobId\":" + json::quote(done.job_id) + ",\"workerId\":" + json::quote(worker);
  if (done.outcome)
    out += ",\"variables\":" + (done.outcome->empty() ? "{}" : *done.outcome) + "}";
  else
    out += ",\"errorMessage\":" + json::quote(done.outcome.error().message) +
           ",\"retryable\":" + (done.outcome.error().retryable ? "true" : "false") + "}";
}

}  // namespace

Reply<void> PollLink::poll(Desk& desk, size_t max, int wait_ms) {
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
    desk.put({.id = std::string(j.string_or("id")),
              .type = std::string(j.string_or("jobType")),
              .instance_id = std::string(j.string_or("instanceId")),
              .step_id = std::string(j.string_or("stepId")),
              .retries_left =
                  left && left->is_number() ? static_cast<int>(left->as_int64().value_or(0)) : 0,
              .variables = variables ? json::print(*variables) : "{}"});
  }
  return {};
}

Reply<void> PollLink::send(Desk& desk, const std::vector<Done>& results) {
  std::string body = "{\"items\":[";
  std::vector<const Done*> sent;
  for (const Done& done : results) {
    // One that is no JSON would spoil the whole batch.
    if (done.outcome && !done.outcome->empty()) {
      auto parsed = json::parse(*done.outcome);
      if (!parsed || !parsed->is_object()) {
        desk.refuse(done.job_id, "it is no JSON object");
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
    std::string_view error = item ? item->string_or("error") : "no outcome";
    if (error.empty())
      desk.confirm(sent[i]->job_id);
    else
      desk.refuse(sent[i]->job_id,
                  std::string(error) + ": " + std::string(item ? item->string_or("reason") : ""));
  }
  return {};
}

LinkEnd PollLink::run(Desk& desk, int turn_ms) {
  auto until = Clock::now() + std::chrono::milliseconds(turn_ms);
  LinkEnd end{Ended::broken, {}};
  {
    std::jthread sender([&](std::stop_token stop) {
      while (!stop.stop_requested()) {
        auto results = desk.results(stop, kResultsInOneRequest);
        if (results.empty()) return;
        if (!send(desk, results)) return desk.lost();
      }
    });
    while (!desk.draining() && Clock::now() < until) {
      size_t room = desk.wait_for_room({}, kNoRoomMs);
      if (room == 0 || desk.draining()) continue;
      auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      auto polled = poll(desk, room, static_cast<int>(std::clamp<int64_t>(left, 0, kWaitMs)));
      if (polled) continue;
      Ended how = polled.error().unavailable() ? Ended::unreachable : Ended::refused;
      end = {how, polled.error()};
      break;
    }
    // While draining, leased jobs are done and their results sent; a sender that gave up ends the
    // turn.
    if (desk.draining() && end.how == Ended::broken) desk.wait_while_working({}, turn_ms);
  }
  desk.lost();
  if (desk.draining() && desk.idle()) return {Ended::drained, {}};
  return end;
}

}  // namespace pawl::client
