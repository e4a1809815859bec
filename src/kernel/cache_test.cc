#include "kernel/cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernel/rows_layout.h"
#include "storage/memory.h"

namespace pawl {

static Cell cell(Seq version, std::string value) { return {version, std::make_shared<const Stored>(std::move(value))}; }

TEST(cache, what_is_staged_is_seen_by_the_kernel_alone_until_it_is_published) {
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
  cache.each_staged([&](BytesView key, const Cell& c) { staged += key == "k" && c.value() == "two"; });
  EXPECT_EQ(staged, 1u);
  cache.publish("k", cell(2, "two"), 2, 2);
  EXPECT_EQ(cache.read("k")->value(), "two");
  cache.each_staged([&](BytesView, const Cell&) { ADD_FAILURE(); });
}

// Against a plain map, in a cache so small that everything falls out as soon as it may.
TEST(cache, never_loses_or_mixes_up_a_cell) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    MemoryRows rows;
    CellCache cache(rows, seed % 2 ? 16'000 : 1 << 20);
    std::map<std::string, Cell> durable, newest;
    struct Written {
      std::string key;
      Cell cell;
      Seq seq;
    };
    std::vector<Written> staged;
    RowBatch tail;
    Seq seq = 0, published = 0;
    for (int i = 0; i < 4000; ++i) {
      std::string key = "key-" + std::to_string(random() % 300);
      switch (random() % 8) {
        case 0: case 1: case 2: {
          Cell before = *cache.current(key);
          ASSERT_EQ(before.version, newest[key].version);
          Cell after = random() % 4 ? cell(++seq, std::string(random() % 60, 'v')) : (++seq, Cell{});
          cache.stage(key, before, after, seq);
          newest[key] = after;
          staged.push_back({key, after, seq});
          break;
        }
        case 3:
          if (staged.empty()) break;
          for (const Written& w : staged) {
            if (w.cell.exists()) tail.put(layout::cell_row(w.key), layout::cell_head(w.seq) + Bytes(w.cell.value()));
            else tail.erase(layout::cell_row(w.key));
          }
          for (const Written& w : staged) cache.publish(w.key, w.cell, w.seq, seq), durable[w.key] = w.cell;
          published = seq;
          staged.clear();
          break;
        case 4:
          cache.begin();
          ASSERT_TRUE(rows.apply(tail, published));
          cache.end(published);
          tail.clear();
          break;
        default:
          ASSERT_EQ(cache.read(key)->version, durable[key].version) << seed << " " << i;
          ASSERT_EQ(cache.read(key)->value(), durable[key].value());
          ASSERT_EQ(cache.current(key)->version, newest[key].version);
      }
    }
    std::map<std::string, Seq> unpublished, told;
    for (const Written& w : staged) unpublished[w.key] = w.cell.version;
    cache.each_staged([&](BytesView key, const Cell& c) { told[std::string(key)] = c.version; });
    EXPECT_EQ(told, unpublished);
  }
}

}  // namespace pawl
