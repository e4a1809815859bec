#include "server/http/parties.h"

#include <gtest/gtest.h>

namespace pawl::server {

// Serves the connections that are ready now and returns their descriptors. Each begins one request.
static std::vector<int> turn(Parties& parties, int64_t now_ms,
                             const std::unordered_map<int, Party*>& of) {
  std::vector<int> served;
  parties.begin_turn(now_ms);
  std::pair<int, uint64_t> next;
  while (parties.next(next)) {
    served.push_back(next.first);
    parties.began(*of.at(next.first), 1);
  }
  return served;
}

struct TwoTenants {
  TwoTenants() {
    for (int fd = 0; fd < 20; ++fd)
      of[fd] = &parties.move(parties.join_strangers(), fd < 19 ? "loud" : "quiet");
  }
  void all_ready() {
    for (auto [fd, party] : of)
      parties.add_ready(*party, fd, 1);
  }
  Parties parties;
  std::unordered_map<int, Party*> of;
};

TEST(parties, several_active_tenants_are_served_a_few_requests_in_turn) {
  TwoTenants two;
  two.all_ready();
  EXPECT_EQ(turn(two.parties, 0, two.of).size(), 20u) << "nobody was known to be active before";
  two.all_ready();
  std::vector<int> served = turn(two.parties, 1, two.of);
  EXPECT_EQ(served.size(), 5u);
  EXPECT_NE(std::find(served.begin(), served.end(), 19), served.end());
  EXPECT_TRUE(two.parties.any_ready());
  // The others follow, none twice.
  for (int64_t now_ms = 2; two.parties.any_ready(); ++now_ms)
    for (int fd : turn(two.parties, now_ms, two.of))
      served.push_back(fd);
  std::sort(served.begin(), served.end());
  EXPECT_EQ(served.size(), 20u);
  EXPECT_EQ(std::unique(served.begin(), served.end()), served.end());
}

TEST(parties, one_active_tenant_is_served_whole) {
  TwoTenants two;
  two.all_ready();
  turn(two.parties, 0, two.of);
  // Only the loud tenant is active from here on.
  for (int64_t now_ms : {1, 20'000}) {
    for (int fd = 0; fd < 19; ++fd)
      two.parties.add_ready(*two.of[fd], fd, 1);
    const size_t served = turn(two.parties, now_ms, two.of).size();
    EXPECT_EQ(served, now_ms == 1 ? 4u : 19u);
    while (two.parties.any_ready())
      turn(two.parties, now_ms, two.of);
  }
}

TEST(parties, a_connection_that_becomes_ready_again_waits_for_the_next_turn) {
  Parties parties;
  Party& party = parties.move(parties.join_strangers(), "t");
  parties.add_ready(party, 7, 1);
  parties.begin_turn(0);
  std::pair<int, uint64_t> next;
  ASSERT_TRUE(parties.next(next));
  parties.add_ready(party, 7, 1);
  EXPECT_FALSE(parties.next(next));
  parties.begin_turn(0);
  EXPECT_TRUE(parties.next(next));
}

TEST(parties, a_connection_begins_its_share_of_a_turn) {
  Parties parties;
  Party& party = parties.move(parties.join_strangers(), "t");
  for (int fd = 0; fd < 8; ++fd)
    parties.add_ready(party, fd, 1);
  parties.begin_turn(0);
  EXPECT_TRUE(parties.may_begin(party, 0));
  EXPECT_TRUE(parties.may_begin(party, 3));
  EXPECT_FALSE(parties.may_begin(party, 4)) << "32 requests are divided between 8 connections";
}

TEST(parties, a_party_without_connections_is_forgotten_with_its_ready_ones) {
  Parties parties;
  Party* party = &parties.move(parties.join_strangers(), "gone");
  parties.add_ready(*party, 3, 1);
  parties.leave(*party);  // closed while it was listed
  parties.begin_turn(0);
  std::pair<int, uint64_t> next;
  EXPECT_TRUE(parties.next(next));
  EXPECT_FALSE(parties.next(next));
  parties.begin_turn(1);
  EXPECT_FALSE(parties.any_ready());
  Party& again = parties.move(parties.join_strangers(), "gone");
  EXPECT_EQ(again.connections, 1u);
}

}  // namespace pawl::server
