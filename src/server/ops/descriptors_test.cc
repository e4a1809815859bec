#include "server/ops/descriptors.h"

#include <gtest/gtest.h>

namespace pawl::server {

TEST(descriptors, connections_never_take_all_descriptors) {
  for (size_t limit : {16u, 256u, 1024u, 4096u, 65'536u}) {
    ConnectionShares shares = share_descriptors(limit, 10'000);
    EXPECT_GE(shares.http, 1u);
    EXPECT_GE(shares.grpc, 1u);
    EXPECT_GE(shares.admin, 1u);
    EXPECT_LT(shares.http + shares.grpc + shares.admin, limit * 63 / 64) << limit;
  }
  ConnectionShares usual = share_descriptors(1024, 10'000);
  EXPECT_LE(usual.http + usual.grpc + usual.admin, 1024u - 640u) << "the rows may open 512 files";
}

TEST(descriptors, a_high_limit_gives_what_the_settings_ask_for) {
  ConnectionShares shares = share_descriptors(65'536, 10'000);
  EXPECT_EQ(shares.http, 10'000u);
  EXPECT_EQ(shares.grpc, 10'000u);
  EXPECT_EQ(share_descriptors(65'536, 5).http, 5u);
}

}  // namespace pawl::server
