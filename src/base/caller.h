#pragma once
// A caller is who asks: it goes with every input into its frame.

#include <string>
#include <string_view>

namespace pawl {

struct Caller {
  std::string tenant;
  std::string user;
  std::string roles;  // comma-joined
  bool has_role(std::string_view role) const;
};

}  // namespace pawl
