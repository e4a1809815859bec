#include "runtime/cluster/membership.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/cluster/false_time_test.h"
#include "storage/memory/memory_leases.h"
#include "storage/postgres/postgres_journal.h"
#include "storage/postgres/postgres_leases.h"
#include "storage/postgres/test_postgres.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

// What a node does with its shards: whether it serves them, by its own books.
class Books final : public ShardOwner {
 public:
  Result<void> open(const Claim& claim) override {
    std::lock_guard lock(mutex_);
    if (refuses_.contains(claim.shard)) return fail(Code::unavailable, "NO", "no room");
    EXPECT_FALSE(open_.contains(claim.shard));
    open_[claim.shard] = claim.epoch;
    fenced_.erase(claim.shard);
    return {};
  }
  void close(uint32_t shard) override {
    std::lock_guard lock(mutex_);
    open_.erase(shard);
    fenced_.erase(shard);
  }
  void fence(uint32_t shard) override {
    std::lock_guard lock(mutex_);
    fenced_.insert(shard);
    ++fences_;
  }
  std::map<uint32_t, uint64_t> serving() const {
    std::lock_guard lock(mutex_);
    auto out = open_;
    for (uint32_t shard : fenced_)
      out.erase(shard);
    return out;
  }
  void refuse(uint32_t shard) {
    std::lock_guard lock(mutex_);
    refuses_.insert(shard);
  }
  int fences() const {
    std::lock_guard lock(mutex_);
    return fences_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, uint64_t> open_;
  std::set<uint32_t> fenced_, refuses_;
  int fences_ = 0;
};

struct Node {
  FalseTime time;
  Books books;
  std::unique_ptr<Leases> leases;
  std::unique_ptr<Membership> member;
  Node(MemoryLeaseStore& store, const std::string& name, double rate = 1)
      : time(rate), leases(store.connect()) {
    member = std::make_unique<Membership>(
        *leases, books, time,
        MembershipOptions{.node = name,
                          .place = "place of " + name,
                          .record = {.http = name + ":8080", .internal = name + ":9092"},
                          .lease = 3s});
    member->start();
  }
};

// Nodes that share a store, on false clocks. After each step no shard is served twice.
struct Cluster {
  Time store_now = kSecond;
  uint32_t shards;
  MemoryLeaseStore store;
  std::vector<std::unique_ptr<Node>> nodes;
  explicit Cluster(uint32_t count) : shards(count), store(count, [this] { return store_now; }) {}
  Node& add(const std::string& name, double rate = 1) {
    nodes.push_back(std::make_unique<Node>(store, name, rate));
    return *nodes.back();
  }
  void pass(Time time) {
    for (const Time end = store_now + time; store_now < end;) {
      store_now += 10 * kMillisecond;
      for (auto& node : nodes)
        node->time.pass(10 * kMillisecond);
      check();
    }
  }
  void check() const {
    std::map<uint32_t, std::string> served;
    for (const auto& node : nodes) {
      if (node->time.paused()) continue;
      for (auto [shard, epoch] : node->books.serving()) {
        if (!node->member->serves(shard)) continue;
        EXPECT_TRUE(served.emplace(shard, node->member->status().held[0].node).second)
            << "shard " << shard << " is served twice";
      }
    }
  }
  size_t served() const {
    size_t out = 0;
    for (const auto& node : nodes)
      for (auto [shard, epoch] : node->books.serving())
        out += node->member->serves(shard);
    return out;
  }
};

TEST(membership, one_node_claims_every_shard) {
  Cluster cluster(8);
  Node& a = cluster.add("a");
  cluster.pass(kSecond);
  EXPECT_EQ(a.books.serving().size(), 8u);
  cluster.pass(60 * kSecond);
  EXPECT_EQ(a.member->status().claims, 8u) << "nothing changes hands without a reason";
  EXPECT_EQ(a.member->status().losses, 0u);
  auto owner = a.member->owner_of(3);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->node, "a");
  EXPECT_EQ(owner->record.internal, "a:9092");
}

TEST(membership, shards_are_balanced_over_the_nodes_that_join) {
  Cluster cluster(8);
  Node& a = cluster.add("a");
  cluster.pass(kSecond);
  Node& b = cluster.add("b");
  cluster.pass(20 * kSecond);
  EXPECT_EQ(a.books.serving().size(), 4u);
  EXPECT_EQ(b.books.serving().size(), 4u);
  Node& c = cluster.add("c");
  cluster.pass(20 * kSecond);
  for (Node* node : {&a, &b, &c}) {
    EXPECT_GE(node->books.serving().size(), 2u);
    EXPECT_LE(node->books.serving().size(), 3u);
  }
  EXPECT_EQ(cluster.served(), 8u);
  const uint64_t claims = a.member->status().claims + b.member->status().claims;
  cluster.pass(60 * kSecond);
  EXPECT_EQ(a.member->status().claims + b.member->status().claims, claims);
}

