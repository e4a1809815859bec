#include "kernel/cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "kernel/rows_layout.h"
#include "storage/memory/memory.h"

namespace pawl {

static Cell cell(Seq version, std::string value) {
  return {version, std::make_shared<const Stored>(std::move(value))};
}

TEST(cache, staged_versions_are_visible_to_the_kernel_only) {
  MemoryRows rows;
  CellCache cache(rows, 1 << 20);
  cache.stage("k", {}, cell(1, "one"), 1);
  EXPECT_FALSE(cache.read("k")->exists());
  EXPECT_EQ(cache.current("k")->value(), "one");
  cache.stage("k", cell(1, "one"), cell(2, "two"), 2);
  cache.publish("k", cell(1, "one"), 1, 1);
  EXPECT_EQ(cache.read("k")->value(), "one");
  EXPECT_EQ(cache.current("k")->value(), "two");
  size_t staged = 0;
  cache.each_staged(
      [&](BytesView key, const Cell& c) { staged += key == "k" && c.value() == "two"; });
  EXPECT_EQ(staged, 1u);
  cache.publish("k", cell(2, "two"), 2, 2);
  EXPECT_EQ(cache.read("k")->value(), "two");
  cache.each_staged([&](BytesView, const Cell&) { ADD_FAILURE(); });
}

// Families by the first letter.
static FamilyLimit by_letter(size_t max) {
  return {max, [](BytesView key) { return key.substr(0, 1); }};
}

struct Family : testing::Test {
  void in_rows(const std::string& key, Seq seq = 1) {
    RowBatch batch;
    batch.put(layout::cell_row(key), layout::cell_head(seq) + key);
    CHECK(rows.apply(batch, seq));
  }
  // The contents of the cache, seen through weak pointers.
  std::weak_ptr<const Stored> read(CellCache& cache, const std::string& key) {
    Cell cell = *cache.read(key);
    EXPECT_EQ(cell.value(), key);
    return cell.stored;
  }
  MemoryRows rows;
};

TEST_F(Family, evicts_the_least_recently_used_cell_over_the_limit) {
  CellCache cache(rows, 1 << 20, by_letter(3));
  std::map<std::string, std::weak_ptr<const Stored>> held;
  for (const char* key : {"a1", "a2", "a3", "b1", "b2", "a4"})
    in_rows(key);
  for (const char* key : {"a1", "a2", "a3", "b1", "b2"})
    held[key] = read(cache, key);
  EXPECT_EQ(cache.in_families(), 5u);
  read(cache, "a1");  // a2 is now the one that was not used for longest
  held["a4"] = read(cache, "a4");
  EXPECT_EQ(cache.in_families(), 5u);
  EXPECT_TRUE(held["a2"].expired());
  for (const char* key : {"a1", "a3", "a4", "b1", "b2"})
    EXPECT_FALSE(held[key].expired()) << key;
  held["a2"] = read(cache, "a2");
  EXPECT_TRUE(held["a3"].expired());
  cache.clear();
  EXPECT_EQ(cache.in_families(), 0u);
}

TEST_F(Family, works_with_a_limit_of_one_cell) {
  CellCache cache(rows, 1 << 20, by_letter(1));
  for (int i = 0; i < 50; ++i)
    in_rows("a" + std::to_string(i));
  std::weak_ptr<const Stored> before;
  for (int i = 0; i < 50; ++i) {
    auto now = read(cache, "a" + std::to_string(i));
    EXPECT_FALSE(now.expired());
    EXPECT_TRUE(before.expired());
    EXPECT_EQ(cache.in_families(), 1u);
    before = now;
  }
}

TEST_F(Family, without_a_limit_is_bounded_by_bytes_only) {
  CellCache cache(rows, 1 << 20, by_letter(0));
  in_rows("a1");
  in_rows("a2");
  auto first = read(cache, "a1");
  read(cache, "a2");
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(cache.in_families(), 0u);
}

TEST_F(Family, packs_evicted_cells_that_are_worth_packing) {
  CellCache cache(rows, 1 << 20, by_letter(1),
                  {16 << 20, [](BytesView key) { return key != "a9"; }});
  for (const char* key : {"a1", "a2", "a9"})
    in_rows(key);
  for (const char* key : {"a1", "a9", "a2"})
    read(cache, key);
  EXPECT_EQ(cache.in_families(), 1u);
  EXPECT_EQ(cache.packed(), 1u);
  RowBatch gone;
  gone.erase(layout::cell_row("a1"));
  CHECK(rows.apply(gone, 2));
  read(cache, "a1");  // not from the rows
  EXPECT_EQ(cache.packed(), 1u);
  // Written while it is packed: the packed one is of no use any more.
  cache.stage("a2", cell(1, "a2"), cell(3, "newer"), 3);
  EXPECT_EQ(cache.packed(), 0u);
  cache.publish("a2", cell(3, "newer"), 3, 3);
  EXPECT_EQ(cache.read("a2")->value(), "newer");
}

// Neither what is staged nor what the rows do not have yet counts or leaves.
TEST_F(Family, never_evicts_a_cell_that_the_rows_lack) {
  CellCache cache(rows, 1 << 20, by_letter(2));
  auto name = [](int i) { return "a" + std::to_string(i); };
  for (int i = 0; i < 10; ++i)
    cache.stage(name(i), {}, cell(i + 1, name(i)), i + 1);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(cache.current(name(i))->value(), name(i));
  for (int i = 0; i < 10; ++i)
    cache.publish(name(i), cell(i + 1, name(i)), i + 1, 10);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(cache.read(name(i))->value(), name(i));
  EXPECT_EQ(cache.in_families(), 0u);
  cache.stage(name(0), *cache.current(name(0)), cell(11, "newer"), 11);
  cache.begin();
  for (int i = 0; i < 10; ++i)
    in_rows(name(i), i + 1);
  cache.end(10);
  EXPECT_EQ(cache.in_families(), 2u);
  EXPECT_EQ(cache.current(name(0))->value(), "newer");
  EXPECT_EQ(cache.read(name(0))->value(), name(0));
  for (int i = 1; i < 10; ++i)
    EXPECT_EQ(cache.current(name(i))->version, Seq(i + 1));
  // One that is clean and is written leaves the count at once.
  cache.stage(name(9), *cache.current(name(9)), cell(12, "newest"), 12);
  EXPECT_EQ(cache.in_families(), 1u);
}

// One writes, as the kernel and its committer do; others read meanwhile and never see an older
// version again.
TEST_F(Family, can_be_used_from_several_threads) {
  CellCache cache(rows, 100'000, by_letter(5), {16 << 20, {}});
  std::atomic<bool> over{false};
  auto name = [](uint64_t n) {
    return std::string(1, static_cast<char>('a' + n % 3)) + std::to_string(n % 60);
  };
  std::vector<std::thread> readers;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    readers.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      std::map<std::string, Seq> seen;
      while (!over) {
        const std::string key = name(random());
        const Cell cell = *cache.read(key);
        EXPECT_GE(cell.version, seen[key]) << key;
        EXPECT_TRUE(!cell.exists() || cell.value() == key + "/" + std::to_string(cell.version));
        seen[key] = cell.version;
      }
    });
  std::mt19937_64 random(7);
  Seq seq = 0;
  for (int group = 0; group < 400; ++group) {
    std::vector<std::pair<std::string, Cell>> wrote;
    for (int i = 0; i < 10; ++i) {
      const std::string key = name(random());
      Cell after = cell(seq + 1, key + "/" + std::to_string(seq + 1));
      cache.stage(key, *cache.current(key), after, ++seq);
      wrote.emplace_back(key, after);
    }
    RowBatch batch;
    for (const auto& [key, c] : wrote)
      batch.put(layout::cell_row(key), layout::cell_head(c.version) + Bytes(c.value()));
    for (const auto& [key, c] : wrote)
      cache.publish(key, c, c.version, seq);
    if (group % 3) std::this_thread::yield();
    cache.begin();
    CHECK(rows.apply(batch, seq));
    cache.end(seq);
  }
  over = true;
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_LE(cache.in_families(), 15u);
}

