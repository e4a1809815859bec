// The promises of the Rows interface, tested for every backend.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "storage/memory/memory.h"
#include "storage/open.h"
#include "storage/row_sizes.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

using Pairs = std::vector<std::pair<Bytes, Bytes>>;

class RowsPromise : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { rows = open(folder.sub("rows")); }
  std::unique_ptr<Rows> open(const std::string& path) {
    auto opened = open_rows({.backend = GetParam(), .folder = path, .cache_bytes = 1 << 20});
    if (!opened) ADD_FAILURE() << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  void put(BytesView key, BytesView value) {
    RowBatch batch;
    batch.put(key, value);
    ASSERT_TRUE(rows->apply(batch, rows->applied() + 1));
  }
  static Pairs scan(const RowsSnapshot& snapshot, BytesView first, BytesView limit) {
    Pairs found;
    EXPECT_TRUE(snapshot.scan(first, limit, [&](BytesView k, BytesView v) {
      found.emplace_back(k, v);
      return true;
    }));
    return found;
  }
  static Pairs scan_back(const RowsSnapshot& snapshot, BytesView first, BytesView limit) {
    Pairs found;
    EXPECT_TRUE(snapshot.scan_back(first, limit, [&](BytesView k, BytesView v) {
      found.emplace_back(k, v);
      return true;
    }));
    return found;
  }
  TestFolder folder;
  std::unique_ptr<Rows> rows;
};

TEST_P(RowsPromise, new_rows_are_empty_and_have_applied_nothing) {
  EXPECT_EQ(rows->applied(), 0u);
  EXPECT_EQ(rows->get("a").value(), std::nullopt);
  EXPECT_TRUE(scan(*rows->snapshot(), {}, {}).empty());
}

TEST_P(RowsPromise, the_later_of_two_changes_wins) {
  RowBatch batch;
  batch.put("k", "1");
  batch.put("k", "2");
  batch.put("gone", "1");
  batch.erase("gone");
  batch.erase("back");
  batch.put("back", "");
  ASSERT_TRUE(rows->apply(batch, 7));
  EXPECT_EQ(rows->get("k").value(), "2");
  EXPECT_EQ(rows->get("gone").value(), std::nullopt);
  EXPECT_EQ(rows->get("back").value(), "");
  EXPECT_EQ(rows->applied(), 7u);
  EXPECT_EQ(rows->snapshot()->applied(), 7u);
}

