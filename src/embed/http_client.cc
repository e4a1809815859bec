#include "embed/http_client.h"

#include <fmt/format.h>

#include <charconv>

#include "base/limits.h"

namespace pawl::lifecycle {

namespace {

// Of one answer or one piece of a stream: a server that says more is not one of ours.
constexpr size_t kAnswerBytes = size_t{1} << 30;
constexpr size_t kIdleConnections = 64;

// What `from` says; `options` may change between two reads. With `silence`, what is waited for is a
// sign of life and not the end.
wire::AnswerReader reader(Connection& from, const call_options& options,
                          const std::chrono::seconds* silence = nullptr) {
  auto more = [&from, &options, silence](Bytes& onto) -> Result<bool> {
    call_options now = options;
    if (silence && silence->count()) now.until = deadline::in(*silence);
    TRY_OK(from.more(onto, now));
    return true;
  };
  return {more,
          [](std::string why) {
            return Error{Code::unavailable, "CONNECTION",
                         "the server's answer is none: " + std::move(why)};
          },
          kAnswerBytes};
}

Result<HttpAnswer> read_whole(wire::AnswerReader& in, std::string_view method) {
  TRY(wire::AnswerHead head, in.head());
  TRY(Bytes body, in.body(head, method));
  head.closes = head.closes || !in.nothing_left();
  return HttpAnswer{std::move(head), std::move(body)};
}

}  // namespace

Result<HttpClient> HttpClient::make(std::string_view address, HttpOptions options) {
  std::string_view rest = address;
  bool secure = rest.starts_with("https://");
  if (!secure && !rest.starts_with("http://"))
    return fail(Code::invalid, "BAD_ADDRESS",
                fmt::format("'{}' must be http://host:port or https://host:port", address));
  rest.remove_prefix(secure ? 8 : 7);
  while (rest.ends_with('/'))
    rest.remove_suffix(1);
  auto [host, port] = wire::host_and_port(rest, secure ? "443" : "80");
  Place place{std::move(host), std::move(port)};
  if (place.host.empty() || rest.find('/') != std::string_view::npos)
    return fail(Code::invalid, "BAD_ADDRESS",
                fmt::format("'{}' must be http://host:port or https://host:port", address));
  if (secure) {
    TRY(place.trust, Trust::load(options.ca_file));
  }
  return HttpClient(std::move(place), std::move(options));
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : place_(std::move(other.place_)),
      options_(std::move(other.options_)),
      idle_(std::move(other.idle_)) {}

std::unique_ptr<Connection> HttpClient::kept() {
  std::lock_guard lock(mutex_);
  while (!idle_.empty()) {
    auto out = std::move(idle_.back());
    idle_.pop_back();
    if (out->unused()) return out;
  }
  return nullptr;
}

std::string HttpClient::head(const HttpAsk& ask) const {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Length: {}\r\n",
                                ask.method, ask.path, place_.host, place_.port, ask.body.size());
  if (!ask.body.empty() && !wire::find_header(ask.headers, "Content-Type"))
    out += "Content-Type: application/json\r\n";
  if (!options_.token.empty()) out += "Authorization: Bearer " + options_.token + "\r\n";
  for (const auto& [name, text] : ask.headers)
    out += name + ": " + text + "\r\n";
  return out + "\r\n";
}

Result<HttpAnswer> HttpClient::send(const HttpAsk& ask, deadline until) {
  std::string bytes = head(ask) + ask.body;
  call_options options(by(until));
  while (true) {
    std::unique_ptr<Connection> connection = kept();
    bool fresh = !connection;
    if (fresh) {
      TRY(connection, Connection::open(place_, options));
    }
    wire::AnswerReader in = reader(*connection, options);
    auto sent = connection->write(bytes, options);
    auto answer = sent ? read_whole(in, ask.method) : Result<HttpAnswer>(fail(sent.error()));
    if (!answer) {
      // A kept connection may have been closed before our request was read: then nothing happened.
      if (!fresh && in.nothing_came() && (ask.method == "GET" || !sent) && !options.until.passed())
        continue;
      return answer;
    }
    std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleConnections && !answer->closes) idle_.push_back(std::move(connection));
    return answer;
  }
}

int refused_with(const Error& error) {
  std::string_view reason = error.reason;
  if (!reason.starts_with("STATUS ")) return 0;
  int status = 0;
  std::from_chars(reason.data() + 7, reason.data() + reason.size(), status);
  return status;
}

Result<void> HttpClient::stream(const HttpAsk& ask, std::stop_token stop,
                                const std::function<bool(std::string_view)>& piece) {
  call_options options(stop, deadline::in(options_.timeout));
  TRY(auto connection, Connection::open(place_, options));
  TRY_OK(connection->write(head(ask) + ask.body, options));
  std::chrono::seconds silence{0};
  wire::AnswerReader in = reader(*connection, options, &silence);
  TRY(wire::AnswerHead answer, in.head());
  if (answer.status == 200) {
    silence = std::chrono::seconds(limits::kClientSilenceSeconds);
    return in.pieces(answer, piece);
  }
  TRY(Bytes body, in.body(answer, ask.method));
  return fail(Code::invalid, fmt::format("STATUS {}", answer.status), body);
}

}  // namespace pawl::lifecycle
