// The file journal on a faulty disk: interrupted writes, flipped bits, lost files, a full disk.

#include "storage/file/file_journal.h"

#include <thread>

#include "storage/file/journal_image_test.h"

namespace pawl {
namespace {

TEST_F(FileJournalFault, an_interrupted_last_group_is_dropped_as_a_whole) {
  uint64_t start = 0;
  {
    auto journal = open();
    ASSERT_TRUE(append(*journal, 4));
    ASSERT_TRUE(append(*journal, 2));
    journal.reset();
    start = read_image(path()).begin()->second.find_last_not_of('\0') + 1;
    start = (start + 7) & ~uint64_t{7};
    journal = open();
    ASSERT_TRUE(append(*journal, 3));
  }
  const Image whole = read_image(path());
  std::string name = segment_name(1) + kPlainSuffix;
  uint64_t end = whole.at(name).find_last_not_of('\0') + 1;
  ASSERT_GT(end, start + 100);
  enum Tear { tail_lost, head_lost };
  for (Tear tear : {tail_lost, head_lost}) {
    for (uint64_t at = start; at < end; ++at) {
      // A disk writes a sector as a whole, so a header and the last few bytes are there or not.
      if (tear == head_lost && at + 1 < start + kGroupHeaderBytes) continue;
      if (tear == tail_lost && at > end - 24) continue;
      Image torn = whole;
      Bytes& bytes = torn[name];
      if (tear == tail_lost) std::fill(bytes.begin() + at, bytes.end(), '\0');
      if (tear == head_lost) std::fill(bytes.begin() + start, bytes.begin() + at + 1, '\0');
      bool anything =
          bytes.find_last_not_of('\0') >= start && bytes.find_last_not_of('\0') != Bytes::npos;
      write_image(path(), torn);
      auto journal = open();
      ASSERT_EQ(journal->last(), 6u) << tear << " at " << at;
      ASSERT_EQ(journal->recovered().dropped_bytes > 0, anything) << tear << " at " << at;
      ASSERT_TRUE(append(*journal, 1));
      ASSERT_TRUE(append(*journal, 5));
      journal.reset();
      journal = open();
      ASSERT_TRUE(journal->recovered().text().empty());
      ASSERT_EQ(read_all(*journal).last, 12u);
    }
  }
}

// A power cut may lose any one sector of the last group, also one that holds eight bytes of it.
TEST_F(FileJournalFault, a_group_that_lost_any_one_sector_is_dropped) {
  constexpr uint64_t kSector = 512;
  std::string name = segment_name(1) + kPlainSuffix;
  for (size_t filler = 1; filler <= kSector / 8; ++filler) {
    std::filesystem::remove_all(path());
    uint64_t start = 0;
    {
      auto journal = open();
      const Bytes fills(filler * 8, 'f');
      const Bytes two(640, 't');
      BytesView first[] = {fills};
      BytesView second[] = {two, "end"};
      ASSERT_TRUE(journal->append(first, 0));
      start = (read_image(path()).at(name).find_last_not_of('\0') + 8) & ~uint64_t{7};
      ASSERT_TRUE(journal->append(second, 1));
    }
    const Image whole = read_image(path());
    const uint64_t end = whole.at(name).find_last_not_of('\0') + 1;
    for (uint64_t at = start; at < end;) {
      const uint64_t next = std::min(end, (at / kSector + 1) * kSector);
      Image torn = whole;
      std::fill(torn[name].begin() + static_cast<ptrdiff_t>(at),
                torn[name].begin() + static_cast<ptrdiff_t>(next), '\0');
      write_image(path(), torn);
      auto journal = FileJournal::open(options());
      ASSERT_TRUE(journal) << journal.error().message;
      ASSERT_EQ((*journal)->last(), 1u) << "bytes " << at << " to " << next;
      at = next;
    }
  }
}

// Flips one bit of every byte in turn. A journal that still opens must give the right entries; only
// the last group may be missing, and then the journal reports it.
void expect_flips_are_found(const std::string& path, const Image& whole, FileJournalOptions options,
                            Seq last, Seq last_group) {
  size_t refused = 0;
  size_t unread = 0;
  write_image(path, whole);
  for (const auto& [name, bytes] : whole) {
    for (size_t at = 0; at < bytes.size(); ++at) {
      Bytes flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      write_file(path + "/" + name, flipped);
      auto journal = FileJournal::open(options);
      if (!journal) {
        ++refused;
        ASSERT_EQ(journal.error().code, Code::corrupt) << name << " at " << at;
        ASSERT_NE(journal.error().message.find("pawl restore"), std::string::npos)
            << journal.error().message;
        continue;
      }
      Reading reading = read_all(**journal);
      if (reading.error) {
        ++unread;
        ASSERT_EQ(reading.error->code, Code::corrupt) << name << " at " << at;
        ASSERT_NE(reading.error->message.find(name), std::string::npos) << reading.error->message;
        ASSERT_EQ((*journal)->last(), last);
      } else if (reading.last != last) {
        ASSERT_EQ(reading.last, last - last_group) << name << " at " << at;
        ASSERT_GT((*journal)->recovered().dropped_bytes, 0u);
      }
      if (auto one = (*journal)->get(last / 3)) {
        ASSERT_EQ(*one, entry(last / 3));
      }
    }
    write_file(path + "/" + name, bytes);
  }
  EXPECT_EQ(read_image(path), whole);
  EXPECT_GT(refused, 100u);
  EXPECT_GT(unread, 1000u);
}

TEST_F(FileJournalFault, a_flipped_bit_is_found_in_every_byte) {
  Seq last = fill();
  ASSERT_EQ(names(kPlainSuffix).size(), 3u);
  ASSERT_EQ(names(kIndexSuffix).size(), 2u);
  Image whole = read_image(path());
  expect_flips_are_found(path(), whole, options(), last, 3);
}

TEST_F(FileJournalFault, a_flipped_bit_in_a_compressed_segment_is_found) {
  Seq last = fill(true);
  ASSERT_EQ(names(kCompressedSuffix).size(), 2u);
  Image whole = read_image(path());
  std::string active = names(kPlainSuffix).back();
  Bytes& bytes = whole[active];
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  // The header of a file of this size.
  SegmentHeader header = decode_segment_header(bytes).value();
  header.file_bytes = 0;
  bytes.replace(0, kSegmentHeaderBytes, encode(header));
  expect_flips_are_found(path(), whole, options(true), last, 3);
}

TEST_F(FileJournalFault, damage_before_a_valid_group_is_corrupt) {
  {
    auto journal = open();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(append(*journal, 2));
  }
  Image image = read_image(path());
  Bytes& bytes = image[segment_name(1) + kPlainSuffix];
  std::fill(bytes.begin() + kSegmentHeaderBytes, bytes.begin() + kSegmentHeaderBytes + 200, '\0');
  write_image(path(), image);
  Error error = open_error();
  EXPECT_EQ(error.code, Code::corrupt);
  EXPECT_NE(error.message.find("a valid group after it"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("pawl journal cut --at 0"), std::string::npos) << error.message;
}

TEST_F(FileJournalFault, an_entry_that_looks_like_a_group_is_not_taken_for_one) {
  Bytes fake;
  BytesView inner = "inner";
  encode_group({&inner, 1}, 3, 0, fake);
  {
    auto journal = open();
    ASSERT_TRUE(append(*journal, 1));
    Bytes body = Bytes(1024, 'x') + fake + fake;
    BytesView view = body;
    ASSERT_TRUE(journal->append({&view, 1}, 1));
  }
  Image image = read_image(path());
  Bytes& bytes = image[segment_name(1) + kPlainSuffix];
  // The sector with the header of its group was not written.
  size_t head = bytes.find("xxxxxxxx") - kEntryHeaderBytes - kGroupHeaderBytes;
  std::fill(bytes.begin() + head, bytes.begin() + (head / 512 + 1) * 512, '\0');
  write_image(path(), image);
  EXPECT_EQ(open()->last(), 1u);
}

TEST_F(FileJournalFault, a_completely_written_but_invalid_last_group_is_corrupt) {
  {
    auto journal = open();
    ASSERT_TRUE(append(*journal, 50));
  }
  Image image = read_image(path());
  Bytes& bytes = image[segment_name(1) + kPlainSuffix];
  bytes[bytes.find_last_not_of('\0') / 2] ^= 1;
  write_image(path(), image);
  EXPECT_EQ(open_error().code, Code::corrupt);
}

TEST_F(FileJournalFault, a_missing_segment_is_corrupt) {
  fill();
  const Image whole = read_image(path());
  for (const std::string& name : names(kPlainSuffix)) {
    for (bool with_seal : {false, true}) {
      Image image = whole;
      image.erase(name);
      if (with_seal) image.erase(name.substr(0, 20) + kIndexSuffix);
      write_image(path(), image);
      Error error = open_error();
      EXPECT_EQ(error.code, Code::corrupt) << name;
      EXPECT_NE(error.message.find("a lost directory entry"),
                error.message.find("a directory entry was lost"))
          << error.message;
    }
  }
  for (const std::string& kept : {std::string(kFirstSeqName), std::string("nothing")}) {
    Image image = whole;
    if (kept == kFirstSeqName)
      std::erase_if(image, [&](const auto& file) { return file.first != kept; });
    else
      image.erase(kFirstSeqName);
    write_image(path(), image);
    EXPECT_EQ(open_error().code, Code::corrupt);
  }
}

TEST_F(FileJournalFault, an_interrupted_trim_is_finished) {
  Seq last = fill();
  Image whole = read_image(path());
  {
    auto journal = open();
    ASSERT_TRUE(journal->trim(last));
    ASSERT_GT(journal->first(), 1u);
  }
  Image trimmed = read_image(path());
  for (const auto& [name, bytes] : whole)
    trimmed.insert({name, bytes});
  write_image(path(), trimmed);
  auto journal = open();
  EXPECT_GT(journal->first(), 1u);
  EXPECT_EQ(read_all(*journal).last, last);
  EXPECT_EQ(names(kPlainSuffix).size(), 1u);
}

TEST_F(FileJournalFault, an_interrupted_creation_is_finished) {
  { auto journal = open(); }
  Image whole = read_image(path());
  for (Image image :
       {Image{{kSpareName, "half"}},
        Image{{segment_name(1) + kPlainSuffix, whole[segment_name(1) + kPlainSuffix]}}}) {
    write_image(path(), image);
    auto journal = open();
    ASSERT_TRUE(append(*journal, 1));
    journal.reset();
    EXPECT_EQ(open()->last(), 1u);
  }
}

TEST_F(FileJournalFault, other_files_are_kept_and_false_segments_refused) {
  Seq last = fill();
  std::ofstream(path() + "/README.txt") << "hello";
  std::filesystem::create_directory(path() + "/lost+found");
  EXPECT_EQ(read_all(*open()).last, last);
  EXPECT_TRUE(std::filesystem::exists(path() + "/README.txt"));
  std::filesystem::remove(path() + "/lost+found");
  std::ofstream(path() + "/copy of 1.seg") << "hello";
  Error error = open_error();
  EXPECT_EQ(error.code, Code::corrupt);
  EXPECT_NE(error.message.find("move it elsewhere"), std::string::npos);
}

TEST_F(FileJournalFault, a_second_open_is_refused_with_the_process_id) {
  auto journal = open();
  Error error = open_error();
  EXPECT_EQ(error.reason, "JOURNAL_LOCKED");
  EXPECT_NE(error.message.find(std::to_string(::getpid())), std::string::npos) << error.message;
  journal.reset();
  EXPECT_NE(open(), nullptr);
}

// A disk with limited space, whose flushes can be made to fail.
class SmallDisk final : public Disk {
 public:
  ssize_t write_at(int fd, const char* bytes, size_t size, uint64_t offset) override {
    if (full) return no_space();
    size_t fits = std::min<uint64_t>(size, space);
    if (fits < size) {
      full = true;
      uint64_t end = (offset + fits) / 512 * 512;  // a disk writes whole sectors
      fits = end > offset ? end - offset : 0;
    }
    space -= fits;
    if (fits == 0) return no_space();
    return Disk::write_at(fd, bytes, fits, offset);
  }
  int flush(int) override {
    ++flushes;
    if (!broken) return 0;
    errno = EIO;
    return -1;
  }
  int flush_folder(int) override { return 0; }
  static int no_space() {
    errno = ENOSPC;
    return -1;
  }
  std::atomic<uint64_t> space = UINT64_MAX;
  std::atomic<int> flushes = 0;
  std::atomic<bool> full = false, broken = false;
};

TEST_F(FileJournalFault, a_full_disk_stops_appends_and_loses_no_acknowledged_entry) {
  for (uint64_t space = 9000; space < 16000; space += 97) {
    std::filesystem::remove_all(path());
    SmallDisk disk;
    disk.space = space;
    FileJournalOptions small = options();
    small.disk = &disk;
    Seq acknowledged = 0;
    {
      auto journal = FileJournal::open(small).value();
      Result<void> done;
      while ((done = append(*journal, 2)))
        acknowledged = journal->last();
      EXPECT_EQ(done.error().code, Code::unavailable);
      EXPECT_EQ(done.error().reason, "JOURNAL_WRITE");
      EXPECT_NE(done.error().message.find("No space left"), std::string::npos)
          << done.error().message;
      disk.full = false;
      disk.space = UINT64_MAX;
      EXPECT_EQ(append(*journal, 1).error().reason, "JOURNAL_WRITE");
      EXPECT_EQ(journal->last(), acknowledged);
      EXPECT_EQ(read_all(*journal).last, acknowledged);
    }
    auto journal = open();
    ASSERT_GE(journal->last(), acknowledged);
    ASSERT_EQ(read_all(*journal).last, journal->last());
    ASSERT_TRUE(append(*journal, 1));
  }
}

TEST_F(FileJournalFault, a_failed_flush_is_never_retried) {
  SmallDisk disk;
  FileJournalOptions small = options();
  small.disk = &disk;
  auto journal = FileJournal::open(small).value();
  ASSERT_TRUE(append(*journal, 1));
  disk.broken = true;
  int before = disk.flushes;
  auto failed = append(*journal, 1);
  EXPECT_EQ(failed.error().reason, "JOURNAL_WRITE");
  EXPECT_NE(failed.error().message.find("Input/output error"), std::string::npos);
  disk.broken = false;
  EXPECT_FALSE(append(*journal, 1));
  EXPECT_EQ(disk.flushes, before + 1);
  EXPECT_EQ(journal->last(), 1u);
}

TEST_F(FileJournalFault, opening_makes_the_last_group_durable_or_fails) {
  fill();
  SmallDisk disk;
  FileJournalOptions small = options();
  small.disk = &disk;
  uint64_t space = disk.space;
  ASSERT_TRUE(FileJournal::open(small));
  EXPECT_EQ(disk.flushes, 1);
  EXPECT_GT(space - disk.space, 3 * 20u);
  disk.broken = true;
  EXPECT_EQ(FileJournal::open(small).error().reason, "JOURNAL_WRITE");
}

TEST_F(FileJournalFault, one_append_is_one_write_and_one_flush) {
  SmallDisk disk;
  FileJournalOptions small = options();
  small.segment_bytes = small.first_segment_bytes = 1 << 20;
  small.disk = &disk;
  auto journal = FileJournal::open(small).value();
  int before = disk.flushes;
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(append(*journal, 20));
  EXPECT_EQ(disk.flushes, before + 100);
}

TEST_F(FileJournalFault, a_cut_removes_exactly_the_entries_after_it) {
  for (bool compress : {false, true}) {
    std::filesystem::remove_all(path());
    Seq last = fill(compress);
    const Image whole = read_image(path());
    for (Seq at = 0; at <= last; ++at) {
      write_image(path(), whole);
      auto cut = cut_journal(options(), at, "a test");
      if (!cut) {
        ASSERT_EQ(cut.error().reason, "CUT_INSIDE_GROUP") << cut.error().message;
        continue;
      }
      auto journal = open(compress);
      ASSERT_EQ(journal->last(), at);
      ASSERT_EQ(read_all(*journal).last, at);
      for (int i = 0; i < 30; ++i)
        ASSERT_TRUE(append(*journal, 3));
      journal.reset();
      ASSERT_EQ(read_all(*open(compress)).last, at + 90);
    }
    write_image(path(), whole);
    EXPECT_EQ(cut_journal(options(), last + 1, "a test").error().code, Code::corrupt);
  }
}

TEST_F(FileJournalFault, a_cut_repairs_a_damaged_journal) {
  Seq last = fill();
  Image image = read_image(path());
  std::string middle = names(kPlainSuffix)[1];
  image[middle][kSegmentHeaderBytes + 50] ^= 1;
  write_image(path(), image);
  EXPECT_TRUE(read_all(*open()).error);
  Seq keep = std::stoull(middle.substr(0, 20)) - 1;
  ASSERT_TRUE(cut_journal(options(), keep, "a test"));
  EXPECT_EQ(read_loss_marks(path()), std::vector<std::string>{"a test"});
  Reading reading = read_all(*open());
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.last, keep);
  EXPECT_LT(keep, last);
}

TEST_F(FileJournalFault, a_group_over_the_limit_is_refused_and_appends_continue) {
  auto journal = open();
  Bytes megabyte(1 << 20, 'x');
  std::vector<BytesView> entries(kMaxGroupBytes >> 20, megabyte);
  EXPECT_EQ(journal->append(entries, 0).error().code, Code::too_large);
  EXPECT_TRUE(append(*journal, 1));
}

TEST_F(FileJournalFault, a_newer_version_is_unsupported_and_not_corrupt) {
  { auto journal = open(); }
  Image image = read_image(path());
  image[segment_name(1) + kPlainSuffix].replace(
      0, kSegmentHeaderBytes, encode(SegmentHeader{1, 0, 5, kSegmentVersion + 1}));
  write_image(path(), image);
  Error error = open_error();
  EXPECT_EQ(error.code, Code::unsupported);
  EXPECT_NE(error.message.find("newer pawl"), std::string::npos);
}

TEST_F(FileJournalFault, a_new_journal_is_small_and_closed_segments_shrink) {
  FileJournalOptions usual;
  usual.folder = path();
  usual.sync = Sync::none;
  auto journal = FileJournal::open(usual).value();
  EXPECT_LE(journal->bytes(), 1u << 20);
  while (segments() < 3)
    ASSERT_TRUE(append(*journal, 1000));
  journal->finish_background();
  EXPECT_LT(std::filesystem::file_size(path() + "/" + names(kCompressedSuffix).front()),
            300u << 10);
  EXPECT_EQ(read_all(*journal).last, journal->last());
}

}  // namespace
}  // namespace pawl
