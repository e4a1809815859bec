#pragma once
// Routes behind the table of operations, for tests of a face that have no server: the caller is
// already named in the request.

#include "server/auth/operations.h"

namespace pawl::server {

class GuardedRouter {
 public:
  // Call it after the last route is added.
  void guard(const wire::Router& router) {
    router_ = &router;
    auto found = route_permissions(router);
    CHECK(found);
    permissions_ = *std::move(found);
  }
  void dispatch(wire::Request request, wire::Respond respond) const {
    wire::Match match = router_->find(request.method, request.path);
    if (match.route) {
      Permission needs = permissions_.at(match.route);
      if (!permissions_of(request.caller.roles).has(needs))
        return respond(router_->refuse(request, missing_permission(needs)));
    }
    router_->dispatch(std::move(request), std::move(respond));
  }

 private:
  const wire::Router* router_ = nullptr;
  RoutePermissions permissions_;
};

}  // namespace pawl::server
