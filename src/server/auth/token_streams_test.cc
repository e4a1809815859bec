#include "server/auth/token_streams.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

TEST(token_streams, those_of_one_client_end_once_and_others_stay) {
  TokenStreams streams;
  int a = 0, b = 0;
  streams.add("a", 100, [&] { ++a; });
  streams.add("a", 100, [&] { ++a; });
  streams.add("b", 100, [&] { ++b; });
  streams.end_all("a");
  streams.end_all("a");
  streams.end_all("nobody");
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, 0);
  EXPECT_EQ(streams.size(), 1u);
}

TEST(token_streams, a_stream_that_has_ended_is_not_told) {
  TokenStreams streams;
  int told = 0;
  uint64_t first = streams.add("a", 100, [&] { ++told; });
  uint64_t second = streams.add("a", 100, [&] { ++told; });
  streams.remove(first);
  streams.remove(first);
  streams.end_all("a");
  streams.remove(second);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(streams.size(), 0u);
}

TEST(token_streams, those_whose_token_has_expired_end_once) {
  TokenStreams streams;
  int early = 0, late = 0;
  streams.add("a", 100, [&] { ++early; });
  streams.add("", 100, [&] { ++early; });
  streams.add("a", 200, [&] { ++late; });
  streams.end_expired(100);  // valid until then
  EXPECT_EQ(early, 0);
  streams.end_expired(101);
  streams.end_expired(101);
  EXPECT_EQ(early, 2);
  EXPECT_EQ(late, 0);
  streams.end_all("a");
  EXPECT_EQ(late, 1);
  EXPECT_EQ(streams.size(), 0u);
}

}  // namespace
}  // namespace pawl::server
