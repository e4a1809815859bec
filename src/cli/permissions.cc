// `pawl permissions` prints the tables of roles and operations.

#include <fmt/format.h>

#include "cli/command.h"
#include "server/auth/operations.h"

namespace pawl::cli {
namespace {

json::Value permissions_json() {
  json::Array roles, operations;
  for (const server::Role& role : server::role_rows()) {
    json::Array names;
    for (const server::PermissionRow& row : server::permission_rows())
      if (role.grants.has(row.permission)) names.push_back(row.name);
    roles.push_back(json::object(
        {{"role", role.name}, {"alias", role.alias}, {"permissions", std::move(names)}}));
  }
  for (const server::OperationGroup& group : server::operation_groups())
    for (const server::Operation& row : group.operations)
      operations.push_back(json::object({{"group", group.title},
                                         {"method", row.method},
                                         {"target", row.target},
                                         {"permission", server::permission_row(row.needs).name}}));
  return json::object({{"roles", std::move(roles)}, {"operations", std::move(operations)}});
}

Result<int> run(const Args& args) {
  show(args, permissions_json(),
       [] { fmt::print("{}\n{}", server::roles_reference(), server::operations_reference()); });
  return kDone;
}

constexpr Command kPermissionCommands[] = {
    {"permissions",
     "",
     "print which permissions each role has and which one each operation needs, in Markdown",
     {},
     run},
};

}  // namespace

std::span<const Command> permission_commands() { return kPermissionCommands; }

}  // namespace pawl::cli
