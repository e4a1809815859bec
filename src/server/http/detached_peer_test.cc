#include "server/http/detached_peer.h"

#include <gtest/gtest.h>

namespace pawl::server {

TEST(detached_peer, the_handler_learns_that_its_peer_left_before_or_after) {
  for (bool before : {true, false}) {
    DetachedPeer peer("192.0.2.1");
    bool told = false;
    if (before) peer.leave();
    peer.on_leave([&] { told = true; });
    if (!before) {
      EXPECT_FALSE(told);
      peer.leave();
    }
    EXPECT_TRUE(told);
    EXPECT_EQ(peer.address(), "192.0.2.1");
  }
}

}  // namespace pawl::server
