#include "cli/client.h"

#include <fmt/format.h>

#include "embed/http_client.h"
#include "json/text.h"

namespace pawl::cli {

// A command waits as long as a person does.
static constexpr std::chrono::hours kPatience{1};

Client::Client(std::string server, std::string token) : server_(std::move(server)) {
  if (!server_.starts_with("http://") && !server_.starts_with("https://"))
    server_ = "http://" + server_;
  while (server_.ends_with('/'))
    server_.pop_back();
  std::string_view place = std::string_view(server_).substr(server_.find("//") + 2);
  // The port that `pawl serve` takes by itself; https has its own.
  if (place.empty())
    server_ += "127.0.0.1:8080";
  else if (server_.starts_with("http://") &&
           place.find(':', place.rfind(']') == place.npos ? 0 : place.rfind(']')) == place.npos)
    server_ += ":8080";
  auto made =
      lifecycle::HttpClient::make(server_, {.token = std::move(token), .timeout = kPatience});
  if (made)
    http_ = std::make_unique<lifecycle::HttpClient>(std::move(*made));
  else
    bad_ = std::move(made.error());
}

Client::~Client() = default;

Error Client::unreachable(const Error& why) const {
  return {Code::unavailable,
          "UNREACHABLE",
          fmt::format("no answer from {}: {} (start one with `pawl serve`, or name another with "
                      "--server HOST:PORT)",
                      server_, why.message),
          {},
          true};
}

static Code code_of(int status) {
  switch (status) {
    case 401: return Code::unauthenticated;
    case 403: return Code::denied;
    case 404: return Code::not_found;
    case 409: return Code::conflict;
    case 412: return Code::precondition;
    case 429: return Code::exhausted;
    case 503: return Code::unavailable;
    default: return status >= 500 ? Code::internal : Code::invalid;
  }
}

static json::Value value_of(const std::string& body) {
  if (body.empty()) return {};
  auto parsed = json::parse(body, {.max_bytes = 1u << 30});
  return parsed ? std::move(*parsed) : json::Value(body);
}

// The server's own words.
static std::unexpected<Error> refused(int status, const std::string& body) {
  json::Value value = value_of(body);
  std::string message;
  for (auto member : {"detail", "reason", "message", "error"})
    if (message.empty()) message = value.string_or(member);
  if (message.empty()) message = fmt::format("the server answered {}", status);
  std::string reason(value.string_or("error", "REFUSED"));
  return fail(code_of(status), std::move(reason), std::move(message));
}

Result<wire::Response> Client::send(std::string_view method, std::string_view path,
                                    std::string_view body, const wire::Headers& headers) {
  if (!http_) return fail(bad_);
  auto answer = http_->send({std::string(method), std::string(path), headers, std::string(body)});
  if (!answer) return fail(unreachable(answer.error()));
  return wire::Response{.status = answer->status,
                        .headers = std::move(answer->headers),
                        .body = std::move(answer->body)};
}

Result<void> Client::stream(std::string_view path,
                            const std::function<bool(std::string_view)>& visit) {
  if (!http_) return fail(bad_);
  auto done =
      http_->stream({"GET", std::string(path), {{"Accept", "text/event-stream"}}}, {}, visit);
  if (done) return {};
  if (auto status = lifecycle::refused_with(done.error()))
    return refused(status, done.error().message);
  return fail(unreachable(done.error()));
}

Result<json::Value> Client::call(std::string_view method, std::string_view path,
                                 const json::Value* body, const wire::Headers& headers,
                                 wire::Headers* answered) {
  TRY(wire::Response response,
      send(method, path, body ? json::print(*body) : std::string(), headers));
  if (response.status >= 400) return refused(response.status, response.body);
  if (answered) *answered = std::move(response.headers);
  return value_of(response.body);
}

}  // namespace pawl::cli
