// The request grammar of RFC 9112, without its obsolete forms.

#include "server/http/parser.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/utf8.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

using wire::same_name;

constexpr auto kTokenChars = [] {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c)
    table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c)
    table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c)
    table[c] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return kTokenChars[c]; });
}
// A value may hold tabs and every byte from space on except DEL; never NUL, CR or LF.
bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c >= 0x20 && c != 0x7f) || c == '\t'; });
}
bool is_target(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

}  // namespace

HttpParser::State HttpParser::fail(int status, Code code, std::string reason, std::string message) {
  phase_ = Phase::failed;
  fault_ = {status, {code, std::move(reason), std::move(message)}};
  return State::failed;
}

HttpParser::State HttpParser::too_large() {
  return fail(
      413, Code::too_large, "BODY_TOO_LARGE",
      "the body is over " + std::to_string(limits_.body_bytes) + " bytes; send less at once");
}

HttpParser::State HttpParser::feed(std::string_view& in) {
  while (true) {
    State state = State::more;
    Phase before = phase_;
    switch (phase_) {
      case Phase::head: state = head(in); break;
      case Phase::fixed: state = fixed(in); break;
      case Phase::chunk_line: state = chunk_line(in); break;
      case Phase::chunk_bytes: state = chunk_bytes(in); break;
      case Phase::chunk_end: state = chunk_end(in); break;
      case Phase::trailers: state = trailers(in); break;
      case Phase::done: return State::done;
      case Phase::failed: return State::failed;
    }
    if (state == State::failed) return state;
    if (phase_ == before && state == State::more && in.empty()) return state;
  }
}

HttpParser::State HttpParser::head(std::string_view& in) {
  // RFC 9112, 2.2: empty lines before a request are ignored, even when one arrives in two pieces.
  if (held_ == "\r" && in.starts_with('\n')) {
    held_.clear();
    in.remove_prefix(1);
  }
  if (held_.empty()) {
    while (in.starts_with("\r\n"))
      in.remove_prefix(2);
    // In the common case the whole head arrives in one read, and is parsed without a copy.
    size_t end = in.find("\r\n\r\n");
    if (end != std::string_view::npos && end + 4 <= limits_.head_bytes) {
      std::string_view text = in.substr(0, end + 2);
      in.remove_prefix(end + 4);
      return parse_head(text) ? State::more : State::failed;
    }
  }
  size_t had = held_.size();
  size_t room = limits_.head_bytes + 1 - std::min(had, limits_.head_bytes + 1);
  held_.append(in.substr(0, room));
  size_t end = held_.find("\r\n\r\n", scanned_);
  if (end == std::string::npos) {
    in.remove_prefix(held_.size() - had);
    scanned_ = held_.size() < 3 ? 0 : held_.size() - 3;
    if (held_.size() <= limits_.head_bytes) return State::more;
    return fail(431, Code::too_large, "HEADERS_TOO_LARGE",
                "the request's headers are over " + std::to_string(limits_.head_bytes) + " bytes");
  }
  in.remove_prefix(end + 4 - had);
  held_.resize(end + 2);
  std::string text = std::move(held_);
  held_.clear();
  scanned_ = 0;
  return parse_head(text) ? State::more : State::failed;
}

bool HttpParser::parse_head(std::string_view text) {
  size_t end = text.find("\r\n");
  if (!request_line(text.substr(0, end))) return false;
  text.remove_prefix(end + 2);
  request_.headers.reserve(8);
  while (!text.empty()) {
    end = text.find("\r\n");
    if (!header_line(text.substr(0, end))) return false;
    text.remove_prefix(end + 2);
  }
  return meaning();
}

bool HttpParser::request_line(std::string_view line) {
  size_t first = line.find(' ');
  size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    bad("the first line must be: METHOD /path HTTP/1.1");
    return false;
  }
  std::string_view method = line.substr(0, first);
  std::string_view version = line.substr(last + 1);
  if (!is_token(method) || method.size() > 32) {
    bad("the method is not a token of at most 32 characters");
    return false;
  }
  if (!target(line.substr(first + 1, last - first - 1))) return false;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    bool http = version.starts_with("HTTP/");
    fail(http ? 505 : 400, http ? Code::unsupported : Code::invalid, "BAD_VERSION",
         "only HTTP/1.1 and HTTP/1.0 are supported");
    return false;
  }
  http10_ = version == "HTTP/1.0";
  request_.method = method;
  return true;
}

