#include "runtime/cluster/checkpoints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/cluster/file_pack.h"
#include "runtime/tally_test.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

Bytes bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(file_pack, files_come_back_and_every_damage_is_found) {
  TestFolder folder;
  fs::create_directories(folder.sub("in/deep"));
  std::ofstream(folder.sub("in/a"), std::ios::binary) << Bytes((1 << 20) + 17, 'a');
  std::ofstream(folder.sub("in/deep/b"), std::ios::binary) << "bb";
  std::ofstream(folder.sub("in/empty"), std::ios::binary);
  ASSERT_TRUE(pack_files(folder.sub("in"), "label", folder.sub("pack")));
  auto label = unpack_files(folder.sub("pack"), folder.sub("out"));
  ASSERT_TRUE(label) << label.error().message;
  EXPECT_EQ(*label, "label");
  EXPECT_EQ(bytes_of(folder.sub("out/a")), bytes_of(folder.sub("in/a")));
  EXPECT_EQ(bytes_of(folder.sub("out/deep/b")), "bb");
  EXPECT_TRUE(fs::exists(folder.sub("out/empty")));
  EXPECT_EQ(unpack_files(folder.sub("pack"), folder.sub("out")).error().reason, "FOLDER_EXISTS");

  const Bytes whole = bytes_of(folder.sub("pack"));
  auto expect_damaged = [&](const Bytes& bytes, const std::string& what) {
    std::ofstream(folder.sub("bad"), std::ios::binary | std::ios::trunc) << bytes;
    auto bad = unpack_files(folder.sub("bad"), folder.sub("bad-out"));
    EXPECT_FALSE(bad) << what;
    EXPECT_FALSE(fs::exists(folder.sub("bad-out"))) << what;
  };
  for (size_t at : {size_t{0}, size_t{8}, size_t{10}, size_t{15}, size_t{21}, size_t{30},
                    whole.size() / 2, whole.size() - 40, whole.size() - 1}) {
    Bytes bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    expect_damaged(bytes, fmt::format("byte {}", at));
    expect_damaged(whole.substr(0, at), fmt::format("cut at {}", at));
  }
  expect_damaged(whole + "x", "longer");
}

TEST(checkpoints, the_journal_is_trimmed_only_below_what_the_archive_gives_back) {
  TestFolder folder;
  auto archive = *open_folder_archive(folder.sub("archive"));
  Host host;
  Checkpoints checkpoints(*archive, 0, folder.sub("work"));
  ASSERT_TRUE(checkpoints.retire(*host.shard, 2)) << "without a checkpoint nothing happens";
  for (int round = 1; round <= 4; ++round) {
    for (int i = 0; i < 10; ++i)
      ASSERT_TRUE(host.say("add", "x"));
    auto stored = checkpoints.store(*host.shard);
    ASSERT_TRUE(stored && *stored);
    EXPECT_EQ((*stored)->seq, static_cast<Seq>(10 * round));
    EXPECT_EQ((*stored)->name, fmt::format("0000/checkpoint-{:020}", 10 * round));
    ASSERT_TRUE(checkpoints.retire(*host.shard, 2));
  }
  EXPECT_EQ(host.journal->first(), 30u);
  EXPECT_EQ(checkpoints.list()->size(), 2u);
  auto fetched = checkpoints.fetch_newest(folder.sub("rows"));
  ASSERT_TRUE(fetched && *fetched);
  EXPECT_EQ((*fetched)->seq, 40u);
  EXPECT_EQ((*MemoryRows::load(folder.sub("rows")))->applied(), 40u);

  // A damaged one costs the journal nothing.
  const std::string oldest = folder.sub("archive/" + checkpoints.list()->at(1).name);
  Bytes bytes = bytes_of(oldest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(oldest, std::ios::binary | std::ios::trunc) << bytes;
  auto retired = checkpoints.retire(*host.shard, 1);
  ASSERT_FALSE(retired);
  EXPECT_EQ(retired.error().reason, "CHECKPOINT_DAMAGED");
  EXPECT_EQ(host.journal->first(), 30u);
  EXPECT_EQ(checkpoints.list()->size(), 2u);
}

TEST(checkpoints, those_of_another_journal_trim_nothing) {
  TestFolder folder;
  auto archive = *open_folder_archive(folder.sub("archive"));
  Checkpoints checkpoints(*archive, 0, folder.sub("work"));
  Host mine, theirs;
  ASSERT_TRUE(theirs.say("add", "a"));
  ASSERT_TRUE(*checkpoints.store(*theirs.shard));
  ASSERT_TRUE(mine.say("add", "b"));
  auto retired = checkpoints.retire(*mine.shard, 1);
  ASSERT_FALSE(retired);
  EXPECT_EQ(retired.error().reason, "CHECKPOINT_DIFFERS");
}

}  // namespace
}  // namespace pawl
