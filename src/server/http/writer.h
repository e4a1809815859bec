#pragma once
// Writes responses as bytes of HTTP/1.1.

#include "wire/message.h"

namespace pawl::server {

enum class Framing {
  length,   // Content-Length and the body
  chunked,  // the pieces follow, each with its size
  close,    // the pieces follow until the connection ends (HTTP/1.0)
  none,     // no body: HEAD, 101
};

struct HeadOptions {
  Framing framing = Framing::length;
  bool keep_alive = true;
  bool http10 = false;
  std::string_view date;  // "Sun, 06 Nov 1994 08:49:37 GMT"
};

// Appends the status line and the headers. The writer sets the headers that frame the message. It
// leaves out headers with control characters, so that no value can begin another header.
void append_head(Bytes& out, const wire::Response& response, const HeadOptions& options);
void append_chunk(Bytes& out,
                  BytesView piece);  // writes nothing for an empty piece, which would end the body
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// The value of the Date header.
std::string http_date(int64_t unix_seconds);

}  // namespace pawl::server
