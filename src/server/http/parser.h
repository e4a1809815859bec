#pragma once
// Bytes of HTTP/1.x become requests. Strict where laxness lets a proxy and us disagree about where
// a request ends: both lengths at once, differing lengths, folded lines, spaces before the colon,
// unknown transfer codings and bare line feeds are refused. (Boost.Beast's parser unfolds lines and
// passes over unknown codings, so it is not used.)

#include <optional>

#include "base/limits.h"
#include "wire/message.h"

namespace pawl::server {

// Why a request cannot be answered by a handler, and with which status.
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
    more,    // everything given was used; the request is not whole yet
    done,    // take() it; bytes after it were left
    failed,  // see fault(); the connection cannot go on
  };
  // Takes from the front of `in` what belongs to the current request.
  State feed(std::string_view& in);

  // The request that is done; the parser begins anew.
  wire::Request take();
  const wire::Request& request() const { return request_; }  // as far as it is known
  const HttpFault& fault() const { return fault_; }

  bool idle() const {
    return phase_ == Phase::head && held_.empty();
  }  // no byte of a request was seen
  // True once, when the head is there, a body is expected, and the client waits for "100 Continue".
  bool take_continue();
  bool keep_alive() const { return keep_alive_; }  // of the request that is done, until take()
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
  bool meaning();  // of the headers together: body, connection, expectation
  bool content_length(std::string_view value, std::optional<uint64_t>& length);
  // A line up to CRLF, gathered across feeds; nothing while it is not whole. Longer than `limit`
  // fails.
  std::optional<std::string> line(std::string_view& in, size_t limit);

  HttpLimits limits_;
  Phase phase_ = Phase::head;
  wire::Request request_;
  HttpFault fault_;
  std::string held_;    // bytes of an incomplete head or line
  size_t scanned_ = 0;  // of held_, already searched for the end of the head
  uint64_t left_ = 0;   // of the body or of the current chunk
  size_t trailer_bytes_ = 0;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool expects_continue_ = false;
};

}  // namespace pawl::server
