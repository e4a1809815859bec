#include "runtime/cluster/follower.h"

#include <fmt/format.h>

#include "kernel/once.h"
#include "runtime/cluster/checkpoints.h"
#include "runtime/cluster/membership.h"
#include "runtime/cluster/post_test.h"
#include "storage/postgres/postgres_journal.h"
#include "storage/postgres/postgres_leases.h"
#include "storage/postgres/test_postgres.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

using Kept = KeptJournal::Kept;

// A view of another journal that ends at `last`, as a standby of a database may show it.
class StaleJournal final : public Journal {
 public:
  explicit StaleJournal(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}
  Result<void> append(std::span<const BytesView>, Seq) override {
    ADD_FAILURE() << "a follower appends nothing";
    return {};
  }
  Result<void> read(Seq from, const Visit& visit) const override {
    return kept_->entries.read(from, [&](Seq seq, BytesView entry) -> Result<bool> {
      if (seq > last()) return false;
      return visit(seq, entry);
    });
  }
  Seq first() const override { return kept_->entries.first(); }
  Seq last() const override { return std::min(limit.load(), kept_->entries.last()); }
  Result<void> trim(Seq) override { return {}; }
  uint64_t bytes() const override { return 0; }
  std::atomic<Seq> limit{~Seq{0}};

 private:
  std::shared_ptr<Kept> kept_;
};

Result<Answer> ask(Shard& shard, const std::string& verb, const std::string& body) {
  auto promise = std::make_shared<std::promise<Result<Answer>>>();
  auto future = promise->get_future();
  shard.submit({.program = "post", .verb = verb, .body = body, .caller = {"t", "ann", ""}},
               [promise](Result<Answer> answer) { promise->set_value(std::move(answer)); });
  if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
    return fail(Code::unavailable, "SILENT", "");
  return future.get();
}

struct Owner {
  Post post;
  std::unique_ptr<Shard> shard;
  explicit Owner(std::unique_ptr<Journal> journal, std::unique_ptr<Rows> rows = nullptr,
                 ShardOptions options = {}) {
    if (!rows) rows = std::make_unique<MemoryRows>();
    auto opened = Shard::open(std::move(journal), std::move(rows), {&post}, std::move(options));
    EXPECT_TRUE(opened) << opened.error().message;
    shard = *std::move(opened);
    auto started = shard->start();
    EXPECT_TRUE(started) << started.error().message;
  }
  ~Owner() { shard->stop(0); }
  void add(int count) {
    std::atomic<int> left = count;
    {
      BatchScope scope;
      for (int i = 0; i < count; ++i)
        shard->submit({.program = "post",
                       .verb = "take",
                       .body = fmt::format("c{}", added++),
                       .caller = {"t", "ann", ""}},
                      [&](Result<Answer> answer) {
                        EXPECT_TRUE(answer);
                        --left;
                      });
    }
    EXPECT_TRUE(becomes_true([&] { return left == 0; }));
  }
  int added = 0;
};

std::map<Bytes, Bytes> all_rows(const Rows& rows) {
  std::map<Bytes, Bytes> out;
  EXPECT_TRUE(rows.snapshot()->scan("", "", [&](BytesView key, BytesView value) {
    out.emplace(key, value);
    return true;
  }));
  return out;
}

std::map<Bytes, Bytes> replayed_rows(const Journal& journal, const Program& program) {
  MemoryRows rows;
  const Program* programs[] = {&program};
  auto replayed = replay(journal, rows, programs);
  EXPECT_TRUE(replayed) << replayed.error().message;
  return all_rows(rows);
}

TEST(follower, its_rows_are_those_that_a_replay_makes) {
  auto kept = std::make_shared<Kept>();
  Owner owner(std::make_unique<KeptJournal>(kept));
  BackgroundThreads threads;
  Follower follower(std::make_unique<StaleJournal>(kept), std::make_unique<MemoryRows>(),
                    {&owner.post}, threads);
  follower.start();
  for (int i = 0; i < 20; ++i)
    owner.add(100);
  ASSERT_TRUE(becomes_true([&] { return follower.stats().applied == kept->entries.last(); }));
  EXPECT_EQ(follower.stats().frames, kept->entries.last());
  EXPECT_EQ(follower.stats().behind, 0);
  std::unique_ptr<Rows> rows = follower.take();
  EXPECT_EQ(all_rows(*rows), replayed_rows(kept->entries, owner.post));
}

