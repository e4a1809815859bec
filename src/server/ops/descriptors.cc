#include "server/ops/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace pawl::server {
namespace {

// More is never needed; some systems allow a billion, and tables by descriptor would grow with it.
constexpr rlim_t kMaxDescriptors = 65'536;
// Kept for files (the rows may open 512), outgoing connections and refusals; at most five eighths
// of all, which is enough for a limit of 1024.
constexpr size_t kReserved = 1024;
constexpr size_t kGrpcConnections = 10'000;
// Probes and scrapers are few.
constexpr size_t kAdminConnections = 100;

}  // namespace

size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  rlimit raised = limit;
  raised.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMaxDescriptors));
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return static_cast<size_t>(limit.rlim_cur);
}

ConnectionShares share_descriptors(size_t limit, size_t http) {
  ConnectionShares shares;
  const size_t for_connections = limit - std::min(kReserved, limit * 5 / 8);
  shares.admin = std::max<size_t>(1, std::min(kAdminConnections, for_connections / 10));
  const size_t left = for_connections - std::min(for_connections, shares.admin);
  shares.http = std::max<size_t>(1, std::min(http, left / 2));
  shares.grpc = std::max<size_t>(1, std::min(kGrpcConnections, left - std::min(left, shares.http)));
  return shares;
}

}  // namespace pawl::server
