#include "server/auth/client_streams.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

TEST(client_streams, those_of_one_client_end_once_and_others_stay) {
  ClientStreams streams;
  int a = 0, b = 0;
  streams.add("a", [&] { ++a; });
  streams.add("a", [&] { ++a; });
  streams.add("b", [&] { ++b; });
  streams.end_all("a");
  streams.end_all("a");
  streams.end_all("nobody");
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, 0);
  EXPECT_EQ(streams.size(), 1u);
}

TEST(client_streams, a_stream_that_has_ended_is_not_told) {
  ClientStreams streams;
  int told = 0;
  uint64_t first = streams.add("a", [&] { ++told; });
  uint64_t second = streams.add("a", [&] { ++told; });
  streams.remove(first);
  streams.remove(first);
  streams.end_all("a");
  streams.remove(second);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(streams.size(), 0u);
}

}  // namespace
}  // namespace pawl::server
