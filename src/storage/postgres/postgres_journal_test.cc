// What the journal in PostgreSQL promises beyond journal_conformance_test.cc: fences, lost answers,
// followers, and leases.

#include "storage/postgres/postgres_journal.h"

#include <gtest/gtest.h>

#include <thread>

#include "storage/postgres/group.h"
#include "storage/postgres/lossy_pipe_test.h"
#include "storage/postgres/postgres_leases.h"
#include "storage/postgres/store.h"
#include "storage/postgres/test_postgres.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using postgres::Connection;
using postgres::Statement;

class PostgresPromise : public testing::Test {
 protected:
  void SetUp() override {
    server = TestPostgres::running();
    if (!server) GTEST_SKIP() << "PostgreSQL 15 is not installed";
    url = server->new_store();
    leases = open_leases("a");
  }
  std::unique_ptr<PostgresLeases> open_leases(const std::string& node, uint32_t shards = 2,
                                              std::chrono::milliseconds lease = 60s) {
    auto opened = PostgresLeases::open(url, shards);
    EXPECT_TRUE(opened) << opened.error().message;
    auto joined = (*opened)->join(node, "place of " + node, "details of " + node, lease);
    EXPECT_TRUE(joined) << joined.error().message;
    return *std::move(opened);
  }
  Claim claim(PostgresLeases& by, uint32_t shard = 0) {
    auto claimed = by.claim(shard);
    EXPECT_TRUE(claimed && *claimed);
    return claimed && *claimed ? **claimed : Claim{};
  }
  std::unique_ptr<PostgresJournal> open(std::optional<Claim> claim) {
    auto journal = PostgresJournal::open({.url = url, .shard = 0, .claim = std::move(claim)});
    EXPECT_TRUE(journal) << journal.error().message;
    return journal ? *std::move(journal) : nullptr;
  }
  static Result<void> add(Journal& journal, BytesView entry) {
    return journal.append({&entry, 1}, journal.last());
  }
  static std::vector<Bytes> all(const Journal& journal) {
    std::vector<Bytes> out;
    auto read = journal.read(1, [&](Seq, BytesView entry) -> Result<bool> {
      out.emplace_back(entry);
      return true;
    });
    EXPECT_TRUE(read) << read.error().message;
    return out;
  }
  // Ends every connection of the store's clients but the one that asks.
  void cut_connections() {
    Connection own(server->url(), true);
    EXPECT_TRUE(
        own.run_all("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                    "pg_backend_pid() AND application_name = 'pawl'"));
  }

  TestPostgres* server = nullptr;
  std::string url;
  std::unique_ptr<PostgresLeases> leases;
};

TEST(postgres_group, entries_are_packed_and_damage_is_found) {
  const std::vector<BytesView> entries{"one", "", "three"};
  Bytes packed;
  postgres::pack_group(entries, packed);
  auto unpacked = postgres::unpack_group(packed);
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(*unpacked, entries);
  for (size_t at = 0; at < packed.size(); ++at) {
    Bytes damaged = packed;
    damaged[at] ^= 4;
    EXPECT_EQ(postgres::unpack_group(damaged).error().reason, "JOURNAL_CORRUPT") << at;
    EXPECT_FALSE(postgres::unpack_group(packed.substr(0, at))) << at;
  }
}

TEST_F(PostgresPromise, an_owner_that_lost_its_shard_is_fenced) {
  auto old = open(claim(*leases));
  ASSERT_TRUE(add(*old, "1"));
  ASSERT_TRUE(leases->leave());
  auto other = open_leases("b");
  auto young = open(claim(*other));
  // Before the new owner has written anything.
  EXPECT_EQ(add(*old, "late").error().reason, "FENCED");
  EXPECT_EQ(add(*old, "later").error().reason, "FENCED");
  ASSERT_TRUE(add(*young, "2"));
  EXPECT_EQ(all(*young), (std::vector<Bytes>{"1", "2"}));
  EXPECT_FALSE(old->trim(2));
  EXPECT_EQ(all(*young), (std::vector<Bytes>{"1", "2"}));
}

TEST_F(PostgresPromise, an_old_claim_opens_no_journal) {
  const Claim first = claim(*leases);
  ASSERT_TRUE(leases->give_up(first));
  const Claim second = claim(*leases);
  EXPECT_EQ(second.epoch, first.epoch + 1);
  auto opened = PostgresJournal::open({.url = url, .shard = 0, .claim = first});
  EXPECT_EQ(opened.error().reason, "FENCED");
}

TEST_F(PostgresPromise, an_append_goes_on_after_its_connection_was_cut) {
  auto journal = open(claim(*leases));
  std::atomic<bool> done = false;
  std::thread cutter([&] {
    while (!done) {
      cut_connections();
      std::this_thread::sleep_for(20ms);
    }
  });
  std::vector<Bytes> expected;
  for (int i = 0; i < 300; ++i) {
    expected.push_back("entry " + std::to_string(i));
    auto added = add(*journal, expected.back());
    EXPECT_TRUE(added) << added.error().message;
  }
  done = true;
  cutter.join();
  EXPECT_EQ(all(*journal), expected);
}

TEST_F(PostgresPromise, an_append_goes_on_after_an_immediate_restart_of_the_server) {
  auto journal = open(claim(*leases));
  std::vector<Bytes> expected;
  for (int i = 0; i < 3; ++i) {
    std::thread restarter([&] { server->restart_immediately(); });
    for (int j = 0; j < 200; ++j) {
      expected.push_back(std::to_string(i) + " " + std::to_string(j));
      auto added = add(*journal, expected.back());
      ASSERT_TRUE(added) << added.error().message;
    }
    restarter.join();
  }
  EXPECT_EQ(all(*journal), expected);
}

TEST_F(PostgresPromise, an_append_waits_for_the_lock_of_another_and_is_sent_again_when_it_is_cut) {
  auto journal = open(claim(*leases));
  ASSERT_TRUE(add(*journal, "1"));
  Connection rival(url, true);
  ASSERT_TRUE(rival.run_all("BEGIN; SELECT 1 FROM pawl_shard WHERE shard = 0 FOR UPDATE"));
  std::thread late([&] {
    std::this_thread::sleep_for(200ms);
    cut_connections();  // also the rival's, whose lock ends
  });
  EXPECT_TRUE(add(*journal, "2"));
  late.join();
  EXPECT_EQ(all(*journal), (std::vector<Bytes>{"1", "2"}));
}

TEST_F(PostgresPromise, an_append_whose_answer_was_lost_is_found_by_its_nonce) {
  LossyPipe pipe(server->port());
  const std::string direct = url;
  url = server->through(pipe.port(), url);
  auto journal = open(claim(*leases));
  std::vector<Bytes> expected;
  for (int i = 0; i < 20; ++i) {
    expected.push_back("entry " + std::to_string(i));
    if (i % 2 == 1) pipe.lose_next(i % 4 == 1 ? LossyPipe::Lose::answer : LossyPipe::Lose::request);
    auto added = add(*journal, expected.back());
    ASSERT_TRUE(added) << added.error().message;
  }
  EXPECT_EQ(pipe.lost(), 10);
  EXPECT_EQ(all(*journal), expected);
}

// A committed group whose answer was lost is acknowledged although another node owns the shard by
// now: the new owner has it, too.
TEST_F(PostgresPromise, an_append_that_committed_before_a_takeover_is_acknowledged) {
  LossyPipe pipe(server->port());
  const std::string direct = url;
  url = server->through(pipe.port(), url);
  auto journal = open(claim(*leases));
  url = direct;
  ASSERT_TRUE(add(*journal, "1"));
  auto other = open_leases("b");
  std::unique_ptr<PostgresJournal> young;
  pipe.lose_next(LossyPipe::Lose::answer, [&] {
    EXPECT_TRUE(leases->leave());
    young = open(claim(*other));
  });
  EXPECT_TRUE(add(*journal, "2"));
  ASSERT_TRUE(young);
  EXPECT_EQ(all(*young), (std::vector<Bytes>{"1", "2"}));
  EXPECT_EQ(add(*journal, "3").error().reason, "FENCED");
  EXPECT_TRUE(add(*young, "3"));
}

TEST_F(PostgresPromise, a_store_that_is_away_for_too_long_fails_the_journal) {
  auto journal =
      PostgresJournal::open({.url = url, .shard = 0, .claim = claim(*leases), .patience = 300ms});
  ASSERT_TRUE(journal);
  ASSERT_TRUE(add(**journal, "1"));
  server->stop();
  EXPECT_EQ(add(**journal, "2").error().reason, "JOURNAL_WRITE");
  server->start();
  // What happened to the group is unknown, so this journal appends nothing more.
  EXPECT_EQ(add(**journal, "2").error().reason, "JOURNAL_WRITE");
  auto again = open(claim(*open_leases("a")));
  EXPECT_TRUE(add(*again, "2"));
}

TEST_F(PostgresPromise, a_follower_sees_what_the_owner_appended) {
  auto owner = open(claim(*leases));
  auto follower = open(std::nullopt);
  EXPECT_EQ(follower->last(), 0u);
  BytesView entry = "x";
  EXPECT_EQ(follower->append({&entry, 1}, 0).error().reason, "READ_ONLY");
  std::thread writer([&] {
    for (int i = 1; i <= 200; ++i)
      EXPECT_TRUE(add(*owner, std::to_string(i)));
  });
  std::vector<Bytes> seen;
  for (Seq at = 0; at < 200;) {
    auto head = follower->wait(at, 5s);
    ASSERT_TRUE(head) << head.error().message;
    ASSERT_GT(*head, at);
    ASSERT_TRUE(follower->read(at + 1, [&](Seq seq, BytesView bytes) -> Result<bool> {
      EXPECT_EQ(seq, at + 1);
      EXPECT_EQ(bytes, std::to_string(seq));
      at = seq;
      return true;
    }));
  }
  writer.join();
  auto same = follower->wait(200, 10ms);
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, 200u);
}

TEST_F(PostgresPromise, a_trim_beside_a_follower_is_said) {
  auto owner = open(claim(*leases));
  for (int i = 1; i <= 10; ++i)
    ASSERT_TRUE(add(*owner, std::to_string(i)));
  auto follower = open(std::nullopt);
  ASSERT_TRUE(owner->trim(6));
  EXPECT_EQ(owner->first(), 6u);
  auto read = follower->read(2, [](Seq, BytesView) -> Result<bool> { return true; });
  EXPECT_EQ(read.error().reason, "TRIMMED");
  EXPECT_EQ(owner->read(1, [](Seq, BytesView) -> Result<bool> { return true; }).error().reason,
            "TRIMMED");
}

TEST_F(PostgresPromise, a_group_that_is_gone_is_a_corrupt_journal) {
  auto owner = open(claim(*leases));
  for (int i = 1; i <= 5; ++i)
    ASSERT_TRUE(add(*owner, std::to_string(i)));
  Connection own(url, true);
  ASSERT_TRUE(own.run_all("DELETE FROM pawl_group WHERE first = 3"));
  auto read = owner->read(1, [](Seq, BytesView) -> Result<bool> { return true; });
  EXPECT_EQ(read.error().reason, "JOURNAL_CORRUPT");
  ASSERT_TRUE(own.run_all("UPDATE pawl_group SET bytes = 'rubbish' WHERE first = 4"));
  read = owner->read(4, [](Seq, BytesView) -> Result<bool> { return true; });
  EXPECT_EQ(read.error().reason, "JOURNAL_CORRUPT");
}

TEST_F(PostgresPromise, large_groups_are_read_in_batches) {
  auto owner = open(claim(*leases));
  for (int i = 0; i < 12; ++i)
    ASSERT_TRUE(add(*owner, Bytes(1 << 20, static_cast<char>('a' + i))));
  auto entries = all(*owner);
  ASSERT_EQ(entries.size(), 12u);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(entries[i][77], 'a' + i);
  EXPECT_GE(owner->bytes(), 12u << 20);
}

TEST_F(PostgresPromise, one_of_many_claimants_gets_a_shard) {
  constexpr int kNodes = 6;
  std::vector<std::unique_ptr<PostgresLeases>> nodes;
  for (int i = 0; i < kNodes; ++i)
    nodes.push_back(open_leases("n" + std::to_string(i)));
  std::atomic<int> won = 0;
  std::vector<std::thread> threads;
  for (auto& node : nodes)
    threads.emplace_back([&, by = node.get()] {
      auto claimed = by->claim(1);
      EXPECT_TRUE(claimed) << claimed.error().message;
      if (claimed && *claimed) ++won;
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(won, 1);
}

TEST_F(PostgresPromise, a_lease_that_ran_out_is_lost_and_its_shards_are_free) {
  auto brief = open_leases("brief", 2, 200ms);
  const Claim held = claim(*brief, 1);
  ASSERT_TRUE(brief->renew(200ms));
  EXPECT_FALSE(leases->claim(1)->has_value());
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(brief->renew(200ms).error().reason, "LEASE_LOST");
  EXPECT_FALSE(brief->claim(0)->has_value());
  EXPECT_EQ(claim(*leases, 1).epoch, held.epoch + 1);
  auto owners = leases->owners();
  ASSERT_TRUE(owners);
  ASSERT_EQ(owners->shards.size(), 2u);
  EXPECT_EQ(owners->shards[1].owner, "a");
  EXPECT_TRUE(owners->shards[1].held);
  EXPECT_EQ(owners->nodes[1].name, "brief");
  EXPECT_FALSE(owners->nodes[1].alive);
  EXPECT_EQ(owners->nodes[0].details, "details of a");
}

TEST_F(PostgresPromise, a_new_life_of_a_node_takes_its_shards_over_at_once) {
  const Claim before = claim(*leases);
  auto again = open_leases("a");
  EXPECT_EQ(leases->renew(60s).error().reason, "LEASE_LOST");
  EXPECT_EQ(claim(*again).epoch, before.epoch + 1);
  auto twin = PostgresLeases::open(url, 2);
  ASSERT_TRUE(twin);
  EXPECT_EQ((*twin)->join("a", "another place", "", 60s).error().reason, "NODE_NAME_TAKEN");
}

TEST_F(PostgresPromise, another_number_of_shards_is_refused_with_the_remedy) {
  auto opened = PostgresLeases::open(url, 8);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().reason, "SHARDS_DIFFER");
  EXPECT_NE(opened.error().message.find("--shards 2"), std::string::npos);
}

TEST_F(PostgresPromise, nodes_that_start_together_make_one_store) {
  url = server->new_store();
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i)
    threads.emplace_back([&] {
      auto opened = PostgresLeases::open(url, 16);
      EXPECT_TRUE(opened) << opened.error().message;
    });
  for (std::thread& thread : threads)
    thread.join();
  Connection own(url, false);
  EXPECT_EQ(postgres::store_shards(own).value(), 16u);
}

}  // namespace
}  // namespace pawl
