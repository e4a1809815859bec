#pragma once
// Permissions and roles. A role is a set of permissions; a caller has the permissions of all its
// roles. operations.h says which permission each operation needs.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/caller.h"
#include "base/result.h"

namespace pawl::server {

enum class Permission : uint8_t {
  open,
  signed_in,
  processes_read,
  processes_write,
  processes_work,
  processes_operate,
  processes_model,
  entities_read,
  entities_write,
  entities_model,
  entities_member,
  lifecycle_read,
  lifecycle_operate,
  lifecycle_write,
  lifecycle_model,
  worlds_read,
  worlds_write,
  worlds_work,
  worlds_operate,
  worlds_model,
  worlds_secrets,
  tenant_access,
  server_operate,
};
inline constexpr size_t kPermissionCount = static_cast<size_t>(Permission::server_operate) + 1;

class PermissionSet {
 public:
  constexpr PermissionSet() = default;
  template <class... P>
  constexpr explicit PermissionSet(P... permissions) : bits_((bit(permissions) | ... | 0)) {}
  constexpr bool has(Permission permission) const { return bits_ & bit(permission); }
  constexpr PermissionSet with(PermissionSet other) const { return from(bits_ | other.bits_); }
  constexpr PermissionSet without(Permission permission) const {
    return from(bits_ & ~bit(permission));
  }
  static constexpr PermissionSet all() { return from((uint64_t{1} << kPermissionCount) - 1); }
  bool operator==(const PermissionSet&) const = default;

 private:
  static constexpr uint64_t bit(Permission p) { return uint64_t{1} << static_cast<unsigned>(p); }
  static constexpr PermissionSet from(uint64_t bits) {
    PermissionSet set;
    set.bits_ = bits;
    return set;
  }
  uint64_t bits_ = 0;
};

struct PermissionRow {
  Permission permission;
  std::string_view name;  // "processes.read"
  std::string_view role;  // the role that a refusal recommends
  std::string_view doc;
};
const PermissionRow& permission_row(Permission permission);
std::span<const PermissionRow> permission_rows();

struct Role {
  std::string_view name;
  std::string_view alias;  // a second name of the same role, or empty
  PermissionSet grants;
  std::string_view doc;
};
std::span<const Role> role_rows();

// The permissions of a caller's roles: names separated by commas. Unknown roles grant nothing.
// Every caller is `open` and `signed_in`.
PermissionSet permissions_of(std::string_view roles);

// Whether operations with this permission store what their caller sends: writes and models. Work
// and operation of what is stored already do not count.
bool adds_data(Permission permission);

// The refusal of a caller who lacks the permission. It names the roles that have it.
Error missing_permission(Permission permission);

// The tables of permissions and roles in Markdown, for docs/reference/security.md.
std::string roles_reference();

}  // namespace pawl::server