TEST(follower, the_first_frame_of_a_new_owner_is_its_claim_and_fences_the_old_one) {
  auto kept = std::make_shared<Kept>();
  Owner old(std::make_unique<KeptJournal>(kept));
  BackgroundThreads threads;
  Follower follower(std::make_unique<StaleJournal>(kept), std::make_unique<MemoryRows>(),
                    {&old.post}, threads);
  follower.start();
  old.add(500);
  ASSERT_TRUE(becomes_true([&] { return follower.stats().applied == 500; }));
  Owner fresh(std::make_unique<KeptJournal>(kept), follower.take(),
              {.claim = Claim{0, 7, "node b"}});
  EXPECT_EQ(fresh.shard->replayed().frames, 0u) << "the rows were warm";
  EXPECT_EQ(kept->entries.last(), 501u);
  auto claim = decode_shard_claim(fresh.shard->read(kOwnerKey)->value());
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->epoch, 7u);
  EXPECT_EQ(claim->node, "node b");
  auto late = ask(*old.shard, "take", "late");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "SHARD_MOVED");
  EXPECT_TRUE(ask(*fresh.shard, "take", "next"));
  MemoryRows scratch;
  const Program* programs[] = {&fresh.post};
  auto verified = verify(kept->entries, scratch, programs);
  ASSERT_TRUE(verified);
  EXPECT_EQ(verified->difference, "");
  EXPECT_EQ(verified->rerun, 502u);
}

TEST(follower, a_store_that_shows_an_older_state_is_waited_for) {
  auto kept = std::make_shared<Kept>();
  Owner owner(std::make_unique<KeptJournal>(kept));
  owner.add(50);
  auto journal = std::make_unique<StaleJournal>(kept);
  StaleJournal& view = *journal;
  BackgroundThreads threads;
  Follower follower(std::move(journal), std::make_unique<MemoryRows>(), {&owner.post}, threads);
  follower.start();
  ASSERT_TRUE(becomes_true([&] { return follower.stats().applied == 50; }));
  view.limit = 20;
  ASSERT_TRUE(becomes_true([&] { return !follower.stats().last_failure.empty(); }));
  EXPECT_FALSE(follower.stats().broken);
  view.limit = ~Seq{0};
  owner.add(50);
  ASSERT_TRUE(becomes_true([&] { return follower.stats().applied == 100; }));
  EXPECT_EQ(follower.stats().last_failure, "");
}

TEST(follower, rows_of_another_journal_are_an_alarm_and_stay_as_they_are) {
  auto mine = std::make_shared<Kept>(), theirs = std::make_shared<Kept>();
  Owner a(std::make_unique<KeptJournal>(mine)), b(std::make_unique<KeptJournal>(theirs));
  a.add(10);
  b.add(12);
  auto rows = std::make_unique<MemoryRows>();
  const Program* programs[] = {&a.post};
  ASSERT_TRUE(replay(mine->entries, *rows, programs));
  const auto before = all_rows(*rows);
  BackgroundThreads threads;
  Follower follower(std::make_unique<StaleJournal>(theirs), std::move(rows), {&a.post}, threads);
  follower.start();
  ASSERT_TRUE(becomes_true([&] { return follower.stats().broken; }));
  EXPECT_EQ(all_rows(*follower.take()), before);
}

