#pragma once
// The one table of operations: for each HTTP route, gRPC method and admin route the permission that
// its caller needs. A route without a row stops the start of the server; a gRPC method without a
// row is refused to everybody.

#include <unordered_map>

#include "server/auth/permissions.h"
#include "wire/route.h"

namespace pawl::server {

struct Operation {
  // An HTTP method, or "gRPC".
  std::string_view method;
  // The pattern of the route, or the full name of the gRPC method. An entities call carries events:
  // the type of the event follows the name after a space.
  std::string_view target;
  Permission needs;
};

struct OperationGroup {
  std::string_view title;
  std::span<const Operation> operations;
};
std::span<const OperationGroup> operation_groups();

inline constexpr std::string_view kDefaultContextPath = "/api";

// The permissions of a router's routes, found once when the server starts.
using RoutePermissions = std::unordered_map<const wire::Route*, Permission>;
// `context_path` is the prefix of the entities API; the table has its rows under /api. Fails when a
// route has no row, or when the route is open and its row is not, or the reverse.
Result<RoutePermissions> route_permissions(const wire::Router& router,
                                           std::string_view context_path = kDefaultContextPath);

// Whether an operation leases jobs or waits for them, by the pattern of its route or the name of
// its gRPC method.
bool leases_jobs(std::string_view target);

// The permissions of the gRPC calls, by target.
class CallPermissions {
 public:
  CallPermissions();
  // The permission that the call needs. Fails unless the set has it.
  Result<Permission> check(std::string_view target, PermissionSet granted) const;

 private:
  std::unordered_map<std::string_view, Permission> needs_;
};

// The table in Markdown, for docs/reference/security.md.
std::string operations_reference();

}  // namespace pawl::server