TEST(membership, a_paused_node_loses_its_shards_and_serves_nothing_when_it_wakes) {
  Cluster cluster(4);
  Node& a = cluster.add("a");
  Node& b = cluster.add("b");
  cluster.pass(10 * kSecond);
  ASSERT_EQ(cluster.served(), 4u);
  a.time.pause(true);
  cluster.pass(2 * kSecond);
  EXPECT_EQ(b.books.serving().size(), 2u) << "within the lease nobody takes them";
  cluster.pass(4 * kSecond);
  EXPECT_EQ(b.books.serving().size(), 4u);
  // Before any of its loops runs, the node knows by its clock that it may not answer.
  for (auto [shard, epoch] : a.books.serving())
    EXPECT_FALSE(a.member->serves(shard));
  a.time.pause(false);
  cluster.pass(10 * kMillisecond);
  EXPECT_EQ(a.books.fences(), 2);
  cluster.pass(20 * kSecond);
  EXPECT_EQ(a.books.serving().size(), 2u);
  EXPECT_EQ(b.books.serving().size(), 2u);
  EXPECT_EQ(a.member->status().losses, 1u);
}

TEST(membership, a_short_pause_changes_nothing) {
  Cluster cluster(4);
  Node& a = cluster.add("a");
  cluster.add("b");
  cluster.pass(10 * kSecond);
  const uint64_t claims = a.member->status().claims;
  for (int i = 0; i < 10; ++i) {
    a.time.pause(true);
    cluster.pass(1500 * kMillisecond);
    a.time.pause(false);
    cluster.pass(2 * kSecond);
  }
  EXPECT_EQ(a.member->status().claims, claims);
  EXPECT_EQ(a.member->status().losses, 0u);
}

// The lease is counted on each machine's own clock; it may run 3 % faster or slower.
TEST(membership, clocks_that_run_unequally_never_serve_a_shard_twice) {
  Cluster cluster(6);
  Node& slow = cluster.add("slow", 0.97);
  Node& quick = cluster.add("quick", 1.03);
  cluster.pass(10 * kSecond);
  for (int round = 0; round < 10; ++round) {
    Node& victim = round % 2 ? slow : quick;
    cluster.store.set_away(true);
    cluster.pass((2000 + 300 * round) * kMillisecond);
    victim.time.pause(true);
    cluster.store.set_away(false);
    cluster.pass(3 * kSecond);
    victim.time.pause(false);
    cluster.pass(8 * kSecond);
    EXPECT_EQ(cluster.served(), 6u) << round;
  }
}

TEST(membership, a_store_away_longer_than_the_lease_stops_everything_until_it_is_back) {
  Cluster cluster(4);
  Node& a = cluster.add("a");
  Node& b = cluster.add("b");
  cluster.pass(10 * kSecond);
  for (bool carries_out : {false, true}) {
    cluster.store.set_away(true, carries_out);
    cluster.pass(1500 * kMillisecond);
    EXPECT_EQ(cluster.served(), 4u) << "within the lease it goes on";
    cluster.pass(4500 * kMillisecond);
    EXPECT_EQ(cluster.served(), 0u);
    EXPECT_FALSE(a.member->lease_valid());
    EXPECT_NE(b.member->status().last_failure, "");
    cluster.store.set_away(false);
    cluster.pass(10 * kSecond);
    EXPECT_EQ(cluster.served(), 4u);
  }
}

TEST(membership, a_drained_node_gives_up_everything_and_claims_nothing) {
  Cluster cluster(6);
  Node& a = cluster.add("a");
  Node& b = cluster.add("b");
  cluster.pass(10 * kSecond);
  a.member->drain();
  cluster.pass(5 * kSecond);
  EXPECT_EQ(a.books.serving().size(), 0u);
  EXPECT_EQ(b.books.serving().size(), 6u);
  EXPECT_EQ(a.books.fences(), 0) << "it gave them up in order";
  a.member->drain(false);
  cluster.pass(20 * kSecond);
  EXPECT_EQ(a.books.serving().size(), 3u);
}

TEST(membership, a_shard_moves_to_the_node_that_takes_it) {
  Cluster cluster(4);
  Node& a = cluster.add("a");
  Node& b = cluster.add("b");
  cluster.pass(10 * kSecond);
  const uint32_t shard = a.books.serving().begin()->first;
  b.member->take(shard);
  cluster.pass(10 * kSecond);
  EXPECT_TRUE(b.books.serving().contains(shard));
  EXPECT_EQ(cluster.served(), 4u);
  EXPECT_EQ(a.books.serving().size(), 2u) << "the balance is kept";
  EXPECT_EQ(a.member->owner_of(shard)->node, "b");
}

TEST(membership, a_shard_that_cannot_be_opened_goes_to_another_node) {
  Cluster cluster(2);
  Node& a = cluster.add("a");
  for (uint32_t shard : {0u, 1u})
    a.books.refuse(shard);
  cluster.pass(10 * kSecond);
  EXPECT_EQ(cluster.served(), 0u);
  Node& b = cluster.add("b");
  cluster.pass(30 * kSecond);
  EXPECT_EQ(b.books.serving().size(), 2u);
}

