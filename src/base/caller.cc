#include "base/caller.h"

namespace pawl {

// Compares whole names, so the role "admin" is not found in "administrator".
bool Caller::has_role(std::string_view role) const {
  std::string_view left = roles;
  while (!left.empty()) {
    size_t comma = left.find(',');
    if (left.substr(0, comma) == role) return true;
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace pawl
