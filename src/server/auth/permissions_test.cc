#include "server/auth/permissions.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/auth/operations.h"

namespace pawl::server {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

wire::Route route(std::string method, std::string pattern, bool open = false) {
  return {std::move(method), std::move(pattern), {}, "", nullptr, open};
}

Result<Permission> needs(wire::Route row, std::string_view context_path = "/api") {
  wire::Router router;
  router.add({std::move(row)}, wire::Dialect{});
  TRY(RoutePermissions found, route_permissions(router, context_path));
  return found.at(router.rows()[0]);
}

TEST(permissions, rows_stand_in_the_order_of_the_enum) {
  for (const PermissionRow& row : permission_rows())
    EXPECT_EQ(permission_row(row.permission).name, row.name);
}

TEST(permissions, a_caller_has_the_permissions_of_all_its_roles) {
  PermissionSet nobody = permissions_of("");
  EXPECT_TRUE(nobody.has(Permission::signed_in));
  EXPECT_FALSE(nobody.has(Permission::processes_read));
  EXPECT_EQ(permissions_of("viewers,ROLE_,view er"), nobody);
  PermissionSet both = permissions_of("viewer,,worker");
  EXPECT_TRUE(both.has(Permission::processes_read));
  EXPECT_TRUE(both.has(Permission::processes_work));
  EXPECT_FALSE(both.has(Permission::processes_model));
}

TEST(permissions, both_names_of_a_role_grant_the_same) {
  std::set<std::string_view> names;
  for (const Role& role : role_rows()) {
    EXPECT_TRUE(names.insert(role.name).second) << role.name;
    if (role.alias.empty()) continue;
    EXPECT_TRUE(names.insert(role.alias).second) << role.alias;
    EXPECT_EQ(permissions_of(role.name), permissions_of(role.alias));
  }
}

TEST(permissions, a_viewer_changes_nothing) {
  PermissionSet viewer = permissions_of("viewer");
  for (const OperationGroup& group : operation_groups()) {
    for (const Operation& row : group.operations) {
      bool changes = row.method == "DELETE" || row.method == "PUT" || row.method == "PATCH";
      // A caller that may search may end a search, and some declared operations are not
      // implemented.
      bool harmless =
          row.needs == Permission::signed_in || row.target == "/api/search/async/{job}/cancel";
      EXPECT_FALSE(changes && !harmless && viewer.has(row.needs)) << row.target;
    }
  }
}

TEST(permissions, only_members_and_machine_clients_join_as_members) {
  for (const Role& role : role_rows())
    EXPECT_EQ(role.grants.has(Permission::entities_member),
              role.name == "member" || role.name == "ROLE_M2M")
        << role.name;
}

TEST(permissions, a_refusal_names_the_roles_that_help) {
  for (const PermissionRow& row : permission_rows()) {
    if (row.permission <= Permission::signed_in) continue;
    Error error = missing_permission(row.permission);
    EXPECT_EQ(error.code, Code::denied);
    EXPECT_TRUE(permissions_of(row.role).has(row.permission)) << row.name;
    EXPECT_NE(error.message.find("role " + std::string(row.role) + " is needed"), std::string::npos)
        << error.message;
  }
}

TEST(operations, a_route_without_a_row_is_refused_at_start) {
  EXPECT_EQ(*needs(route("GET", "/v1/instances")), Permission::processes_read);
  EXPECT_FALSE(needs(route("DELETE", "/v1/instances")));
  EXPECT_FALSE(needs(route("GET", "/v1/instances/{number}")));
  EXPECT_FALSE(needs(route("GET", "/v1/instances", true)));  // open, but the row is not
  EXPECT_FALSE(needs(route("GET", "/healthz", false)));
}

TEST(operations, heads_and_slashes_have_the_permission_of_the_plain_route) {
  EXPECT_EQ(*needs(route("HEAD", "/workflows/{type}/")), Permission::lifecycle_read);
  EXPECT_EQ(*needs(route("GET", "/api/model/")), Permission::entities_read);
}

TEST(operations, the_context_path_of_entities_may_differ) {
  EXPECT_EQ(*needs(route("GET", "/else/model/"), "/else"), Permission::entities_read);
  EXPECT_EQ(*needs(route("GET", "/model/"), ""), Permission::entities_read);
  EXPECT_EQ(*needs(route("GET", "/v1/instances"), "/v1"), Permission::processes_read);
  EXPECT_FALSE(needs(route("GET", "/else/model/"), "/api"));
}

TEST(operations, no_two_rows_are_for_the_same_operation) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const OperationGroup& group : operation_groups())
    for (const Operation& row : group.operations)
      EXPECT_TRUE(seen.emplace(row.method, row.target).second) << row.method << " " << row.target;
}

TEST(operations, a_call_without_a_row_is_refused_to_everybody) {
  CallPermissions calls;
  EXPECT_TRUE(calls.check("/pawl.v1.Workers/Work", permissions_of("worker")));
  EXPECT_FALSE(calls.check("/pawl.v1.Workers/Work", permissions_of("viewer")));
  EXPECT_FALSE(calls.check("/pawl.v1.Workers/Rest", PermissionSet::all()));
  EXPECT_FALSE(calls.check("", PermissionSet::all()));
}

TEST(operations, the_page_about_security_is_printed_from_the_tables) {
  std::string page = text_of("docs/reference/security.md");
  EXPECT_NE(page.find(roles_reference()), std::string::npos)
      << "docs/reference/security.md must hold the output of `pawl permissions`";
  EXPECT_NE(page.find(operations_reference()), std::string::npos)
      << "docs/reference/security.md must hold the output of `pawl permissions`";
}

}  // namespace
}  // namespace pawl::server
