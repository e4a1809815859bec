// A file journal that lost its end: a file that was cut, a folder that is gone, and damage that
// looks like an interrupted write.

#include "storage/file/journal_image_test.h"

namespace pawl {
namespace {

// Segments never shrink while they are in use, so a shorter file was cut by something else.
TEST_F(FileJournalFault, a_last_segment_that_was_cut_is_corrupt_until_the_loss_is_accepted) {
  {
    auto journal = open();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(append(*journal, 2));
  }
  const Image whole = read_image(path());
  const std::string name = segment_name(1) + kPlainSuffix;
  Seq most = 0;
  for (size_t size = kSegmentHeaderBytes; size < whole.at(name).size(); size += 29) {
    Image cut = whole;
    cut[name].resize(size);
    write_image(path(), cut);
    Error error = open_error();
    ASSERT_EQ(error.code, Code::corrupt) << size;
    ASSERT_NE(error.message.find("pawl journal accept-loss"), std::string::npos) << error.message;
    auto kept = accept_loss(options(), "given up");
    ASSERT_TRUE(kept) << kept.error().message;
    most = std::max(most, *kept);
    auto journal = open();
    ASSERT_EQ(journal->last(), *kept);
    ASSERT_EQ(journal->last() % 2, 0u);
    ASSERT_TRUE(append(*journal, 3));
    ASSERT_EQ(read_all(*journal).last, *kept + 3);
    ASSERT_EQ(read_loss_marks(path()), std::vector<std::string>{"given up"});
  }
  EXPECT_EQ(most, 10u);
}

TEST_F(FileJournalFault, a_lost_folder_is_empty_after_its_loss_is_accepted) {
  ASSERT_EQ(accept_loss(options(), "one").value(), 0u);
  ASSERT_TRUE(append(*open(), 3));
  Image image = read_image(path());
  image.erase(segment_name(1) + kPlainSuffix);
  write_image(path(), image);
  EXPECT_EQ(open_error().code, Code::corrupt);
  ASSERT_EQ(accept_loss(options(), "two").value(), 0u);
  EXPECT_EQ(read_loss_marks(path()), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(append(*open(), 1));
}

// The last group holds sectors of zeros and ends in zeros: its own content looks like an
// interrupted write. A flip anywhere in it is damage; a sector that is missing is an interrupted
// write.
TEST_F(FileJournalFault, damage_in_a_group_with_zero_sectors_is_not_taken_for_a_torn_write) {
  FileJournalOptions large = options();
  large.first_segment_bytes = large.segment_bytes = 1 << 16;
  Bytes zeros = Bytes(700, 'a') + Bytes(3000, '\0') + Bytes(900, 'b') + Bytes(600, '\0');
  std::vector<BytesView> entries{zeros, "short", zeros};
  uint64_t start = 0;
  {
    auto journal = FileJournal::open(large).value();
    ASSERT_TRUE(append(*journal, 1));
    start = read_image(path())[segment_name(1) + kPlainSuffix].find_last_not_of('\0') + 1;
    start = (start + 7) & ~uint64_t{7};
    ASSERT_TRUE(journal->append(entries, 1));
    EXPECT_EQ(journal->get(2).value(), zeros);
  }
  const Image whole = read_image(path());
  const std::string name = segment_name(1) + kPlainSuffix;
  const uint64_t end = whole.at(name).find_last_not_of('\0') + 1;
  EXPECT_EQ(FileJournal::open(large).value()->get(4).value(), zeros);
  for (uint64_t at = start; at < end; at += 11) {
    Image flipped = whole;
    flipped[name][at] ^= 0x10;
    write_image(path(), flipped);
    auto journal = FileJournal::open(large);
    ASSERT_FALSE(journal) << "a flip at " << at << " dropped an acknowledged group";
    ASSERT_EQ(journal.error().code, Code::corrupt);
  }
  size_t torn = 0;
  for (uint64_t sector = start / 512 + 1; sector <= end / 512; ++sector) {
    Image lost = whole;
    Bytes& bytes = lost[name];
    auto from = bytes.begin() + static_cast<std::ptrdiff_t>(sector * 512);
    std::fill(from, from + 512, '\0');
    if (bytes == whole.at(name)) continue;
    write_image(path(), lost);
    auto journal = FileJournal::open(large);
    ASSERT_TRUE(journal) << journal.error().message;
    ASSERT_EQ((*journal)->last(), 1u);
    ++torn;
  }
  EXPECT_GT(torn, 5u);
}

}  // namespace
}  // namespace pawl
