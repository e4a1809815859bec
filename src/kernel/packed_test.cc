#include "kernel/packed.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/hash.h"

namespace pawl {
namespace {

Cell cell(Seq version, std::string value) {
  return {version, std::make_shared<const Stored>(std::move(value))};
}

struct Packed : testing::Test {
  void put(const std::string& key, const Cell& c) { packed.put(quick_hash(key), key, c); }
  Cell take(const std::string& key) { return packed.take(quick_hash(key), key); }
  PackedCells packed{PackedCells::kLeast};
};

TEST_F(Packed, returns_a_stored_cell_once) {
  put("a", cell(3, "one"));
  put("", cell(4, ""));
  put("b", cell(5, std::string("\0\1", 2)));
  EXPECT_EQ(packed.count(), 3u);
  EXPECT_EQ(take("a").version, 3u);
  EXPECT_FALSE(take("a").exists());
  EXPECT_EQ(take("").value(), "");
  EXPECT_EQ(take("b").value(), std::string("\0\1", 2));
  put("a", cell(6, "two"));
  packed.erase(quick_hash("a"), "a");
  packed.erase(quick_hash("c"), "c");
  EXPECT_FALSE(take("a").exists());
  put("a", cell(7, "three"));
  packed.clear();
  EXPECT_EQ(packed.count(), 0u);
  EXPECT_FALSE(take("a").exists());
}

TEST_F(Packed, stores_nothing_too_large_or_without_memory) {
  put("large", cell(1, std::string(PackedCells::kMax, 'x')));
  EXPECT_EQ(packed.count(), 0u);
  PackedCells none(PackedCells::kLeast - 1);
  none.put(1, "a", cell(1, "v"));
  EXPECT_EQ(none.count(), 0u);
}

TEST_F(Packed, evicts_first_in_first_out) {
  const std::string value(1000, 'v');
  for (int i = 0; i < 2000; ++i)
    put(std::to_string(i), cell(i + 1, value));
  EXPECT_LT(packed.count() * 1000, PackedCells::kLeast);
  EXPECT_GT(packed.count() * 1000, PackedCells::kLeast / 2);
  EXPECT_FALSE(take("0").exists());
  for (int i = 1999; i > 1800; --i)
    EXPECT_EQ(take(std::to_string(i)).value(), value) << i;
}

// Cells that come and go leave holes; those that stay are not lost for them.
TEST_F(Packed, keeps_every_cell_while_all_fit) {
  std::mt19937 random(1);
  const std::string value(200, 'v');
  constexpr int kCells = PackedCells::kLeast / 250 / 2;
  for (int i = 0; i < kCells; ++i)
    put(std::to_string(i), cell(1, value));
  for (Seq round = 2; round < 200'000; ++round) {
    const std::string key = std::to_string(random() % kCells);
    ASSERT_TRUE(take(key).exists()) << round;
    put(key, cell(round, value));
  }
  EXPECT_EQ(packed.count(), static_cast<size_t>(kCells));
}

TEST_F(Packed, returns_only_the_last_stored_version) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    std::map<std::string, Cell> there;
    size_t lost = 0, found = 0;
    packed.clear();
    for (Seq n = 1; n < 40'000; ++n) {
      const std::string key(1 + random() % 3, static_cast<char>('a' + random() % 26));
      const std::string name = key + std::to_string(random() % 40);
      if (const auto it = there.find(name); it != there.end()) {
        Cell got = random() % 8 ? take(name) : (packed.erase(quick_hash(name), name), Cell{});
        if (got.exists()) {
          ASSERT_EQ(got.version, it->second.version);
          ASSERT_EQ(got.value(), it->second.value());
          ++found;
        } else {
          ++lost;
        }
        there.erase(it);
      } else {
        ASSERT_FALSE(take(name).exists());
        put(name, there[name] = cell(
                      n, std::string(random() % (random() % 20 ? 300 : PackedCells::kMax + 100),
                                     static_cast<char>(n))));
      }
    }
    EXPECT_GT(found, 1000u);
    EXPECT_GT(lost, 1000u);
    EXPECT_LE(packed.count(), there.size());
  }
}

}  // namespace
}  // namespace pawl
