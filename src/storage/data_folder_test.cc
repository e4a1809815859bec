#include "storage/data_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "storage/test_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

struct DataFolder : testing::Test {
  TestFolder parent;
  const std::string data = parent.path() + "/data";
  void put(const std::string& name, const std::string& text) {
    fs::create_directories(data);
    std::ofstream(data + "/" + name) << text;
  }
  std::string line_of(const std::string& name) {
    std::ifstream in(data + "/" + name);
    std::string line;
    std::getline(in, line);
    return line;
  }
  Result<Stores> open() { return open_data(data, {.unflushed = true}); }
};

TEST_F(DataFolder, a_new_directory_is_created_and_opens_again) {
  EXPECT_EQ(open_data_journal(data).error().reason, "NO_DATA_DIR");
  {
    auto made = open();
    ASSERT_TRUE(made) << made.error().message;
    const BytesView entries[] = {"one"};
    ASSERT_TRUE(made->journal->append(entries, 0));
  }
  auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->journal->last(), 1u);
}

TEST_F(DataFolder, leftovers_of_a_first_start_or_a_new_disk_are_accepted) {
  put("FORMAT.tmp", "paw");
  fs::create_directories(data + "/lost+found");
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(fs::exists(data + "/FORMAT"));
}

TEST_F(DataFolder, a_directory_with_other_files_is_refused) {
  put("letters.txt", "dear");
  auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "NOT_A_DATA_DIR");
  EXPECT_FALSE(fs::exists(data + "/FORMAT"));
}

TEST_F(DataFolder, another_format_is_refused_by_name) {
  put("FORMAT", "pawl data 9, 4 shards\n");
  auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "DATA_FORMAT");
  EXPECT_NE(refused.error().message.find("pawl data 9, 4 shards"), std::string::npos);
  EXPECT_EQ(open_data_journal(data).error().reason, "DATA_FORMAT");
}

TEST_F(DataFolder, one_shard_has_the_layout_that_it_always_had) {
  EXPECT_EQ(*prepare_data(data, 1), 1u);
  ASSERT_TRUE(open());
  EXPECT_EQ(line_of("FORMAT"), "pawl data 1, 1 shard");
  EXPECT_TRUE(fs::exists(data + "/journal"));
  EXPECT_TRUE(fs::exists(data + "/rows"));
  EXPECT_FALSE(fs::exists(data + "/shards"));
  EXPECT_EQ(shard_folder(data, 1, 0), data);
}

TEST_F(DataFolder, several_shards_have_a_folder_each) {
  ASSERT_EQ(*prepare_data(data, 3), 3u);
  EXPECT_EQ(line_of("FORMAT"), "pawl data 2, 3 shards");
  for (uint32_t shard = 0; shard < 3; ++shard) {
    auto opened = open_shard_data(shard_folder(data, 3, shard), {.unflushed = true});
    ASSERT_TRUE(opened) << opened.error().message;
    const BytesView entries[] = {"one", "two", "three"};
    ASSERT_TRUE(opened->journal->append(std::span(entries).first(shard + 1), 0));
  }
  EXPECT_TRUE(fs::exists(data + "/shards/0002/journal"));
  EXPECT_TRUE(fs::exists(data + "/shards/0002/rows"));
  EXPECT_FALSE(fs::exists(data + "/journal"));
  for (uint32_t shard = 0; shard < 3; ++shard)
    EXPECT_EQ((*open_data_journal(data, shard))->last(), shard + 1);
  EXPECT_EQ(open_data_journal(data, 3).error().reason, "NO_SHARD");
}

TEST_F(DataFolder, the_number_of_shards_never_changes) {
  ASSERT_TRUE(prepare_data(data, 8));
  auto refused = prepare_data(data, 4);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(kShardNumber));
  EXPECT_NE(refused.error().message.find("--shards 8"), std::string::npos) << "the remedy";
  EXPECT_EQ(*prepare_data(data, 0), 8u) << "no number asks for the directory's own";
  EXPECT_TRUE(open().error().is(kShardNumber)) << "an engine in process has one shard";
}

TEST_F(DataFolder, one_shard_does_not_become_several) {
  ASSERT_TRUE(open());
  EXPECT_TRUE(prepare_data(data, 2).error().is(kShardNumber));
  EXPECT_EQ(*prepare_data(data, 0), 1u);
}

TEST_F(DataFolder, a_number_of_shards_out_of_range_is_no_format) {
  for (const char* line :
       {"pawl data 2, 1 shards", "pawl data 2, 0 shards", "pawl data 2, x shards",
        "pawl data 2, 1025 shards", "pawl data 2,  shards"}) {
    put("FORMAT", line);
    EXPECT_EQ(prepare_data(data, 0).error().reason, "DATA_FORMAT") << line;
  }
}

TEST_F(DataFolder, a_first_start_that_was_interrupted_goes_on) {
  fs::create_directories(data + "/shards/0000");
  EXPECT_EQ(*prepare_data(data, 2), 2u);
  EXPECT_TRUE(fs::exists(data + "/shards/0001"));
}

TEST_F(DataFolder, the_folder_of_a_shard_that_is_gone_is_not_made_again) {
  ASSERT_TRUE(prepare_data(data, 2));
  fs::remove_all(data + "/shards/0001");
  EXPECT_EQ(prepare_data(data, 2).error().reason, "SHARD_LOST");
  EXPECT_EQ(open_data_journal(data, 0).error().reason, "SHARD_LOST");
}

TEST_F(DataFolder, damaged_rows_are_deleted_with_a_note) {
  ASSERT_TRUE(open());
  std::ofstream(data + "/rows/CURRENT") << "nonsense";
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_EQ(opened->notes.size(), 1u);
  EXPECT_NE(opened->notes[0].find("rebuilt from the journal"), std::string::npos);
  EXPECT_EQ(opened->rows->applied(), 0u);
}

// Damage in the middle of a table is found by the first read of it, not by opening.
TEST_F(DataFolder, rows_found_damaged_are_deleted_at_the_next_start) {
  {
    auto made = open();
    ASSERT_TRUE(made) << made.error().message;
    RowBatch batch;
    for (int i = 0; i < 20'000; ++i)
      batch.put(std::to_string(i), std::to_string(i * 7919));
    ASSERT_TRUE(made->rows->apply(batch, 5));
    ASSERT_TRUE(made->rows->flush());
  }
  for (const auto& file : fs::directory_iterator(data + "/rows")) {
    if (file.path().extension() != ".sst") continue;
    std::fstream out(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(fs::file_size(file.path()) / 2));
    out.write("\x55\xaa\x55", 3);
  }
  {
    auto opened = open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(opened->rows->intact());
    auto scanned =
        opened->rows->snapshot()->scan("", "", [](BytesView, BytesView) { return true; });
    ASSERT_FALSE(scanned);
    ASSERT_FALSE(opened->rows->intact());
    EXPECT_TRUE(opened->rows->intact().error().is(kRowsCorrupt));
  }
  auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->notes.size(), 1u);
  EXPECT_NE(again->notes[0].find("rebuilt from the journal"), std::string::npos);
  EXPECT_EQ(again->rows->applied(), 0u);
}

}  // namespace
}  // namespace pawl
