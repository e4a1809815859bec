// The tables of permissions and roles.

#include "server/auth/permissions.h"

#include <fmt/format.h>

#include <array>

namespace pawl::server {
namespace {

using enum Permission;

constexpr PermissionRow kPermissions[] = {
    {open, "open", "", "no token is needed"},
    {signed_in, "signed-in", "", "any valid token, whatever its roles"},
    {processes_read, "processes.read", "viewer", "read definitions, instances, tasks, incidents"},
    {processes_write, "processes.write", "user", "start instances, complete tasks, send signals"},
    {processes_work, "processes.work", "worker", "lease, complete and fail jobs"},
    {processes_operate, "processes.operate", "operator",
     "cancel, retry, move, migrate, pause and resume instances, definitions and job types"},
    {processes_model, "processes.model", "modeller", "check, try and upload definitions"},
    {entities_read, "entities.read", "viewer", "read and search models, entities, audit, messages"},
    {entities_write, "entities.write", "user",
     "create, change, move and delete entities and messages"},
    {entities_model, "entities.model", "modeller",
     "import, lock, change and delete models and workflows"},
    {entities_member, "entities.member", "member", "join as a compute member"},
    {lifecycle_read, "lifecycle.read", "viewer", "read and watch types, instances, rules"},
    {lifecycle_operate, "lifecycle.operate", "operator",
     "move instances along edges and patch the fields that operators may write"},
    {lifecycle_write, "lifecycle.write", "program",
     "create, replace, move and remove instances, run rules and actions"},
    {lifecycle_model, "lifecycle.model", "program", "declare types and rules"},
    {worlds_read, "worlds.read", "viewer", "read worlds, journals, traces, workspaces, blobs"},
    {worlds_write, "worlds.write", "user", "send events, write workspaces and blobs"},
    {worlds_work, "worlds.work", "worker", "lease open effects, send frames and receipts"},
    {worlds_operate, "worlds.operate", "operator", "checkpoint, compact, collect garbage"},
    {worlds_model, "worlds.model", "modeller", "create and fork worlds, govern manifests"},
    {worlds_secrets, "worlds.secrets", "admin", "read and write secret bindings"},
    {tenant_access, "tenant.access", "admin",
     "manage the machine clients and the keys of the tenant"},
    {server_operate, "server.operate", "operator",
     "back up, read metrics, set the log level; only for callers of the operator's tenant"},
};
static_assert(std::size(kPermissions) == kPermissionCount);

constexpr PermissionSet kReadAll(processes_read, entities_read, lifecycle_read, worlds_read);

// A name that begins with ROLE_ is spelled as the originals' clients spell it.
constexpr Role kRoles[] = {
    {"viewer", "ROLE_VIEWER", kReadAll, "reads everything of its tenant and changes nothing"},
    {"worker", "ROLE_WORKER", PermissionSet(processes_work, worlds_work), "does jobs and effects"},
    {"member", "ROLE_MEMBER", PermissionSet(entities_member, entities_read, entities_write),
     "a compute member of entities with its callbacks"},
    {"user", "ROLE_USER",
     PermissionSet(processes_read, processes_write, entities_read, entities_write, entities_model,
                   worlds_read, worlds_write),
     "an application that acts for a person; may import models, as in the original"},
    {"operator", "ROLE_OPERATOR",
     kReadAll.with(
         PermissionSet(processes_operate, lifecycle_operate, worlds_operate, server_operate)),
     "repairs what runs; in the operator's tenant also operates the server"},
    {"modeller", "ROLE_MODELLER",
     kReadAll.with(PermissionSet(processes_model, entities_model, lifecycle_model, worlds_model)),
     "writes definitions, models, types, rules and manifests"},
    {"program", "ROLE_PROGRAM",
     PermissionSet(lifecycle_read, lifecycle_operate, lifecycle_write, lifecycle_model),
     "an application that owns lifecycle types"},
    {"ROLE_M2M", "",
     PermissionSet(processes_read, processes_write, processes_work, processes_operate,
                   processes_model)
         .with(PermissionSet(entities_read, entities_write, entities_model, entities_member))
         .with(PermissionSet(worlds_read, worlds_write, worlds_work, worlds_operate, worlds_model)),
     "a machine client of the original: everything in processes, entities and worlds but access "
     "and secrets"},
    // The original refuses a member stream to a caller that is only an admin.
    {"admin", "ROLE_ADMIN", PermissionSet::all().without(entities_member),
     "everything but joining as a compute member"},
};

const Role* find_role(std::string_view name) {
  for (const Role& role : kRoles)
    if (role.name == name || (!role.alias.empty() && role.alias == name)) return &role;
  return nullptr;
}

}  // namespace

std::span<const PermissionRow> permission_rows() { return kPermissions; }
std::span<const Role> role_rows() { return kRoles; }

const PermissionRow& permission_row(Permission permission) {
  const PermissionRow& row = kPermissions[static_cast<size_t>(permission)];
  CHECK(row.permission == permission);  // the rows stand in the order of the enum
  return row;
}

PermissionSet permissions_of(std::string_view roles) {
  PermissionSet out(open, signed_in);
  while (!roles.empty()) {
    size_t comma = roles.find(',');
    if (const Role* role = find_role(roles.substr(0, comma))) out = out.with(role->grants);
    roles = comma == std::string_view::npos ? std::string_view() : roles.substr(comma + 1);
  }
  return out;
}

bool adds_data(Permission permission) {
  return PermissionSet(Permission::processes_write, Permission::processes_model,
                       Permission::entities_write, Permission::entities_model,
                       Permission::lifecycle_write, Permission::lifecycle_model,
                       Permission::worlds_write, Permission::worlds_model)
      .has(permission);
}

Error missing_permission(Permission permission) {
  const PermissionRow& row = permission_row(permission);
  std::string others;
  for (const Role& role : kRoles) {
    if (role.name == row.role || !role.grants.has(permission)) continue;
    others += (others.empty() ? "" : ", ") + std::string(role.name);
  }
  std::string message = fmt::format("role {} is needed", row.role);
  if (!others.empty()) message += fmt::format(" (or {})", others);
  message += fmt::format(" for the permission {}", row.name);
  if (permission == server_operate)
    message += ", and the caller must belong to the operator's tenant (--operator-tenant)";
  return {Code::denied, "FORBIDDEN", std::move(message)};
}

std::string roles_reference() {
  std::string out = "| permission | allows to |\n|---|---|\n";
  for (const PermissionRow& row : kPermissions)
    out += fmt::format("| `{}` | {} |\n", row.name, row.doc);
  out += "\n| role | also called | permissions | meaning |\n|---|---|---|---|\n";
  for (const Role& role : kRoles) {
    std::string names;
    for (const PermissionRow& row : kPermissions) {
      if (!role.grants.has(row.permission) || row.permission <= signed_in) continue;
      names += fmt::format("{}`{}`", names.empty() ? "" : " ", row.name);
    }
    std::string alias = role.alias.empty() ? "" : fmt::format("`{}`", role.alias);
    out += fmt::format("| `{}` | {} | {} | {} |\n", role.name, alias, names, role.doc);
  }
  return out;
}

}  // namespace pawl::server
