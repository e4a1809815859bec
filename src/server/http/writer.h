#pragma once
// Responses become bytes of HTTP/1.1.

#include "wire/message.h"

namespace pawl::server {

enum class Framing {
  length,   // Content-Length and the body
  chunked,  // pieces follow, each with its size
  close,    // pieces follow until the connection ends (HTTP/1.0)
  none,     // the head is all there is: HEAD, 101
};

struct HeadOptions {
  Framing framing = Framing::length;
  bool keep_alive = true;
  bool http10 = false;
  std::string_view date;  // "Sun, 06 Nov 1994 08:49:37 GMT"
};

// Appends status line and headers. Headers that frame the message are ours; those of the response
// with control characters are left out, so that no value can begin another header.
void append_head(Bytes& out, const wire::Response& response, const HeadOptions& options);
void append_chunk(Bytes& out,
                  BytesView piece);  // nothing for an empty piece: that would be the end
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// The Date header of the second that `unix_seconds` names.
std::string http_date(int64_t unix_seconds);

}  // namespace pawl::server
