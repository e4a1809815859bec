#include "cli/client.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "json/text.h"
#include "net/http_client.h"
#include "wire/status.h"

namespace pawl::cli {

// A command waits as long as its user does: the user ends it with Ctrl-C.
static constexpr std::chrono::hours kTimeout{1};
// Exports and lists may be large; they are printed, not kept.
static constexpr size_t kMaxAnswerBytes = size_t{1} << 30;

Client::Client(std::string server, std::string token) {
  net::HttpClientOptions options{.base_url = net::server_url(server),
                                 .media_type = "application/json",
                                 .timeout = kTimeout,
                                 .max_answer_bytes = kMaxAnswerBytes};
  if (!token.empty()) options.headers.emplace_back("Authorization", "Bearer " + token);
  http_ = std::make_unique<net::HttpClient>(std::move(options));
}

Client::~Client() = default;

Error Client::no_answer(const Error& why) const {
  if (why.code == Code::invalid) return why;
  return {Code::unavailable,
          "UNREACHABLE",
          fmt::format("no answer from {}: {} (start one with `pawl serve`, or name another with "
                      "--server HOST:PORT)",
                      http_->options().base_url, why.message),
          {},
          true};
}

// A body that is not JSON becomes a string, so that commands can print it.
static json::Value value_of(const std::string& body) {
  if (body.empty()) return {};
  auto parsed = json::parse(body, {.max_bytes = 1u << 30});
  return parsed ? std::move(*parsed) : json::Value(body);
}

// The error with the server's own message. Each face uses another member for it.
static std::unexpected<Error> refused(int status, const std::string& body) {
  json::Value value = value_of(body);
  std::string message;
  for (auto member : {"detail", "reason", "message", "error"})
    if (message.empty()) message = value.string_or(member);
  if (message.empty()) message = fmt::format("the server answered {}", status);
  std::string reason(value.string_or("error", "REFUSED"));
  return fail(wire::code_of_http(status), std::move(reason), std::move(message));
}

Result<wire::Response> Client::send(std::string_view method, std::string_view path,
                                    std::string_view body, const wire::Headers& headers) {
  auto answer = http_->send({std::string(method), std::string(path), headers, std::string(body)});
  if (!answer) return fail(no_answer(answer.error()));
  return wire::Response{.status = answer->status,
                        .headers = std::move(answer->headers),
                        .body = std::move(answer->body)};
}

Result<void> Client::stream(std::string_view path,
                            const std::function<bool(std::string_view)>& visit) {
  std::string buffer;
  // Cuts the stream into lines: a piece may hold several lines or a part of one.
  auto visit_lines = [&](std::string_view piece) {
    buffer += piece;
    size_t done = 0;
    bool more = true;
    for (size_t end; more && (end = buffer.find('\n', done)) != std::string::npos; done = end + 1)
      more = visit(std::string_view(buffer).substr(done, end + 1 - done));
    buffer.erase(0, done);
    return more;
  };
  auto answer = http_->stream({"GET", std::string(path), {{"Accept", "text/event-stream"}}}, {},
                              std::chrono::seconds(limits::kClientSilenceSeconds), visit_lines);
  if (!answer) return fail(no_answer(answer.error()));
  if (answer->status != 200) return refused(answer->status, answer->body);
  return {};
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