// The load is large and sorted, as in a replay. It changes existing rows, later changes follow it,
// and the rows are opened again.
TEST_P(RowsPromise, a_load_has_the_effect_of_an_apply) {
  put("0000007", "old");
  put("0000008", "old");
  auto before = rows->snapshot();
  RowBatch large, unordered;
  for (int i = 0; i < 20'000; ++i) {
    std::string key = std::string(7 - std::to_string(i).size(), '0') + std::to_string(i);
    if (i == 8)
      large.erase(key);
    else
      large.put(key, std::string(100, 'v'));
  }
  ASSERT_GT(large.bytes(), 2u << 20);
  ASSERT_TRUE(rows->load(large.changes(), 100));
  EXPECT_EQ(rows->applied(), 100u);
  EXPECT_EQ(rows->get("0000007").value(), std::string(100, 'v'));
  EXPECT_EQ(rows->get("0000008").value(), std::nullopt);
  EXPECT_EQ(scan(*before, {}, {}).size(), 2u);
  EXPECT_EQ(scan(*rows->snapshot(), {}, {}).size(), 19'999u);
  // Changes out of order are applied too.
  for (int i = 20'000; i > 0; --i)
    unordered.put(std::to_string(i), std::string(100, 'w'));
  ASSERT_TRUE(rows->load(unordered.changes(), 101));
  EXPECT_EQ(rows->get("17").value(), std::string(100, 'w'));
  put("0000007", "new");
  EXPECT_EQ(rows->get("0000007").value(), "new");
  EXPECT_EQ(rows->applied(), 102u);
  EXPECT_EQ(rows->load(large.changes(), 99).error().reason, "APPLIED_BACKWARDS");
  before.reset();
  if (GetParam() == std::string_view("memory")) return;
  // A load is durable without a flush. Later changes may be lost, but never earlier ones.
  rows.reset();
  rows = open(folder.sub("rows"));
  EXPECT_GE(rows->applied(), 100u);
  EXPECT_EQ(rows->get("0000009").value(), std::string(100, 'v'));
}

// More loads than RocksDB keeps as separate files.
TEST_P(RowsPromise, the_newest_of_many_loads_wins) {
  for (Seq seq = 1; seq <= 40; ++seq) {
    RowBatch batch;
    for (int i = 1000; i < 2200; ++i)
      if (i % 7 != static_cast<int>(seq % 7))
        batch.put(std::to_string(i), std::to_string(seq) + std::string(1200, 'v'));
    ASSERT_GT(batch.bytes(), 1u << 20);
    ASSERT_TRUE(rows->load(batch.changes(), seq));
  }
  put("1000", "after");
  ASSERT_TRUE(rows->flush());
  EXPECT_EQ(rows->get("1000").value(), "after");
  for (int i = 1001; i < 2200; ++i)
    EXPECT_EQ(rows->get(std::to_string(i)).value(),
              (i % 7 == 40 % 7 ? "39" : "40") + std::string(1200, 'v'));
  EXPECT_EQ(scan(*rows->snapshot(), {}, {}).size(), 1200u);
}

TEST_P(RowsPromise, an_erased_prefix_takes_its_rows_also_those_of_its_own_batch) {
  RowBatch first;
  for (const char* key : {"a", "h1", "h1x", "h2", "z"})
    first.put(key, "v");
  ASSERT_TRUE(rows->apply(first, 1));
  auto before = rows->snapshot();
  RowBatch second;
  second.put("h1y", "v");
  second.erase_prefix("h1");
  second.put("h0", "v");
  second.put("h1z", "v");
  ASSERT_TRUE(rows->load(second.changes(), 2));
  std::string left;
  for (const auto& [key, value] : scan(*rows->snapshot(), {}, {}))
    left += key + " ";
  EXPECT_EQ(left, "a h0 h2 z ");
  auto kept = before->get("h1x");
  ASSERT_TRUE(kept);
  EXPECT_TRUE(*kept) << "a snapshot does not change";
}

TEST_P(RowsPromise, applied_never_decreases) {
  ASSERT_TRUE(rows->apply({}, 7));
  ASSERT_TRUE(rows->apply({}, 7));
  EXPECT_EQ(rows->apply({}, 6).error().reason, "APPLIED_BACKWARDS");
  EXPECT_EQ(rows->applied(), 7u);
}

TEST_P(RowsPromise, a_snapshot_never_changes) {
  put("a", "1");
  auto before = rows->snapshot();
  put("a", "2");
  put("b", "1");
  auto between = rows->snapshot();
  RowBatch batch;
  batch.erase("a");
  ASSERT_TRUE(rows->apply(batch, 9));
  EXPECT_EQ(scan(*before, {}, {}), (Pairs{{"a", "1"}}));
  EXPECT_EQ(scan(*between, {}, {}), (Pairs{{"a", "2"}, {"b", "1"}}));
  EXPECT_EQ(scan(*rows->snapshot(), {}, {}), (Pairs{{"b", "1"}}));
  EXPECT_EQ(before->get("a").value(), "1");
  EXPECT_EQ(before->applied(), 1u);
  EXPECT_EQ(between->applied(), 3u);
}

TEST_P(RowsPromise, a_snapshot_outlives_the_rows) {
  put("a", "1");
  auto snapshot = rows->snapshot();
  rows.reset();
  EXPECT_EQ(snapshot->get("a").value(), "1");
}

// The keys include the empty key and keys that look like the reserved one.
TEST_P(RowsPromise, scans_visit_exactly_the_keys_within_their_bounds) {
  std::map<Bytes, Bytes> model;
  RowBatch batch;
  std::minstd_rand dice(1);
  for (const Bytes& key :
       {Bytes(), Bytes("a"), Bytes("r"), Bytes("s"), Bytes(1, '\0'), Bytes("\xff\xff")})
    model[key] = "x";
  for (int i = 0; i < 500; ++i) {
    Bytes key;
    for (size_t n = dice() % 4; n > 0; --n)
      key.push_back("\0amrs\xff"[dice() % 6]);
    model[key + std::to_string(dice() % 300)] = std::to_string(i);
  }
  for (auto& [k, v] : model)
    batch.put(k, v);
  ASSERT_TRUE(rows->apply(batch, 1));
  auto snapshot = rows->snapshot();
  std::vector<Bytes> bounds{"", "a", "m", "r", "s", "\xff", "s1", "zz"};
  for (auto& [k, v] : model) {
    if (dice() % 20 == 0) bounds.push_back(k);
  }
  for (const Bytes& first : bounds) {
    for (const Bytes& limit : bounds) {
      Pairs want;
      for (auto& [k, v] : model) {
        if (k >= first && (limit.empty() || k < limit)) want.emplace_back(k, v);
      }
      EXPECT_EQ(scan(*snapshot, first, limit), want);
      std::reverse(want.begin(), want.end());
      EXPECT_EQ(scan_back(*snapshot, first, limit), want);
    }
  }
}

TEST_P(RowsPromise, a_visitor_can_stop_a_scan) {
  for (int i = 0; i < 200; ++i)
    put("k" + std::to_string(1000 + i), "v");
  int seen = 0;
  ASSERT_TRUE(rows->snapshot()->scan({}, {}, [&](BytesView, BytesView) { return ++seen < 100; }));
  EXPECT_EQ(seen, 100);
  ASSERT_TRUE(
      rows->snapshot()->scan_back({}, {}, [&](BytesView, BytesView) { return ++seen < 105; }));
  EXPECT_EQ(seen, 105);
}

TEST_P(RowsPromise, a_checkpoint_opens_with_the_same_rows) {
  for (int i = 0; i < 300; ++i)
    put("k" + std::to_string(i), "v" + std::to_string(i));
  Pairs all = scan(*rows->snapshot(), {}, {});
  ASSERT_TRUE(rows->checkpoint(folder.sub("copy")));
  put("later", "x");
  EXPECT_EQ(rows->checkpoint(folder.sub("copy")).error().reason, "CHECKPOINT_FOLDER");
  auto copy = open(folder.sub("copy"));
  EXPECT_EQ(copy->applied(), 300u);
  EXPECT_EQ(scan(*copy->snapshot(), {}, {}), all);
}

TEST_P(RowsPromise, reset_removes_every_row) {
  put("a", "1");
  ASSERT_TRUE(rows->flush());
  put("b", "1");
  auto before = rows->snapshot();
  ASSERT_TRUE(rows->reset());
  EXPECT_EQ(rows->applied(), 0u);
  EXPECT_EQ(rows->snapshot()->applied(), 0u);
  EXPECT_TRUE(scan(*rows->snapshot(), {}, {}).empty());
  EXPECT_EQ(before->get("a").value(), "1");
  put("a", "2");
  EXPECT_EQ(rows->applied(), 1u);
  EXPECT_EQ(scan(*rows->snapshot(), {}, {}), (Pairs{{"a", "2"}}));
}

TEST_P(RowsPromise, concurrent_readers_see_complete_batches) {
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      auto snapshot = rows->snapshot();
      std::set<Bytes> values;
      size_t count = 0;
      EXPECT_TRUE(snapshot->scan({}, {}, [&](BytesView, BytesView v) {
        values.emplace(v);
        ++count;
        return true;
      }));
      EXPECT_LE(values.size(), 1u);
      EXPECT_EQ(count, snapshot->applied() == 0 ? 0u : 100u);
      if (!values.empty()) {
        EXPECT_EQ(*values.begin(), std::to_string(snapshot->applied()));
      }
    }
  });
  for (Seq seq = 1; seq <= 200; ++seq) {
    RowBatch batch;
    for (int i = 0; i < 100; ++i)
      batch.put("k" + std::to_string(i), std::to_string(seq));
    ASSERT_TRUE(rows->apply(batch, seq));
  }
  done = true;
  reader.join();
}

