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