bool HttpParser::target(std::string_view target) {
  if (!is_target(target)) {
    bad("the path holds a space or a control character; percent-encode it");
    return false;
  }
  // Clients send the absolute form to proxies. Only its path is used.
  for (std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() || !same_name(target.substr(0, scheme.size()), scheme))
      continue;
    size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (target == "*") {
    request_.path = "*";
    return true;
  }
  if (!target.starts_with('/')) {
    bad("the path must begin with '/'");
    return false;
  }
  if (size_t hash = target.find('#'); hash != std::string_view::npos)
    target = target.substr(0, hash);
  // Faces store names as JSON, which must be UTF-8: other bytes could be written but not read
  // again.
  bool text = target.find('%') == std::string_view::npos
                  ? is_utf8(target)
                  : is_utf8(wire::percent_decode(target, false));
  size_t question = target.find('?');
  // Also of a request that is refused: the path decides in which dialect.
  request_.path =
      text ? std::string(target.substr(0, question)) : as_utf8(target.substr(0, question));
  if (!text) {
    bad("the path or the query is not UTF-8 after percent-decoding");
    return false;
  }
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  return true;
}

bool HttpParser::header_line(std::string_view line) {
  size_t colon = line.find(':');
  if (line.front() == ' ' || line.front() == '\t') {
    bad("a header line begins with a space; folded lines are obsolete");
    return false;
  }
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    bad("a header line is not 'Name: value'");
    return false;
  }
  std::string_view value = wire::trimmed(line.substr(colon + 1));
  if (!is_value(value)) {
    bad("the header " + std::string(line.substr(0, colon)) + " holds a control character");
    return false;
  }
  if (request_.headers.size() >= limits::kHeaderCount) {
    fail(431, Code::too_large, "HEADERS_TOO_LARGE",
         "more than " + std::to_string(limits::kHeaderCount) + " headers");
    return false;
  }
  // The header may hold any bytes; the value that is kept must be text.
  request_.headers.emplace_back(line.substr(0, colon), as_utf8(value));
  return true;
}

bool HttpParser::content_length(std::string_view value, std::optional<uint64_t>& length) {
  // "5, 5" is the same as two equal headers. Each part must agree with the length so far.
  while (true) {
    size_t comma = value.find(',');
    std::string_view part = wire::trimmed(value.substr(0, comma));
    uint64_t number = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (part.empty() || error != std::errc() || end != part.data() + part.size()) {
      bad("Content-Length is not a number");
      return false;
    }
    if (length && *length != number) {
      bad("Content-Length is given twice with different values");
      return false;
    }
    length = number;
    if (comma == std::string_view::npos) return true;
    value.remove_prefix(comma + 1);
  }
}

bool HttpParser::meaning() {
  std::optional<uint64_t> length;
  bool chunked = false, close = false, keep = false;
  int hosts = 0;
  for (const auto& [name, value] : request_.headers) {
    // Comparing the length first is fast: almost no header is one of these.
    if (name.size() == 14 && same_name(name, "Content-Length")) {
      if (!content_length(value, length)) return false;
    } else if (name.size() == 17 && same_name(name, "Transfer-Encoding")) {
      if (chunked || !same_name(value, "chunked")) {
        fail(501, Code::unsupported, "BAD_TRANSFER_ENCODING",
             "the only supported transfer coding is 'chunked', given once");
        return false;
      }
      chunked = true;
    } else if (name.size() == 10 && same_name(name, "Connection")) {
      close = close || wire::lists_token(value, "close");
      keep = keep || wire::lists_token(value, "keep-alive");
    } else if (name.size() == 6 && same_name(name, "Expect")) {
      expects_continue_ = same_name(value, "100-continue") && !http10_;
    } else if (name.size() == 4 && same_name(name, "Host")) {
      ++hosts;
    }
  }
  if (hosts > 1 || (hosts == 0 && !http10_)) {
    bad("exactly one Host header is required");
    return false;
  }
  if (chunked && (length || http10_)) {
    bad("Transfer-Encoding with Content-Length or HTTP/1.0 makes the end of the body ambiguous");
    return false;
  }
  keep_alive_ = http10_ ? keep && !close : !close;
  left_ = length.value_or(0);
  if (left_ > limits_.body_bytes) {
    too_large();
    return false;
  }
  phase_ = chunked ? Phase::chunk_line : left_ > 0 ? Phase::fixed : Phase::done;
  if (phase_ == Phase::done) expects_continue_ = false;
  return true;
}

