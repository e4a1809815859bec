#include "engine/http_client.h"

#include <fmt/format.h>

#include <charconv>

#include "wire/message.h"

namespace pawl::lifecycle {

namespace {

constexpr size_t kHeadBytes = 64 * 1024;
// Of one answer or one piece of a stream: a server that says more is not one of ours.
constexpr size_t kAnswerBytes = size_t{1} << 30;
constexpr size_t kIdleConnections = 64;

std::unexpected<Error> broken(std::string text) { return fail(Code::unavailable, "CONNECTION", std::move(text)); }

// Bytes of one answer as they come.
struct Incoming {
  Connection& from;
  call_options options;
  std::string bytes{};
  Result<void> more() { return from.more(bytes, options); }
};

// A whole number in this base and nothing else.
std::optional<size_t> whole(std::string_view text, int base) {
  size_t n = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (bad != std::errc() || end != text.data() + text.size() || text.empty() || n > kAnswerBytes) return std::nullopt;
  return n;
}

Result<HttpAnswer> read_head(Incoming& in) {
  size_t end;
  while ((end = in.bytes.find("\r\n\r\n")) == std::string::npos) {
    if (in.bytes.size() > kHeadBytes) return broken("the server's answer has too long a head");
    TRY_OK(in.more());
  }
  HttpAnswer out;
  std::string_view head(in.bytes.data(), end);
  size_t line_end = std::min(head.find("\r\n"), head.size());
  std::string_view first = head.substr(0, line_end);
  if (first.size() < 12 || !first.starts_with("HTTP/1.")) return broken("the peer does not speak HTTP/1.1");
  std::from_chars(first.data() + 9, first.data() + 12, out.status);
  while (line_end < head.size()) {
    head.remove_prefix(line_end + 2);
    line_end = std::min(head.find("\r\n"), head.size());
    std::string_view line = head.substr(0, line_end);
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view text = line.substr(colon + 1);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    out.headers.emplace_back(line.substr(0, colon), text);
  }
  in.bytes.erase(0, end + 4);
  return out;
}

// Hands out the pieces of a chunked body until it ends. An error when the peer breaks off.
Result<void> read_chunks(Incoming& in, const std::function<bool(std::string_view)>& piece) {
  while (true) {
    size_t line;
    while ((line = in.bytes.find("\r\n")) == std::string::npos) {
      if (in.bytes.size() > kHeadBytes) return broken("the server's answer has a chunk without a size");
      TRY_OK(in.more());
    }
    auto size = whole(std::string_view(in.bytes).substr(0, line), 16);
    if (!size) return broken("the server's answer has a chunk without a size");
    while (in.bytes.size() < line + 2 + *size + 2) { TRY_OK(in.more()); }
    bool go = *size == 0 || piece(std::string_view(in.bytes).substr(line + 2, *size));
    in.bytes.erase(0, line + 2 + *size + 2);
    if (*size == 0 || !go) return {};
  }
}

Result<void> read_body(Incoming& in, HttpAnswer& out) {
  if (out.status == 204 || out.status == 304) return {};
  if (wire::lists_token(out.header("Transfer-Encoding"), "chunked"))
    return read_chunks(in, [&](std::string_view piece) { return out.body.append(piece), true; });
  auto length = whole(out.header("Content-Length"), 10);
  if (!length) return broken("the server's answer does not say how long it is");
  while (in.bytes.size() < *length) { TRY_OK(in.more()); }
  out.body = in.bytes.substr(0, *length);
  return {};
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  const std::string* found = wire::find_header(headers, name);
  return found ? std::string_view(*found) : std::string_view();
}

Result<HttpClient> HttpClient::make(std::string_view address, HttpOptions options) {
  std::string_view rest = address;
  bool secure = rest.starts_with("https://");
  if (!secure && !rest.starts_with("http://")) return fail(Code::invalid, "BAD_ADDRESS", fmt::format("'{}' must be http://host:port or https://host:port", address));
  rest.remove_prefix(secure ? 8 : 7);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && rest.find(']', colon) != std::string_view::npos) colon = std::string_view::npos;
  Place place{std::string(rest.substr(0, colon)), secure ? "443" : "80"};
  if (colon != std::string_view::npos) place.port = rest.substr(colon + 1);
  if (place.host.starts_with('[') && place.host.ends_with(']')) place.host = place.host.substr(1, place.host.size() - 2);
  if (place.host.empty() || rest.find('/') != std::string_view::npos)
    return fail(Code::invalid, "BAD_ADDRESS", fmt::format("'{}' must be http://host:port or https://host:port", address));
  if (secure) {
    TRY(place.trust, Trust::load(options.ca_file));
  }
  return HttpClient(std::move(place), std::move(options));
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : place_(std::move(other.place_)), options_(std::move(other.options_)), idle_(std::move(other.idle_)) {}

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
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Length: {}\r\n", ask.method, ask.path, place_.host, place_.port, ask.body.size());
  if (!ask.body.empty() && !wire::find_header(ask.headers, "Content-Type")) out += "Content-Type: application/json\r\n";
  if (!options_.token.empty()) out += "Authorization: Bearer " + options_.token + "\r\n";
  for (const auto& [name, text] : ask.headers) out += name + ": " + text + "\r\n";
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
    Incoming in{*connection, options};
    auto sent = connection->write(bytes, options);
    auto answer = sent ? read_head(in) : Result<HttpAnswer>(fail(sent.error()));
    if (answer) {
      if (auto body = read_body(in, *answer); !body) answer = fail(std::move(body.error()));
    }
    if (!answer) {
      // A kept connection may have been closed before our request was read: then nothing happened.
      if (!fresh && in.bytes.empty() && (ask.method == "GET" || !sent) && !options.until.passed()) continue;
      return answer;
    }
    std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleConnections && !wire::lists_token(answer->header("Connection"), "close")) idle_.push_back(std::move(connection));
    return answer;
  }
}

int refused_with(const Error& error) {
  std::string_view reason = error.reason;
  if (!reason.starts_with("STATUS ")) return 0;
  return static_cast<int>(whole(reason.substr(7), 10).value_or(0));
}

Result<void> HttpClient::stream(const HttpAsk& ask, std::stop_token stop, const std::function<bool(std::string_view)>& piece) {
  call_options head_by(stop, deadline::in(options_.timeout));
  TRY(auto connection, Connection::open(place_, head_by));
  TRY_OK(connection->write(head(ask) + ask.body, head_by));
  Incoming in{*connection, head_by};
  TRY(HttpAnswer answer, read_head(in));
  if (answer.status == 200) {
    in.options.until = {};
    return read_chunks(in, piece);
  }
  TRY_OK(read_body(in, answer));
  return fail(Code::invalid, fmt::format("STATUS {}", answer.status), answer.body);
}

}  // namespace pawl::lifecycle
