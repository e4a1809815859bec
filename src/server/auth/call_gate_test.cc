#include "server/auth/call_gate.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

constexpr char kStart[] = "/workflow.v1.WorkflowEngine/StartInstance";
constexpr char kRead[] = "/workflow.v1.WorkflowEngine/GetInstance";

std::unique_ptr<Authenticator> everybody(TenantLimits limits) {
  AuthOptions options;
  options.limits = limits;
  return *Authenticator::make(std::move(options), [] { return Time{0}; });
}

std::string reason(const Result<wire::AdmittedCall>& result) {
  return result ? "" : result.error().reason;
}

TEST(call_gate, the_host_name_is_checked_as_over_http) {
  auto auth = everybody({});
  CallGate gate(*auth, {.allowed_hosts = {"pawl.example"}});
  for (const char* host : {"", "localhost:9090", "127.0.0.1:9090", "[::1]:9090", "pawl.example"})
    EXPECT_TRUE(gate.admit({.operation = kRead, .authority = host})) << host;
  auto refused = gate.admit({.operation = kRead, .authority = "evil.example:9090"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_EQ(refused.error().reason, "UNKNOWN_HOST");
}

TEST(call_gate, streams_are_counted_while_their_seat_is_held) {
  auto auth = everybody({.streams = 1});
  CallGate gate(*auth, {});
  wire::Call call{.operation = "/pawl.v1.Workers/Work", .stream = true};
  auto first = gate.admit(call);
  ASSERT_TRUE(first);
  EXPECT_EQ(reason(gate.admit(call)), "TENANT_STREAMS");
  EXPECT_TRUE(gate.admit({.operation = kRead}));
  first->seat.reset();
  EXPECT_TRUE(gate.admit(call));
}

TEST(call_gate, requests_are_counted) {
  auto auth = everybody({.requests_per_second = 2});
  CallGate gate(*auth, {});
  EXPECT_TRUE(gate.admit({.operation = kRead}));
  EXPECT_TRUE(gate.admit({.operation = kRead}));
  EXPECT_EQ(reason(gate.admit({.operation = kRead})), "TENANT_REQUESTS");
}

TEST(call_gate, a_tenant_that_stores_too_much_may_read_work_and_delete) {
  auto auth = everybody({.bytes = 100});
  CallGate gate(*auth, {});
  TenantPtr tenant = auth->tenants().use(kDefaultTenant);
  EXPECT_TRUE(gate.admit({.operation = kStart}));
  tenant->set_stored(101);
  EXPECT_EQ(reason(gate.admit({.operation = kStart})), "TENANT_BYTES");
  EXPECT_TRUE(gate.admit({.operation = kRead}));
  EXPECT_TRUE(gate.admit({.operation = "/workflow.v1.WorkflowEngine/CompleteJob"}));
  const std::string manage = "/org.cyoda.cloud.api.grpc.CloudEventsService/entityManage ";
  EXPECT_TRUE(gate.admit({.operation = manage + "EntityDeleteRequest"}));
  EXPECT_EQ(reason(gate.admit({.operation = manage + "EntityCreateRequest"})), "TENANT_BYTES");
}

TEST(call_gate, a_poll_may_be_refused_before_it_waits) {
  auto auth = everybody({});
  CallGate gate(*auth, {}, [](const Caller&) -> Result<void> {
    return fail(Code::exhausted, "TENANT_JOBS", "too many");
  });
  EXPECT_EQ(reason(gate.admit({.operation = "/workflow.v1.WorkflowEngine/PollJobs"})),
            "TENANT_JOBS");
  EXPECT_EQ(auth->tenants().refused(Limit::jobs), 1u);
  EXPECT_TRUE(gate.admit({.operation = kStart}));
}

}  // namespace
}  // namespace pawl::server