// Random operations on a cache so small that it evicts at every chance, compared with plain maps.
class RandomCache {
 public:
  explicit RandomCache(uint64_t seed)
      : random_(seed),
        max_clean_cells_(seed % 4),
        cache_(
            rows_, seed % 2 ? 16'000 : 1 << 20,
            // Ten families, by the first digit.
            {max_clean_cells_, [](BytesView key) { return key.substr(0, 5); }},
            {seed % 3 ? size_t{16} << 20 : 0, [](BytesView key) { return !key.ends_with("7"); }}) {}

  void step() {
    const std::string key = "key-" + std::to_string(random_() % 300);
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2: stage(key); break;
      case 3: publish(); break;
      case 4: apply(); break;
      default: compare(key);
    }
    ASSERT_LE(cache_.in_families(), 10 * max_clean_cells_);
  }

  void compare_staged() {
    std::map<std::string, Seq> unpublished, visited;
    for (const Written& w : staged_)
      unpublished[w.key] = w.cell.version;
    cache_.each_staged(
        [&](BytesView key, const Cell& c) { visited[std::string(key)] = c.version; });
    EXPECT_EQ(visited, unpublished);
  }

 private:
  struct Written {
    std::string key;
    Cell cell;
    Seq seq;
  };

  void stage(const std::string& key) {
    Cell before = *cache_.current(key);
    ASSERT_EQ(before.version, newest_[key].version);
    ++seq_;
    Cell after = random_() % 4 ? cell(seq_, std::string(random_() % 60, 'v')) : Cell{};
    cache_.stage(key, before, after, seq_);
    newest_[key] = after;
    staged_.push_back({key, after, seq_});
  }
  void publish() {
    if (staged_.empty()) return;
    for (const Written& w : staged_) {
      if (w.cell.exists())
        tail_.put(layout::cell_row(w.key), layout::cell_head(w.seq) + Bytes(w.cell.value()));
      else
        tail_.erase(layout::cell_row(w.key));
    }
    for (const Written& w : staged_) {
      cache_.publish(w.key, w.cell, w.seq, seq_);
      durable_[w.key] = w.cell;
    }
    published_ = seq_;
    staged_.clear();
  }
  void apply() {
    cache_.begin();
    ASSERT_TRUE(rows_.apply(tail_, published_));
    cache_.end(published_);
    tail_.clear();
  }
  void compare(const std::string& key) {
    ASSERT_EQ(cache_.read(key)->version, durable_[key].version);
    ASSERT_EQ(cache_.read(key)->value(), durable_[key].value());
    ASSERT_EQ(cache_.current(key)->version, newest_[key].version);
  }

  std::mt19937_64 random_;
  const size_t max_clean_cells_;
  MemoryRows rows_;
  CellCache cache_;
  std::map<std::string, Cell> durable_, newest_;
  std::vector<Written> staged_;
  RowBatch tail_;
  Seq seq_ = 0, published_ = 0;
};

TEST(cache, matches_a_plain_map_for_random_operations) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    RandomCache cache(seed);
    for (int i = 0; i < 4000; ++i) {
      cache.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    cache.compare_staged();
  }
}

}  // namespace pawl
