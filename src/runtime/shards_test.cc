#include "runtime/shards.h"

#include <set>

#include "runtime/all_shards.h"
#include "runtime/pooled_loops.h"
#include "runtime/tally_test.h"

namespace pawl {
namespace {

constexpr uint32_t kShards = 5;

// Cells below the tenant: "add" counts the cell that the body names. A name that begins with "job"
// also opens a job.
class Ledger final : public Program {
 public:
  std::string_view name() const override { return "ledger"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    const Key at = key({"ledger", input.caller.tenant, input.body});
    TRY(Cell cell, turn.read(at));
    const int n = cell.exists() ? std::stoi(std::string(cell.value())) : 0;
    turn.write(at, std::to_string(n + 1));
    if (input.body.starts_with("job"))
      turn.open({input.body, To::worker, "ledger", "t", "work", 0, Bytes(9000, 'x')});
    return std::to_string(n + 1);
  }
  void view(const Committed& frame, ViewRows& rows) const override {
    for (const auto& change : frame.changes)
      rows.put(change.key, "x");
  }
  uint32_t view_version() const override { return 1; }
};

struct ManyShards : testing::Test {
  Ledger ledger;
  PooledLoops loops{3};
  std::unique_ptr<Shards> shards = *Shards::open(loops, kShards, [this](uint32_t) {
    auto rows = std::make_unique<MemoryRows>();
    const Rows* seen = rows.get();
    ShardOptions options;
    options.scheduler = &loops;
    options.cache_bytes = 1 << 20;
    auto shard = Shard::open(std::make_unique<MemoryJournal>(), std::move(rows), {&ledger},
                             std::move(options));
    return Result<Shards::Opened>(Shards::Opened{std::move(*shard), seen});
  });
  AllShards all{*shards};
  Workers workers{all, loops};

  void SetUp() override {
    for (const auto& shard : *shards)
      shard->connect(To::worker, workers);
    ASSERT_TRUE(shards->start());
    workers.start();
  }
  void TearDown() override {
    workers.stop();
    shards->stop();
  }

  Result<Answer> add(const std::string& tenant, const std::string& name) {
    std::promise<Result<Answer>> promise;
    all.submit({.program = "ledger", .verb = "add", .body = name, .caller = {tenant, "u", ""}},
               [&](Result<Answer> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  }
  static std::string tenant(int i) { return "tenant-" + std::to_string(i); }
};

TEST_F(ManyShards, a_tenant_has_one_shard_and_tenants_are_spread) {
  std::set<uint32_t> used;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(shards->home(tenant(i)), shard_of(tenant(i), kShards));
    used.insert(shards->home(tenant(i)));
  }
  EXPECT_EQ(used.size(), kShards);
  // Part of the format: the answers of an existing store.
  EXPECT_EQ(shard_of("acme", 8), 6u);
  EXPECT_EQ(shard_of("acme", 1), 0u);
}

TEST_F(ManyShards, inputs_and_reads_go_to_the_shard_of_the_tenant) {
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(add(tenant(i), "n")->body, "1");
  ASSERT_EQ(add(tenant(3), "n")->body, "2");
  for (int i = 0; i < 20; ++i) {
    const Key at = key({"ledger", tenant(i), "n"});
    EXPECT_EQ(all.read(at)->value(), i == 3 ? "2" : "1");
    for (uint32_t shard = 0; shard < kShards; ++shard)
      EXPECT_EQ((*shards)[shard].read(at)->exists(), shard == shards->home(tenant(i)));
  }
  EXPECT_EQ(shards->durable(), 21u);
  EXPECT_EQ(shards->stats().frames, 21u);
}

TEST_F(ManyShards, a_scan_over_all_shards_is_in_one_order) {
  std::set<std::string> wanted;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(add(tenant(i), "n"));
    wanted.insert(key({"ledger", tenant(i), "n"}));
  }
  std::vector<std::string> up, down, cells;
  auto into = [](std::vector<std::string>& out) {
    return [&out](BytesView key, BytesView) {
      out.emplace_back(key);
      return true;
    };
  };
  const ReadSnapshot snapshot = all.snapshot();
  ASSERT_TRUE(snapshot.rows("ledger", "ledger", into(up)));
  ASSERT_TRUE(snapshot.rows("ledger", "ledger", into(down), {}, true));
  ASSERT_TRUE(snapshot.scan(prefix({"ledger"}), [&](BytesView key, const Cell&) {
    cells.emplace_back(key);
    return true;
  }));
  const std::vector<std::string> sorted(wanted.begin(), wanted.end());
  EXPECT_EQ(up, sorted);
  EXPECT_EQ(cells, sorted);
  EXPECT_EQ(down, std::vector<std::string>(wanted.rbegin(), wanted.rend()));
}

TEST_F(ManyShards, a_page_goes_on_behind_its_cursor) {
  for (int i = 0; i < 150; ++i)
    ASSERT_TRUE(add(tenant(i), "n"));
  std::set<std::string> seen;
  std::string cursor;
  for (int page = 0; page < 50; ++page) {
    size_t size = 0;
    ASSERT_TRUE(all.snapshot().rows(
        "ledger", "ledger",
        [&](BytesView key, BytesView) {
          EXPECT_TRUE(seen.insert(std::string(key)).second) << "twice";
          cursor = std::string(key) + '\0';
          return ++size < 7;
        },
        cursor));
    if (size < 7) break;
  }
  EXPECT_EQ(seen.size(), 150u);
}

TEST_F(ManyShards, a_watch_sees_the_frames_of_all_shards) {
  std::atomic<int> seen = 0;
  const uint64_t watch = all.watch([&](const Frame&) { ++seen; });
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE(add(tenant(i), "n"));
  EXPECT_EQ(seen, 30);
  all.unwatch(watch);
  ASSERT_TRUE(add("t", "n"));
  EXPECT_EQ(seen, 30);
}

TEST_F(ManyShards, shards_run_at_the_same_time) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i)
        EXPECT_EQ(add(tenant(t), "n")->body, std::to_string(i + 1));
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(shards->stats().turns, 1600u);
}

TEST(tenant_in, a_key_names_its_tenant) {
  EXPECT_EQ(tenant_in(key({"processes", "acme", "i", "x"})), "acme");
  EXPECT_EQ(tenant_in(key({"processes", "~paused", "acme", "type"})), "acme");
  EXPECT_EQ(tenant_in(key({"processes", "acme"})), "acme");
  EXPECT_EQ(tenant_in("processes"), "");
}

// A poll takes the jobs of all shards, also those whose bodies the queues do not keep.
TEST_F(ManyShards, workers_serve_the_jobs_of_all_shards) {
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(add(tenant(i), "job " + std::to_string(i)));
  std::promise<std::vector<Leased>> polled;
  workers.poll({"t", {"work"}, "w", 100, 30 * kSecond, 0, "ledger"},
               [&](std::vector<Leased> got) { polled.set_value(std::move(got)); });
  std::map<std::string, size_t> bodies;
  for (const Leased& leased : polled.get_future().get())
    bodies[leased.effect->id] = leased.effect->body.size();
  EXPECT_EQ(bodies.size(), 10u);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(bodies["job " + std::to_string(i)], 9000u);
}

}  // namespace
}  // namespace pawl
