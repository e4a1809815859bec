#include "pawl/client.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "client/http.h"
#include "client/random.h"
#include "json/text.h"
#include "wire/message.h"
#include "wire/status.h"

namespace pawl {

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Pauses between repetitions of a failed request, and between two looks of wait() at an instance.
// Both double each time. A server's Retry-After is obeyed up to kMaxRetryAfterS.
constexpr int kFirstPauseMs = 50, kMaxPauseMs = 5'000;
constexpr int kFirstLookMs = 5, kMaxLookMs = 500;
constexpr int kMaxRetryAfterS = 60;

// The pause that a busy server asks for.
int retry_after_s(const net::HttpAnswer& answer) {
  std::string_view text = answer.header("Retry-After");
  int n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return std::clamp(n, 0, kMaxRetryAfterS);
}

// Statuses of a request with which nothing is wrong: the same request may succeed later.
bool is_passing(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// The faces word their errors differently, so the message is the first of three members that is
// there. A body that is not JSON is itself the message.
Error error_of(const net::HttpAnswer& reply) {
  Error out{wire::code_of_http(reply.status),
            {},
            reply.body.substr(0, 500),
            {},
            is_passing(reply.status)};
  auto value = json::parse(reply.body);
  if (!value) return out;
  out.reason = value->string_or("error");
  for (const char* member : {"reason", "detail", "title"})
    if (auto text = value->string_or(member); !text.empty()) {
      out.message = text;
      break;
    }
  return out;
}

// A conflict is repeated only while the first request with the same key still runs.
bool worth_repeating(const Error& error) {
  return error.retryable || (error.code == Code::conflict &&
                             error.message.find("Idempotency-Key still runs") != std::string::npos);
}

Error unreadable(std::string_view what, std::string_view text) {
  return {Code::internal, "unreadable",
          fmt::format("the answer is no {}: {}", what, text.substr(0, 200))};
}

// An answer may be larger than a request body, which is what the parser allows by default.
Result<Client::Instance> instance_of(const Result<std::string>& text) {
  if (!text) return std::unexpected(text.error());
  auto value = json::parse(*text, {.max_bytes = 1u << 30});
  if (!value || value->string_or("id").empty())
    return std::unexpected(unreadable("instance", *text));
  Client::Instance out;
  out.id = value->string_or("id");
  out.definition = value->string_or("definitionId");
  out.status = value->string_or("status");
  out.failure = value->string_or("failureReason");
  if (const json::Value* v = value->find("definitionVersion"); v && v->is_number())
    out.version = static_cast<int>(v->as_int64().value_or(0));
  if (const json::Value* steps = value->find("currentStepIds"); steps && steps->is_array())
    for (const json::Value& step : steps->array())
      if (step.is_string()) out.steps.push_back(step.string());
  const json::Value* variables = value->find("variables");
  out.variables = variables ? json::print(*variables) : "{}";
  return out;
}

Result<void> nothing(const Result<std::string>& reply) {
  if (!reply) return std::unexpected(reply.error());
  return {};
}

std::string path_of(std::string_view id, std::string_view rest = {}) {
  return "/v1/instances/" + wire::percent_encode(id) + std::string(rest);
}

}  // namespace

struct Client::Parts {
  std::unique_ptr<net::HttpClient> http;
  ClientOptions options;

  // Sends the request once, with the current token.
  Result<std::string> attempt(std::string_view method, std::string_view path, std::string_view body,
                              std::string_view key, bool fresh_token, int& pause_s) {
    auto token = options.token.get(fresh_token);
    if (!token) return token;
    net::HttpRequest request{std::string(method), std::string(path), {}, std::string(body)};
    if (!token->empty()) request.headers.emplace_back("Authorization", "Bearer " + *token);
    if (!key.empty()) request.headers.emplace_back("Idempotency-Key", key);
    auto reply = http->send(request);
    if (!reply) return std::unexpected(client::no_answer(*http, reply.error()));
    pause_s = retry_after_s(*reply);
    if (reply->status >= 400) return std::unexpected(error_of(*reply));
    return std::move(reply->body);
  }

