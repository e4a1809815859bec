#pragma once
// Caller identifies who sent a request. It is recorded with the input in the frame.

#include <string>
#include <string_view>

namespace pawl {

struct Caller {
  std::string tenant;
  std::string user;
  std::string roles;  // separated by commas, without spaces
  bool has_role(std::string_view role) const;
};

}  // namespace pawl
