#pragma once
// Parses HTTP/1.x requests from bytes. The parser is strict wherever a proxy and this server could
// disagree about where a request ends: it refuses both lengths at once, differing lengths, folded
// lines, spaces before the colon, unknown transfer codings and bare line feeds. (The parser of
// Boost.Beast unfolds lines and ignores unknown codings, so it is not used.)

#include <optional>

#include "base/limits.h"
#include "wire/message.h"

namespace pawl::server {

// The reason why a request is refused before it reaches a handler, and the status of the refusal.
struct HttpFault {
  int status = 400;
  Error error;
};

struct HttpLimits {
  size_t head_bytes = limits::kHeadBytes;
  size_t body_bytes = limits::kBodyBytes;
};

class HttpParser {
 public:
  explicit HttpParser(HttpLimits limits) : limits_(limits) {}

  enum class State {
    more,    // all bytes were consumed; the request is not complete yet
    done,    // the request is complete: take() it; bytes after it were not consumed
    failed,  // see fault(); the connection must be closed
  };
  // Consumes bytes of the current request from the front of `in`.
  State feed(std::string_view& in);

  // Returns the complete request and starts over.
  wire::Request take();
  const wire::Request& request() const { return request_; }  // the part that was parsed so far
  wire::Request& request() { return request_; }
  const HttpFault& fault() const { return fault_; }

  // True while bytes of a body are missing: the head is complete, so the request can be judged.
  bool in_body() const {
    return phase_ != Phase::head && phase_ != Phase::done && phase_ != Phase::failed;
  }
  // Bytes of the incomplete request that are held.
  size_t held_bytes() const { return held_.size() + request_.body.size(); }
  // Frees the body of a request that was refused.
  void drop_body() { request_.body = {}; }
  bool idle() const {
    return phase_ == Phase::head && held_.empty();
  }  // no byte of a request has come
  // True once for each request that waits for "100 Continue" before it sends its body.
  bool take_continue();
  bool keep_alive() const { return keep_alive_; }  // of the complete request, until take()
  bool http10() const { return http10_; }

 private:
  enum class Phase { head, fixed, chunk_line, chunk_bytes, chunk_end, trailers, done, failed };

  State head(std::string_view& in);
  State fixed(std::string_view& in);
  State chunk_line(std::string_view& in);
  State chunk_bytes(std::string_view& in);
  State chunk_end(std::string_view& in);
  State trailers(std::string_view& in);
  State fail(int status, Code code, std::string reason, std::string message);
  State bad(std::string message) {
    return fail(400, Code::invalid, "BAD_REQUEST", std::move(message));
  }
  State too_large();

  bool parse_head(std::string_view text);
  bool request_line(std::string_view line);
  bool target(std::string_view target);
  bool header_line(std::string_view line);
  bool meaning();  // interprets the headers: body length, connection, expectation
  bool content_length(std::string_view value, std::optional<uint64_t>& length);
  // Returns the next line up to CRLF, or nothing while it is incomplete. A line longer than `limit`
  // fails.
  std::optional<std::string> line(std::string_view& in, size_t limit);

  HttpLimits limits_;
  Phase phase_ = Phase::head;
  wire::Request request_;
  HttpFault fault_;
  std::string held_;    // bytes of an incomplete head or line
  size_t scanned_ = 0;  // bytes of held_ that were searched for the end of the head
  uint64_t left_ = 0;   // bytes left of the body or of the current chunk
  size_t trailer_bytes_ = 0;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool expects_continue_ = false;
};

}  // namespace pawl::server