  // Repeats the request until it succeeds, fails for good, or the patience is over. A refused token
  // is renewed once and does not count as an attempt.
  Result<std::string> call(std::string_view method, std::string_view path, std::string_view body,
                           std::string_view key) {
    auto until = Clock::now() + Milliseconds(options.patience_ms);
    bool renewed = false, fresh_token = false;
    for (int pause = kFirstPauseMs;; pause = std::min(pause * 2, kMaxPauseMs)) {
      int pause_s = 0;
      auto answer = attempt(method, path, body, key, std::exchange(fresh_token, false), pause_s);
      if (answer) return answer;
      if (answer.error().code == Code::unauthenticated && options.token.renewable() && !renewed) {
        renewed = fresh_token = true;
        continue;
      }
      auto sleep = Milliseconds(std::max(client::jittered(pause), pause_s * 1000));
      if (!worth_repeating(answer.error()) || Clock::now() + sleep >= until) return answer;
      std::this_thread::sleep_for(sleep);
    }
  }
};

Client::Client(std::string server, ClientOptions options)
    : parts_(new Parts{client::open_http(server, options.timeout_ms), options}) {}
Client::~Client() = default;

Result<std::string> Client::call(std::string_view method, std::string_view path,
                                 std::string_view body) {
  return parts_->call(method, path, body, {});
}

Result<std::string> Client::call_once(std::string_view method, std::string_view path,
                                      std::string_view body, std::string key) {
  return parts_->call(method, path, body, key.empty() ? client::fresh_key() : key);
}

Result<std::string> Client::deploy(std::string_view definition) {
  return call_once("POST", "/v1/definitions", definition);
}

// The variables are JSON text already, so the body is put together as text.
Result<Client::Instance> Client::start(const Start& start) {
  std::string body = "{\"definitionId\":" + json::quote(start.definition);
  body += ",\"variables\":" + (start.variables.empty() ? "{}" : start.variables);
  if (start.version) body += ",\"definitionVersion\":" + std::to_string(start.version);
  if (!start.business_key.empty()) body += ",\"businessKey\":" + json::quote(start.business_key);
  return instance_of(call_once("POST", "/v1/instances", body += '}', start.idempotency_key));
}

Result<Client::Instance> Client::get(std::string_view id) {
  return instance_of(call("GET", path_of(id)));
}

// Polls with growing pauses.
Result<Client::Instance> Client::wait(std::string_view id, int timeout_ms) {
  auto until = Clock::now() + Milliseconds(timeout_ms);
  for (int pause = kFirstLookMs;; pause = std::min(pause * 2, kMaxLookMs)) {
    auto instance = get(id);
    if (!instance || instance->finished()) return instance;
    if (Clock::now() + Milliseconds(pause) >= until)
      return fail(
          Code::unavailable, "timed-out",
          fmt::format("instance {} is still {} after {} ms", id, instance->status, timeout_ms));
    std::this_thread::sleep_for(Milliseconds(pause));
  }
}

Result<void> Client::signal(std::string_view id, std::string_view step,
                            std::string_view variables) {
  return nothing(
      call_once("POST", path_of(id, "/signals/" + wire::percent_encode(step)), variables));
}

Result<void> Client::complete_task(std::string_view id, std::string_view step,
                                   std::string_view variables) {
  return nothing(call_once("POST",
                           path_of(id, "/user-tasks/" + wire::percent_encode(step) + "/complete"),
                           fmt::format("{{\"variables\":{}}}", variables)));
}

Result<Client::Instance> Client::cancel(std::string_view id, std::string_view reason) {
  return instance_of(call_once("POST", path_of(id, "/cancel"),
                               fmt::format("{{\"reason\":{}}}", json::quote(reason))));
}

Result<std::string> Client::history(std::string_view id) {
  return call("GET", path_of(id, "/history"));
}

}  // namespace pawl