bool HttpParser::take_continue() {
  bool expected = expects_continue_ && phase_ != Phase::head && phase_ != Phase::done &&
                  phase_ != Phase::failed;
  if (expected) expects_continue_ = false;
  return expected;
}

HttpParser::State HttpParser::fixed(std::string_view& in) {
  // Memory grows with the bytes that arrive, not with the length that the header claims.
  size_t part = std::min<uint64_t>(left_, in.size());
  if (request_.body.empty()) request_.body.reserve(std::min<uint64_t>(left_, 64 * 1024));
  request_.body.append(in.substr(0, part));
  in.remove_prefix(part);
  left_ -= part;
  if (left_ == 0) phase_ = Phase::done;
  return State::more;
}

std::optional<std::string> HttpParser::line(std::string_view& in, size_t limit) {
  size_t end = in.find('\n');
  size_t part = end == std::string_view::npos ? in.size() : end + 1;
  if (held_.size() + part > limit) {
    bad("a chunk line is over " + std::to_string(limit) + " bytes");
    return std::nullopt;
  }
  held_.append(in.substr(0, part));
  in.remove_prefix(part);
  if (end == std::string_view::npos) return std::nullopt;
  if (!held_.ends_with("\r\n")) {
    bad("a line of the chunked body does not end with CR LF");
    return std::nullopt;
  }
  held_.resize(held_.size() - 2);
  return std::exchange(held_, {});
}

HttpParser::State HttpParser::chunk_line(std::string_view& in) {
  std::optional<std::string> text = line(in, limits::kChunkLineBytes);
  if (!text) return phase_ == Phase::failed ? State::failed : State::more;
  if (!is_value(*text)) return bad("a chunk line holds a control character");
  size_t end = text->find(';');
  std::string_view size = wire::trimmed(std::string_view(*text).substr(0, end));
  uint64_t number = 0;
  auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), number, 16);
  if (size.empty() || error != std::errc() || stop != size.data() + size.size())
    return bad("a chunk's size is not a hexadecimal number");
  if (number > limits_.body_bytes - request_.body.size()) return too_large();
  left_ = number;
  phase_ = number == 0 ? Phase::trailers : Phase::chunk_bytes;
  return State::more;
}

HttpParser::State HttpParser::chunk_bytes(std::string_view& in) {
  size_t part = std::min<uint64_t>(left_, in.size());
  request_.body.append(in.substr(0, part));
  in.remove_prefix(part);
  left_ -= part;
  if (left_ == 0) phase_ = Phase::chunk_end;
  return State::more;
}

HttpParser::State HttpParser::chunk_end(std::string_view& in) {
  if (in.empty()) return State::more;
  std::optional<std::string> text = line(in, 2);
  if (!text) return phase_ == Phase::failed ? State::failed : State::more;
  phase_ = Phase::chunk_line;
  return State::more;
}

HttpParser::State HttpParser::trailers(std::string_view& in) {
  if (in.empty()) return State::more;
  std::optional<std::string> text = line(in, limits::kChunkLineBytes);
  if (!text) return phase_ == Phase::failed ? State::failed : State::more;
  trailer_bytes_ += text->size();
  if (trailer_bytes_ > limits::kChunkLineBytes) return bad("the trailers are too long");
  // Trailers are read and ignored.
  if (text->empty()) phase_ = Phase::done;
  return State::more;
}

wire::Request HttpParser::take() {
  CHECK(phase_ == Phase::done);
  wire::Request request = std::move(request_);
  request_ = {};
  phase_ = Phase::head;
  left_ = 0;
  trailer_bytes_ = 0;
  expects_continue_ = false;
  return request;
}

}  // namespace pawl::server