TEST(follower, a_trim_beside_it_makes_it_begin_from_a_checkpoint) {
  TestFolder folder;
  auto archive = *open_folder_archive(folder.sub("archive"));
  auto kept = std::make_shared<Kept>();
  Owner owner(std::make_unique<KeptJournal>(kept));
  Checkpoints checkpoints(*archive, 3, folder.sub("work"));
  owner.add(100);
  auto stored = checkpoints.store(*owner.shard);
  ASSERT_TRUE(stored && *stored) << stored.error().message;
  EXPECT_EQ((*stored)->seq, 100u);
  EXPECT_FALSE(*checkpoints.store(*owner.shard)) << "nothing has changed";
  owner.add(100);
  ASSERT_TRUE(*checkpoints.store(*owner.shard));
  ASSERT_TRUE(checkpoints.retire(*owner.shard, 1));
  EXPECT_EQ(kept->entries.first(), 200u) << "the entry of the checkpoint stays";
  EXPECT_EQ(checkpoints.list()->size(), 1u);
  owner.add(50);
  BackgroundThreads threads;
  int restored = 0;
  FollowerOptions options;
  options.restore = [&]() -> Result<std::unique_ptr<Rows>> {
    const std::string to = folder.sub(fmt::format("rows-{}", ++restored));
    TRY_OK(checkpoints.fetch_newest(to));
    TRY(auto rows, MemoryRows::load(to));
    return std::unique_ptr<Rows>(std::move(rows));
  };
  Follower follower(std::make_unique<StaleJournal>(kept), std::make_unique<MemoryRows>(),
                    {&owner.post}, threads, options);
  follower.start();
  ASSERT_TRUE(becomes_true([&] { return follower.stats().applied == 250; }));
  EXPECT_EQ(follower.stats().restored, 1u);
  Owner next(std::make_unique<KeptJournal>(kept), follower.take(), {.claim = Claim{3, 2, "b"}});
  EXPECT_EQ(next.shard->read(key({"post", "taken", "c0"}))->value(), "1");
  EXPECT_TRUE(ask(*next.shard, "take", "more"));
}

TEST(follower, without_an_archive_a_trim_is_told_and_nothing_is_lost) {
  auto kept = std::make_shared<Kept>();
  Owner owner(std::make_unique<KeptJournal>(kept));
  owner.add(20);
  ASSERT_TRUE(kept->entries.trim(15));
  BackgroundThreads threads;
  Follower follower(std::make_unique<StaleJournal>(kept), std::make_unique<MemoryRows>(),
                    {&owner.post}, threads);
  follower.start();
  ASSERT_TRUE(becomes_true([&] { return !follower.stats().last_failure.empty(); }));
  EXPECT_NE(follower.stats().last_failure.find("--archive"), std::string::npos);
}

// The clock of the new owner is behind that of the old one; and the journal may hold no frame that
// tells the time.
TEST(follower, time_does_not_go_back_over_a_takeover) {
  const Time late = 5'000'000 * kSecond;
  for (bool trimmed : {false, true}) {
    auto kept = std::make_shared<Kept>();
    Owner old(std::make_unique<KeptJournal>(kept), nullptr, {.clock = [=] { return late; }});
    old.add(10);
    auto rows = std::make_unique<MemoryRows>();
    const Program* programs[] = {&old.post};
    ASSERT_TRUE(replay(kept->entries, *rows, programs));
    if (trimmed) {
      ASSERT_TRUE(kept->entries.trim(11));
    }
    Owner fresh(std::make_unique<KeptJournal>(kept), std::move(rows),
                {.clock = [] { return kSecond; }, .claim = Claim{0, 2, "b"}});
    EXPECT_EQ(fresh.shard->replayed().last_time, late);
    ASSERT_TRUE(ask(*fresh.shard, "take", "x"));
    Seq frames = 0;
    ASSERT_TRUE(fresh.shard->frames(11, [&](const Frame& frame) -> Result<bool> {
      EXPECT_GE(frame.now(), late);
      ++frames;
      return true;
    }));
    EXPECT_EQ(frames, 2u);
    // The chain of links goes on as well.
    auto at_11 = unseal(*kept->entries.get(11)), at_12 = unseal(*kept->entries.get(12));
    EXPECT_EQ(at_12->before, at_11->own);
    EXPECT_NE(at_11->before, Digest{});
  }
}

