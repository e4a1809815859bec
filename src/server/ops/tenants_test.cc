#include "server/ops/tenants.h"

#include <gtest/gtest.h>

#include "server/auth/call_gate.h"

namespace pawl::server {
namespace {

TEST(tenants, each_limit_has_a_row_and_its_refusal_names_limit_and_setting) {
  for (size_t i = 0; i < kLimits; ++i)
    EXPECT_EQ(limit_rows()[i].limit, static_cast<Limit>(i));
  Error error = limit_error(Limit::streams, 7);
  EXPECT_EQ(error.code, Code::exhausted);
  EXPECT_EQ(error.reason, "TENANT_STREAMS");
  EXPECT_NE(error.message.find("at most 7"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("--tenant-max-streams"), std::string::npos) << error.message;
}

TEST(tenants, a_connection_counts_for_its_address_and_then_for_its_last_tenant) {
  Tenants tenants({.connections = 1, .address_connections = 1});
  TenantPtr a = tenants.use("a"), b = tenants.use("b");
  ConnectionSeat first(&tenants);
  using enum Tenants::Entered;
  EXPECT_EQ(first.enter("10.0.0.1"), yes);
  {
    ConnectionSeat second(&tenants);
    {
      ConnectionSeat late(&tenants);
      EXPECT_EQ(late.enter("10.0.0.1"), on_probation);
      EXPECT_EQ(second.enter("10.0.0.1"), no);
      EXPECT_EQ(ConnectionSeat(&tenants).enter("10.0.0.2"), yes);
    }
    EXPECT_TRUE(first.move_to(a));
    EXPECT_EQ(second.enter("10.0.0.1"), yes);  // the first is no stranger any more
    EXPECT_FALSE(second.move_to(a));
    EXPECT_TRUE(first.move_to(b));
    EXPECT_EQ(a->connections(), 0u);
    EXPECT_TRUE(second.move_to(a));
    EXPECT_EQ(a->connections(), 1u);
  }
  EXPECT_EQ(a->connections(), 0u);
  EXPECT_EQ(b->connections(), 1u);
}

TEST(tenants, a_stream_is_counted_until_it_is_released) {
  Tenants tenants({.streams = 2});
  TenantPtr a = tenants.use("a");
  auto first = tenants.open_stream(a), second = tenants.open_stream(a);
  auto third = tenants.open_stream(a);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().reason, "TENANT_STREAMS");
  EXPECT_EQ(tenants.refused(Limit::streams), 1u);
  EXPECT_TRUE(tenants.open_stream(tenants.use("b")));
  (*first)->release();
  (*first)->release();
  EXPECT_EQ(a->streams(), 1u);
  second = fail(Code::internal, "GONE", "");
  EXPECT_EQ(a->streams(), 0u);
}

TEST(tenants, requests_are_limited_by_a_bucket_that_fills_again) {
  RateBucket bucket;
  Time now = 100 * kSecond;
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(bucket.take(now, 5, 5)) << i;
  EXPECT_FALSE(bucket.take(now, 5, 5));
  EXPECT_FALSE(bucket.full(now));
  EXPECT_TRUE(bucket.take(now + kSecond / 5, 5, 5));
  EXPECT_FALSE(bucket.take(now + kSecond / 5, 5, 5));
  now += 10 * kSecond;
  EXPECT_TRUE(bucket.full(now));
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(bucket.take(now, 5, 5)) << i;
  EXPECT_FALSE(bucket.take(now, 5, 5));
}

TEST(tenants, a_tenant_is_the_same_object_while_it_is_used) {
  Tenants tenants({.requests_per_second = 1});
  TenantPtr a = tenants.use("a");
  EXPECT_EQ(tenants.use("a"), a);
  EXPECT_TRUE(tenants.count_request(a));
  EXPECT_FALSE(tenants.count_request(tenants.use("a")));
  EXPECT_TRUE(tenants.count_request(tenants.use("b")));
  for (int i = 0; i < 1000; ++i)
    tenants.use("t" + std::to_string(i));
  EXPECT_EQ(tenants.use("a"), a);
  EXPECT_EQ(tenants.in_use().size(), 1u);
}

TEST(tenants, strangers_are_limited_by_address) {
  Tenants tenants({.address_requests_per_second = 2});
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(tenants.count_stranger("10.0.0.1")) << i;
  auto refused = tenants.count_stranger("10.0.0.1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "ADDRESS_REQUESTS");
  EXPECT_TRUE(tenants.count_stranger("10.0.0.2"));
}

TEST(tenants, the_network_of_an_address) {
  EXPECT_EQ(network_of("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(network_of("2001:db8::1"), network_of("2001:db8::2"));
  EXPECT_NE(network_of("2001:db8::1"), network_of("2001:db8:0:1::1"));
  EXPECT_NE(network_of("::ffff:10.0.0.1"), network_of("::ffff:10.0.0.2"));
  EXPECT_EQ(address_of_peer("ipv4:127.0.0.1:80"), "127.0.0.1");
  EXPECT_EQ(address_of_peer("ipv6:%5B::1%5D:80"), "::1");
  EXPECT_EQ(address_of_peer("unix:/tmp/x"), "unix:/tmp/x");
}

}  // namespace
}  // namespace pawl::server
