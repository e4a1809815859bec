// The index: its root depends on the entries alone.

#include <gtest/gtest.h>

#include "faces/worlds/snapshot/replay_test.h"

namespace pawl::worlds {
namespace {

struct Store {
  std::map<Bytes, Bytes> blobs;
  size_t puts = 0;
  IndexStore index() {
    return {[this](BytesView d) -> Result<Bytes> {
              auto it = blobs.find(Bytes(d));
              if (it == blobs.end()) return fail(Code::not_found, "store.error", "missing");
              return it->second;
            },
            [this](BytesView b) -> Result<Bytes> {
              ++puts;
              Bytes d(view(sha256(b)));
              blobs[d] = b;
              return d;
            }};
  }
};

IndexChange entry(int i, bool there = true) {
  Bytes at(view(sha256("key" + std::to_string(i))));
  IndexChange out{at, {}};
  if (there) {
    out.entry.emplace();
    cbor::append_canonical(*out.entry, cbor::Map{{"key_hash", digest_array(at)}, {"n", i}});
  }
  return out;
}

// case 169
TEST(cell_index, the_root_depends_on_the_set_alone) {
  Store store;
  const IndexStore index = store.index();
  std::vector<IndexChange> all;
  for (int i = 0; i < 500; ++i)
    all.push_back(entry(i));
  const Bytes once = *update_index(index, {}, all);
  Bytes piecemeal;
  for (int i = 599; i >= 0; --i)
    piecemeal = *update_index(index, piecemeal, {entry(i)});
  EXPECT_NE(piecemeal, once);
  for (int i = 500; i < 600; ++i)
    piecemeal = *update_index(index, piecemeal, {entry(i, false)});
  EXPECT_EQ(piecemeal, once);
  for (int i = 40; i < 500; ++i)
    piecemeal = *update_index(index, piecemeal, {entry(i, false)});
  std::vector<IndexChange> few;
  for (int i = 0; i < 40; ++i)
    few.push_back(entry(i));
  EXPECT_EQ(piecemeal, *update_index(index, {}, few));
  EXPECT_EQ(*update_index(index, *update_index(index, {}, {entry(1)}), {entry(1, false)}), Bytes());
  EXPECT_EQ((*find_in_index(index, once, entry(77).key_hash))->find("n")->as_int64(), 77);
  EXPECT_FALSE(*find_in_index(index, once, entry(700).key_hash));
}

TEST(cell_index, a_change_rewrites_one_path) {
  Store store;
  std::vector<IndexChange> all;
  for (int i = 0; i < 20'000; ++i)
    all.push_back(entry(i));
  const Bytes root = *update_index(store.index(), {}, all);
  store.puts = 0;
  ASSERT_TRUE(update_index(store.index(), root, {entry(20'001)}));
  EXPECT_LE(store.puts, 4u);
}

TEST(cell_index, an_update_in_two_parts_gives_the_same_root) {
  Store store;
  std::vector<IndexChange> all;
  for (int i = 0; i < 5000; ++i)
    all.push_back(entry(i));
  const Bytes before = *update_index(store.index(), {}, all);
  std::vector<IndexChange> changes;
  for (int i = 0; i < 5000; i += 3)
    changes.push_back(entry(i, i % 2 == 0));
  for (int i = 5000; i < 6000; ++i)
    changes.push_back(entry(i));
  const Bytes whole = *update_index(store.index(), before, changes);
  Bytes root = before;
  size_t rounds = 0, max = 0;
  for (; !changes.empty(); ++rounds) {
    auto some = update_index(store.index(), root, changes, 50'000);
    ASSERT_TRUE(some);
    ASSERT_GT(some->taken, 0u);
    root = some->root;
    max = std::max(max, some->bytes);
    changes.erase(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(some->taken));
  }
  EXPECT_EQ(root, whole);
  EXPECT_GT(rounds, 5u);
  EXPECT_LT(max, 100'000u);  // the budget, one leaf, and the path to it
}

// Nodes are written and read in place. They must be the bytes that cbor::canonical gives.
TEST(cell_index, nodes_are_canonical_cbor) {
  Store store;
  std::vector<IndexChange> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(entry(i));
  const Bytes root = *update_index(store.index(), {}, all);
  for (const auto& [digest, node] : store.blobs)
    EXPECT_EQ(cbor::canonical(*cbor::decode(node)), node);
  EXPECT_EQ(cbor::decode(store.blobs[root])->text_or("t"), "Branch");
  EXPECT_EQ(find_in_index(store.index(), Bytes(view(sha256("no node"))), entry(1).key_hash)
                .error()
                .reason,
            "store.error");
  for (const Bytes& bad :
       {Bytes(), Bytes("x"), store.blobs[root].substr(0, 40), store.blobs[root] + "x"}) {
    const Bytes digest = *store.index().put(bad);
    EXPECT_EQ(find_in_index(store.index(), digest, entry(1).key_hash).error().reason,
              "store.error");
  }
}

}  // namespace
}  // namespace pawl::worlds