TEST(follower, rows_of_newer_views_are_not_thrown_away_when_the_journal_is_trimmed) {
  struct Newer final : Program {
    std::string_view name() const override { return "post"; }
    Result<Bytes> run(Turn&, const Input&) const override { return Bytes(); }
    uint32_t view_version() const override { return 2; }
  } newer;
  auto kept = std::make_shared<Kept>();
  Owner owner(std::make_unique<KeptJournal>(kept));
  owner.add(10);
  MemoryRows rows;
  const Program* programs[] = {&owner.post};
  const Program* later[] = {&newer};
  ASSERT_TRUE(replay(kept->entries, rows, programs));
  const auto before = all_rows(rows);
  ASSERT_TRUE(kept->entries.trim(8));
  auto replayed = replay(kept->entries, rows, later);
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().reason, "VIEWS_CHANGED");
  EXPECT_EQ(all_rows(rows), before);
}

// A node whose shard was warm takes over from one that died, on a real PostgreSQL.
struct Standby final : ShardOwner {
  Post post;
  std::string url;
  BackgroundThreads threads;
  std::unique_ptr<Follower> follower;
  std::mutex mutex;
  std::unique_ptr<Owner> owner;
  std::atomic<size_t> replayed{0};

  Result<void> open(const Claim& claim) override {
    TRY(auto journal, PostgresJournal::open({.url = url, .shard = claim.shard, .claim = claim}));
    std::lock_guard lock(mutex);
    owner =
        std::make_unique<Owner>(std::move(journal), follower->take(), ShardOptions{.claim = claim});
    replayed = owner->shard->replayed().frames;
    return {};
  }
  void close(uint32_t) override {
    std::lock_guard lock(mutex);
    owner.reset();
  }
  void fence(uint32_t) override {
    std::lock_guard lock(mutex);
    if (owner) owner->shard->fence();
  }
};

TEST(follower, a_warm_standby_on_postgresql_goes_on_within_the_lease_and_two_seconds) {
  TestPostgres* server = TestPostgres::running();
  if (!server) GTEST_SKIP() << "PostgreSQL 15 is not installed";
  const std::string url = server->new_store();
  const auto lease = std::chrono::milliseconds(2000);
  // The old owner renews once before it dies; nothing gives its shard up.
  auto old_leases = *PostgresLeases::open(url, 1);
  ASSERT_TRUE(old_leases->join("old", "old", "", std::chrono::minutes(10)));
  Claim claim = **old_leases->claim(0);
  Owner old(*PostgresJournal::open({.url = url, .shard = 0, .claim = claim}), nullptr,
            {.claim = claim});

  Standby standby;
  standby.url = url;
  standby.follower = std::make_unique<Follower>(
      *PostgresJournal::open({.url = url, .shard = 0}), std::make_unique<MemoryRows>(),
      std::vector<const Program*>{&standby.post}, standby.threads);
  standby.follower->start();
  auto leases = *PostgresLeases::open(url, 1);
  Membership member(*leases, standby, standby.threads,
                    {.node = "new", .place = "new", .record = {}, .lease = lease});
  member.start();
  const int cells = 30'000;
  for (int i = 0; i < cells; i += 1000)
    old.add(1000);
  ASSERT_TRUE(becomes_true(
      [&] { return standby.follower->stats().applied == old.shard->durable(); }, 120'000));
  EXPECT_EQ(member.status().held.size(), 0u);

  ASSERT_TRUE(old_leases->renew(lease));
  const auto died = std::chrono::steady_clock::now();
  ASSERT_TRUE(becomes_true([&] {
    std::lock_guard lock(standby.mutex);
    return standby.owner && ask(*standby.owner->shard, "take", "after").has_value();
  }));
  const auto took = std::chrono::steady_clock::now() - died;
  EXPECT_GE(took, lease) << "not before the lease has run out";
  EXPECT_LE(took, lease + std::chrono::seconds(2));
  EXPECT_LT(standby.replayed, 1000u) << "the rows were warm";
  auto late = ask(*old.shard, "take", "late");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "SHARD_MOVED");
  {
    std::lock_guard lock(standby.mutex);
    for (int i = 0; i < cells; i += 997)
      EXPECT_EQ(standby.owner->shard->read(key({"post", "taken", fmt::format("c{}", i)}))->value(),
                "1");
  }
  member.stop(5 * kSecond);
}

}  // namespace
}  // namespace pawl
