#pragma once
// The routes of the admin listener: is it alive, is it ready, what does it measure.

#include "server/ops/metrics.h"
#include "wire/route.h"

namespace pawl::server {

// A check answers whether one part can do its work now; it must not block.
struct AdminCheck {
  std::string name;
  std::function<Result<void>()> check;
};

struct AdminOptions {
  std::vector<AdminCheck> ready;    // all must pass for /readyz
  std::vector<AdminCheck> started;  // all must pass for /startupz
  std::string metrics_bearer{};     // when set, /metrics wants it
};

// `metrics` must outlive the routes.
std::vector<wire::Route> admin_routes(const Metrics& metrics, AdminOptions options);

}  // namespace pawl::server
