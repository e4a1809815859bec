#pragma once
// Caller identifies who sent a request. It is recorded with the input in the frame.

#include <string>
#include <string_view>

namespace pawl {

// The tenant of every caller of a server without authentication, and of an embedded engine whose
// program names none: such a server and such a program may use one data directory in turn.
inline constexpr char kDefaultTenant[] = "mock-tenant";

struct Caller {
  std::string tenant;
  std::string user;
  std::string roles;  // separated by commas, without spaces
  bool has_role(std::string_view role) const;
};

}  // namespace pawl
