#pragma once
// An archive in a bucket of an S3-compatible service: AWS, MinIO, Ceph, Cloudflare R2 and others
// that know PUT with `If-None-Match: *`. Requests are signed (signature.h). Paths name the bucket:
// http://host:port/bucket/prefix/name.

#include "bucket/signature.h"
#include "storage/archive.h"

namespace pawl {

struct BucketOptions {
  std::string url;  // "https://s3.eu-central-1.amazonaws.com/bucket/prefix"; the prefix is optional
  bucket::Keys keys;
  std::function<int64_t()> now;  // seconds since 1970, UTC: the service refuses other times
  std::string ca_file{};         // as in net::HttpClientOptions
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // of one request
  int attempts = 5;  // a request that did not reach the service, or that it could not serve
};

// One request carries a whole file, which is held in memory meanwhile. Larger ones are refused.
inline constexpr uint64_t kMaxBucketFileBytes = 1ull << 30;

// Asks the service once, so that wrong keys are found at the start.
Result<std::unique_ptr<Archive>> open_bucket_archive(BucketOptions options);

}  // namespace pawl
