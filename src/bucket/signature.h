#pragma once
// Signs requests to an S3-compatible service: AWS signature version 4, in the header Authorization,
// over the whole body.

#include "net/http_client.h"

namespace pawl::bucket {

struct Keys {
  std::string id;      // access key id
  std::string secret;  // secret access key
  std::string region;  // "eu-central-1"; services that have none accept any
};

// A request before it is signed. `query` has its names and values as they are, not encoded.
struct Plain {
  std::string method;
  std::string host;  // as sent in the header Host, with the port if it is not the default
  std::string path;  // as it is, not encoded
  std::vector<std::pair<std::string, std::string>> query{};
  wire::Headers headers{};
  BytesView body{};
};

// The headers to send: those of the request, Host, x-amz-date, x-amz-content-sha256 and
// Authorization. `seconds` since 1970, UTC.
wire::Headers sign(const Plain& request, const Keys& keys, int64_t seconds);
// Path and query as they are sent and signed.
std::string target_of(const Plain& request);
// Everything but letters, digits and "-._~" as %XX; `keep_slash` leaves '/' as it is.
std::string percent_encode(std::string_view text, bool keep_slash);

}  // namespace pawl::bucket