TEST_P(RowsPromise, rows_and_snapshots_agree_with_a_map) {
  std::map<Bytes, Bytes> model;
  std::minstd_rand dice(7);
  std::deque<std::pair<std::unique_ptr<RowsSnapshot>, std::map<Bytes, Bytes>>> held;
  for (Seq seq = 1; seq <= 300; ++seq) {
    RowBatch batch;
    for (size_t n = dice() % 20; n > 0; --n) {
      Bytes key = std::to_string(dice() % 50);
      if (dice() % 3 == 0) {
        batch.erase(key);
        model.erase(key);
      } else {
        batch.put(key, std::to_string(seq));
        model[key] = std::to_string(seq);
      }
    }
    ASSERT_TRUE(rows->apply(batch, seq));
    if (dice() % 4 == 0) held.emplace_back(rows->snapshot(), model);
    if (dice() % 7 == 0) {
      ASSERT_TRUE(rows->flush());
    }
    if (!held.empty() && dice() % 5 == 0) {
      size_t which = dice() % held.size();
      EXPECT_EQ(scan(*held[which].first, {}, {}),
                Pairs(held[which].second.begin(), held[which].second.end()));
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
    EXPECT_EQ(scan(*rows->snapshot(), {}, {}), Pairs(model.begin(), model.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(every, RowsPromise, testing::Values("memory", "rocksdb"),
                         [](const auto& info) { return std::string(info.param); });

TEST(memory_rows, a_crash_restores_the_last_flush) {
  MemoryRows rows;
  RowBatch one, two;
  one.put("a", "1");
  two.put("a", "2");
  two.put("b", "2");
  ASSERT_TRUE(rows.apply(one, 1));
  ASSERT_TRUE(rows.flush());
  ASSERT_TRUE(rows.apply(two, 2));
  rows.crash();
  EXPECT_EQ(rows.applied(), 1u);
  EXPECT_EQ(rows.get("a").value(), "1");
  EXPECT_EQ(rows.get("b").value(), std::nullopt);
  ASSERT_TRUE(rows.apply(two, 2));
  EXPECT_EQ(rows.get("b").value(), "2");
}

TEST(rocks_rows, flushed_rows_and_their_seq_survive_reopening) {
  TestFolder folder;
  {
    auto rows = open_rows({.folder = folder.sub("rows")}).value();
    RowBatch batch;
    batch.put("a", "1");
    ASSERT_TRUE(rows->apply(batch, 5));
    ASSERT_TRUE(rows->flush());
  }
  auto rows = open_rows({.folder = folder.sub("rows")}).value();
  EXPECT_EQ(rows->applied(), 5u);
  EXPECT_EQ(rows->get("a").value(), "1");
}

TEST(rocks_rows, a_damaged_folder_is_corrupt_with_the_remedy) {
  TestFolder folder;
  {
    auto rows = open_rows({.folder = folder.sub("rows")}).value();
    ASSERT_TRUE(rows->apply({}, 5));
    ASSERT_TRUE(rows->flush());
  }
  std::ofstream(folder.sub("rows/CURRENT"), std::ios::trunc) << "nonsense\n";
  auto opened = open_rows({.folder = folder.sub("rows")});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::corrupt) << opened.error().message;
  EXPECT_NE(opened.error().message.find("rebuilt from the journal"), std::string::npos);
}

TEST(rocks_rows, a_missing_or_damaged_table_is_corrupt) {
  for (bool lost : {true, false}) {
    TestFolder folder;
    {
      auto rows = open_rows({.folder = folder.sub("rows")}).value();
      RowBatch batch;
      for (int i = 0; i < 1000; ++i)
        batch.put(std::to_string(i), std::to_string(i));
      ASSERT_TRUE(rows->apply(batch, 5));
      ASSERT_TRUE(rows->flush());
    }
    for (const auto& file : std::filesystem::directory_iterator(folder.sub("rows"))) {
      if (file.path().extension() != ".sst") continue;
      if (lost) {
        std::filesystem::remove(file.path());
      } else {
        std::fstream out(file.path(), std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(100);
        out.write("\x55\xaa\x55", 3);
      }
    }
    std::optional<Error> error;
    auto rows = open_rows({.folder = folder.sub("rows")});
    if (!rows) error = rows.error();
    for (int i = 0; i < 1000 && !error; ++i) {
      auto got = (*rows)->get(std::to_string(i));
      if (!got)
        error = got.error();
      else
        EXPECT_EQ(*got, std::to_string(i));
    }
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Code::corrupt) << error->message;
  }
}

TEST(rocks_rows, the_size_of_a_range_is_about_that_of_its_rows) {
  TestFolder folder;
  auto rows = open_rows({.folder = folder.sub("rows")}).value();
  RowBatch batch;
  uint32_t random = 1;  // bytes that do not compress
  for (int i = 0; i < 4000; ++i) {
    Bytes value;
    for (int j = 0; j < 1000; ++j)
      value.push_back(static_cast<char>((random = random * 1664525 + 1013904223) >> 24));
    batch.put((i % 4 ? "a" : "b") + std::to_string(i), value);
  }
  ASSERT_TRUE(rows->apply(batch, 1));
  const auto* sizes = dynamic_cast<const RowSizes*>(rows.get());
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->approximate_bytes("a", "c"), 0u);
  ASSERT_TRUE(rows->flush());
  EXPECT_NEAR(static_cast<double>(sizes->approximate_bytes("a", "b")), 3e6, 5e5);
  EXPECT_NEAR(static_cast<double>(sizes->approximate_bytes("b", "c")), 1e6, 3e5);
  EXPECT_LT(sizes->approximate_bytes("c", "d"), 100'000u);
}

TEST(rocks_rows, a_second_open_is_unavailable_and_not_corrupt) {
  TestFolder folder;
  auto rows = open_rows({.folder = folder.sub("rows")}).value();
  auto second = open_rows({.folder = folder.sub("rows")});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::unavailable);
}

}  // namespace
}  // namespace pawl
