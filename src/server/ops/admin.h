#pragma once
// The routes of the admin listener: liveness, readiness and metrics. The table of operations
// (auth/operations.cc) says which of them need a token.

#include "server/ops/metrics.h"
#include "wire/route.h"

namespace pawl::server {

// A check tells whether one part of the server works now. It must not block.
struct AdminCheck {
  std::string name;
  std::function<Result<void>()> check;
};

struct AdminOptions {
  std::vector<AdminCheck> ready;    // all must pass for /readyz
  std::vector<AdminCheck> started;  // all must pass for /startupz
  std::string metrics_bearer{};     // the bearer token that /metrics requires; empty: none
};

// `metrics` must outlive the routes.
std::vector<wire::Route> admin_routes(const Metrics& metrics, AdminOptions options);

}  // namespace pawl::server