TEST(membership, a_shard_that_failed_is_opened_again_with_a_new_epoch) {
  Cluster cluster(2);
  Node& a = cluster.add("a");
  cluster.pass(kSecond);
  const uint64_t epoch = a.books.serving().at(1);
  a.member->failed(1);
  EXPECT_FALSE(a.member->serves(1));
  cluster.pass(5 * kSecond);
  EXPECT_GT(a.books.serving().at(1), epoch);
  EXPECT_TRUE(a.member->serves(0));
}

TEST(membership, a_rolling_restart_leaves_every_shard_served) {
  Cluster cluster(6);
  for (const char* name : {"a", "b", "c"})
    cluster.add(name);
  cluster.pass(20 * kSecond);
  for (size_t i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    cluster.nodes[i]->member->stop(kSecond);
    EXPECT_EQ(cluster.nodes[i]->books.fences(), 0) << "each shard was closed in order";
    cluster.nodes[i].reset();
    cluster.nodes.erase(cluster.nodes.begin() + static_cast<ptrdiff_t>(i));
    cluster.pass(2500 * kMillisecond);
    EXPECT_EQ(cluster.served(), 6u) << "the others did not wait for the lease";
    cluster.nodes.insert(cluster.nodes.begin() + static_cast<ptrdiff_t>(i),
                         std::make_unique<Node>(cluster.store, name));
    cluster.pass(20 * kSecond);
    EXPECT_EQ(cluster.served(), 6u);
    EXPECT_EQ(cluster.nodes[i]->books.serving().size(), 2u);
  }
}

TEST(membership, records_of_nodes_stay_readable) {
  const NodeRecord record{"a:1", "a:2", "a:3", "0.1.0", true, {3, 200}};
  EXPECT_EQ(hex(encode(record)), "0103613a3103613a3203613a3305302e312e30010203c801");
  auto read = decode_node_record(encode(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->internal, "a:3");
  EXPECT_EQ(read->wanted, record.wanted);
  EXPECT_TRUE(decode_node_record(encode(record) + "of a later version"));
  EXPECT_FALSE(decode_node_record("details of a"));
}

// Real threads, a real PostgreSQL.
struct RealNode {
  BackgroundThreads threads;
  Books books;
  std::unique_ptr<PostgresLeases> leases;
  std::unique_ptr<Membership> member;
  RealNode(const std::string& url, const std::string& name, uint32_t shards) {
    leases = *PostgresLeases::open(url, shards);
    member = std::make_unique<Membership>(
        *leases, books, threads,
        MembershipOptions{.node = name, .place = name, .record = {}, .lease = 1s});
    member->start();
  }
};

bool soon(const std::function<bool()>& condition, std::chrono::milliseconds limit = 20s) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

TEST(membership, nodes_on_postgresql_share_its_shards_and_take_over) {
  TestPostgres* server = TestPostgres::running();
  if (!server) GTEST_SKIP() << "PostgreSQL 15 is not installed";
  const std::string url = server->new_store();
  RealNode a(url, "a", 5);
  ASSERT_TRUE(soon([&] { return a.books.serving().size() == 5; }));
  auto b = std::make_unique<RealNode>(url, "b", 5);
  ASSERT_TRUE(soon([&] {
    return b->books.serving().size() >= 2 &&
           a.books.serving().size() + b->books.serving().size() == 5;
  }));
  // In order: no fence, and the other node has them soon.
  b->member->stop(5 * kSecond);
  EXPECT_EQ(b->books.fences(), 0);
  ASSERT_TRUE(soon([&] { return a.books.serving().size() == 5; }));
  // A database that is away longer than the lease stops everything; then it goes on.
  server->stop();
  ASSERT_TRUE(soon([&] { return a.books.serving().empty(); }));
  EXPECT_EQ(a.member->status().losses, 1u);
  server->start();
  ASSERT_TRUE(soon([&] { return a.books.serving().size() == 5; }));
  for (auto [shard, epoch] : a.books.serving())
    EXPECT_TRUE(
        PostgresJournal::open({.url = url, .shard = shard, .claim = Claim{shard, epoch, "a"}}))
        << "the epoch of the claim is the one of the store";
}

TEST(membership, two_claimants_of_postgresql_never_get_the_same_epoch) {
  TestPostgres* server = TestPostgres::running();
  if (!server) GTEST_SKIP() << "PostgreSQL 15 is not installed";
  const std::string url = server->new_store();
  std::vector<std::unique_ptr<RealNode>> nodes;
  for (int i = 0; i < 3; ++i)
    nodes.push_back(std::make_unique<RealNode>(url, fmt::format("n{}", i), 9));
  ASSERT_TRUE(soon([&] {
    std::map<uint32_t, int> served;
    for (auto& node : nodes)
      for (auto [shard, epoch] : node->books.serving())
        ++served[shard];
    return served.size() == 9 &&
           std::ranges::all_of(served, [](auto s) { return s.second == 1; }) &&
           std::ranges::all_of(nodes, [](auto& n) { return n->books.serving().size() == 3; });
  }));
  for (auto& node : nodes)
    node->member->stop(5 * kSecond);
}

}  // namespace
}  // namespace pawl
