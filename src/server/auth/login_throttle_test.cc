#include "server/auth/login_throttle.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

struct login_throttle : testing::Test {
  Time now = 1000 * kSecond;
  LoginThrottle throttle{[this] { return now; }, 50};
  bool waits(std::string_view client, std::string_view address) {
    return throttle.wait(client, address).has_value();
  }
  void fail(int times, std::string_view client, std::string_view address) {
    for (int i = 0; i < times; ++i)
      throttle.failed(client, address);
  }
};

TEST_F(login_throttle, a_client_from_one_address_waits_after_ten_failures) {
  fail(9, "a", "10.0.0.1");
  EXPECT_FALSE(waits("a", "10.0.0.1"));
  fail(1, "a", "10.0.0.1");
  EXPECT_TRUE(waits("a", "10.0.0.1"));
  EXPECT_EQ(*throttle.wait("a", "10.0.0.1"), 6 * kSecond);
  EXPECT_FALSE(waits("b", "10.0.0.1"));
  EXPECT_FALSE(waits("a", "10.0.0.2"));
  now += 6 * kSecond;
  EXPECT_FALSE(waits("a", "10.0.0.1"));
  fail(1, "a", "10.0.0.1");
  EXPECT_TRUE(waits("a", "10.0.0.1"));
  now += 60 * kSecond;
  fail(9, "a", "10.0.0.1");
  EXPECT_FALSE(waits("a", "10.0.0.1"));
}

TEST_F(login_throttle, an_address_waits_whatever_client_it_names) {
  for (int i = 0; i < LoginThrottle::kPerAddress; ++i)
    throttle.failed("client" + std::to_string(i), "10.0.0.1");
  EXPECT_TRUE(waits("another", "10.0.0.1"));
  EXPECT_FALSE(waits("another", "10.0.0.2"));
}

TEST_F(login_throttle, neighbours_in_an_ipv6_network_count_as_one_address) {
  for (int i = 0; i < LoginThrottle::kPerAddress; ++i)
    throttle.failed("client" + std::to_string(i), "2001:db8:1:2::" + std::to_string(i + 1));
  EXPECT_TRUE(waits("another", "2001:db8:1:2:ffff::1"));
  EXPECT_FALSE(waits("another", "2001:db8:1:3::1"));
}

TEST_F(login_throttle, a_client_waits_whatever_address_it_has_unless_it_is_known_there) {
  throttle.succeeded("a", "10.9.9.9");
  for (int i = 0; i < LoginThrottle::kPerClient; ++i)
    throttle.failed("a", "10.0." + std::to_string(i % 20) + ".1");
  EXPECT_TRUE(waits("a", "10.1.1.1"));
  EXPECT_FALSE(waits("a", "10.9.9.9"));
  EXPECT_FALSE(waits("b", "10.1.1.1"));
}

TEST_F(login_throttle, a_success_clears_the_failures_of_the_pair) {
  fail(9, "a", "10.0.0.1");
  throttle.succeeded("a", "10.0.0.1");
  fail(9, "a", "10.0.0.1");
  EXPECT_FALSE(waits("a", "10.0.0.1"));
}

TEST_F(login_throttle, the_table_is_bounded_and_keeps_the_worst) {
  fail(20, "bad", "10.0.0.1");
  for (int i = 0; i < 10'000; ++i)
    throttle.failed("x" + std::to_string(i),
                    "10.2." + std::to_string(i / 250 % 250) + "." + std::to_string(i % 250));
  EXPECT_LE(throttle.keys(), 50u);
  EXPECT_TRUE(waits("bad", "10.0.0.1"));
  now += 200 * kSecond;
  throttle.failed("y", "10.0.0.1");
  EXPECT_LE(throttle.keys(), 3u);
}

}  // namespace
}  // namespace pawl::server
