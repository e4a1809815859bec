// What the file journal does with a bad disk: torn writes, flipped bits, lost files, no room.

#include "storage/file/file_journal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "storage/test_folder.h"

namespace pawl {
namespace {

using Image = std::map<std::string, Bytes>;  // a folder's files by name

Image take(const std::string& folder) {
  Image image;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    image[file.path().filename().string()] = Bytes(std::istreambuf_iterator<char>(in), {});
  }
  image.erase("LOCK");
  return image;
}

// In place when the file is there: truncating one makes some file systems flush it.
void put_file(const std::string& path, const Bytes& bytes) {
  auto how = std::filesystem::exists(path) ? std::ios::in | std::ios::out : std::ios::out;
  std::fstream(path, how | std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void put(const std::string& folder, const Image& image) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : image)
    put_file(folder + "/" + name, bytes);
}

Bytes entry(Seq n) {
  return std::to_string(n) + ":" + Bytes(20 + n * 7 % 50, static_cast<char>('a' + n % 26));
}

Result<void> append(Journal& journal, size_t count) {
  std::vector<Bytes> entries;
  for (size_t i = 1; i <= count; ++i)
    entries.push_back(entry(journal.last() + i));
  std::vector<BytesView> views(entries.begin(), entries.end());
  return journal.append(views, journal.last());
}

// Reads everything; the entries that come must be the right ones, whatever happens after them.
struct Reading {
  Seq last = 0;
  std::optional<Error> error;
};
Reading read_all(const Journal& journal) {
  Reading reading{journal.first() - 1, {}};
  auto done = journal.read(journal.first(), [&](Seq seq, BytesView bytes) -> Result<bool> {
    EXPECT_EQ(seq, reading.last + 1);
    EXPECT_EQ(bytes, entry(seq));
    reading.last = seq;
    return true;
  });
  if (!done) reading.error = done.error();
  return reading;
}

class FileJournalFault : public testing::Test {
 protected:
  FileJournalOptions options(bool pack = false) {
    FileJournalOptions options;
    options.folder = folder.sub("journal");
    options.segment_bytes = options.first_segment_bytes = 4096;
    options.sync = Sync::none;
    options.pack = pack;
    return options;
  }
  std::unique_ptr<FileJournal> open(bool pack = false) {
    auto journal = FileJournal::open(options(pack));
    if (!journal) ADD_FAILURE() << journal.error().message;
    return journal ? *std::move(journal) : nullptr;
  }
  Error open_error() {
    auto journal = FileJournal::open(options());
    return journal ? Error{Code::internal, "OPENED", "the journal opened"} : journal.error();
  }
  // Three segments, groups of 1 to 4; gives the last seq.
  Seq fill(bool pack = false) {
    auto journal = open(pack);
    for (size_t i = 0; std::filesystem::exists(path()) && journal->bytes() < 3 * 4096; ++i) {
      EXPECT_TRUE(append(*journal, 1 + i % 4));
      if (pack && segments() >= 3) break;
    }
    EXPECT_TRUE(append(*journal, 3));
    journal->finish_background();
    return journal->last();
  }
  size_t segments() {
    std::set<std::string> found;  // one that is being packed has two files
    for (const std::string& name : names("seg"))
      found.insert(name.substr(0, 20));
    return found.size();
  }
  std::vector<std::string> names(std::string_view end) {
    std::vector<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      std::string name = file.path().filename().string();
      if (name.ends_with(end)) found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string path() { return folder.sub("journal"); }

  TestFolder folder;
};

TEST_F(FileJournalFault, a_torn_last_group_is_dropped_whole_wherever_it_tore) {
  uint64_t start = 0;
  {
    auto journal = open();
    ASSERT_TRUE(append(*journal, 4));
    ASSERT_TRUE(append(*journal, 2));
    journal.reset();
    start = take(path()).begin()->second.find_last_not_of('\0') + 1;
    start = (start + 7) & ~uint64_t{7};
    journal = open();
    ASSERT_TRUE(append(*journal, 3));
  }
  const Image whole = take(path());
  std::string name = segment_name(1) + kPlainEnd;
  uint64_t end = whole.at(name).find_last_not_of('\0') + 1;
  ASSERT_GT(end, start + 100);
  enum Tear { tail_lost, head_lost, file_short };
  for (Tear tear : {tail_lost, head_lost, file_short}) {
    for (uint64_t at = start; at < end; ++at) {
      // A head is within a sector, which is written whole or not; so are the last few bytes.
      if (tear == head_lost && at + 1 < start + kGroupHeadBytes) continue;
      if (tear == tail_lost && at > end - 24) continue;
      Image torn = whole;
      Bytes& bytes = torn[name];
      if (tear == tail_lost) std::fill(bytes.begin() + at, bytes.end(), '\0');
      if (tear == head_lost) std::fill(bytes.begin() + start, bytes.begin() + at + 1, '\0');
      if (tear == file_short) bytes.resize(at);
      bool anything =
          bytes.find_last_not_of('\0') >= start && bytes.find_last_not_of('\0') != Bytes::npos;
      put(path(), torn);
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

// Flips one bit of every byte. What opens must read right, and may lack the last group alone, and
// says so.
void expect_flips_are_found(const std::string& path, const Image& whole, FileJournalOptions options,
                            Seq last, Seq last_group) {
  size_t refused = 0, unread = 0, torn = 0;
  put(path, whole);
  for (const auto& [name, bytes] : whole) {
    for (size_t at = 0; at < bytes.size(); ++at) {
      Bytes flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      put_file(path + "/" + name, flipped);
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
        ++torn;
        ASSERT_EQ(reading.last, last - last_group) << name << " at " << at;
        ASSERT_GT((*journal)->recovered().dropped_bytes, 0u);
      }
      if (auto one = (*journal)->get(last / 3)) {
        ASSERT_EQ(*one, entry(last / 3));
      }
    }
    put_file(path + "/" + name, bytes);
  }
  EXPECT_EQ(take(path), whole);
  EXPECT_GT(refused, 100u);
  EXPECT_GT(unread, 1000u);
  // Only flips of zeros after the last group, which nobody would miss.
  (void)torn;
}

TEST_F(FileJournalFault, a_flipped_bit_is_found_wherever_it_is) {
  Seq last = fill();
  ASSERT_EQ(names(kPlainEnd).size(), 3u);
  ASSERT_EQ(names(kSealEnd).size(), 2u);
  Image whole = take(path());
  expect_flips_are_found(path(), whole, options(), last, 3);
}

TEST_F(FileJournalFault, a_flipped_bit_in_a_packed_segment_is_found) {
  Seq last = fill(true);
  ASSERT_EQ(names(kPackedEnd).size(), 2u);
  Image whole = take(path());
  std::string active = names(kPlainEnd).back();
  Bytes& bytes = whole[active];
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  expect_flips_are_found(path(), whole, options(true), last, 3);
}

TEST_F(FileJournalFault, damage_before_a_valid_group_is_never_taken_for_a_torn_tail) {
  {
    auto journal = open();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(append(*journal, 2));
  }
  Image image = take(path());
  Bytes& bytes = image[segment_name(1) + kPlainEnd];
  std::fill(bytes.begin() + kSegmentHeadBytes, bytes.begin() + kSegmentHeadBytes + 200, '\0');
  put(path(), image);
  Error error = open_error();
  EXPECT_EQ(error.code, Code::corrupt);
  EXPECT_NE(error.message.find("a valid group after it"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("pawl journal cut --at 0"), std::string::npos) << error.message;
}

TEST_F(FileJournalFault, an_entry_that_looks_like_a_group_does_not_make_a_torn_tail_corrupt) {
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
  Image image = take(path());
  Bytes& bytes = image[segment_name(1) + kPlainEnd];
  // The sector with the head of its group was not written.
  size_t head = bytes.find("xxxxxxxx") - kEntryHeadBytes - kGroupHeadBytes;
  std::fill(bytes.begin() + head, bytes.begin() + (head / 512 + 1) * 512, '\0');
  put(path(), image);
  EXPECT_EQ(open()->last(), 1u);
}

TEST_F(FileJournalFault, a_last_group_that_was_written_whole_and_does_not_check_is_never_dropped) {
  {
    auto journal = open();
    ASSERT_TRUE(append(*journal, 50));
  }
  Image image = take(path());
  Bytes& bytes = image[segment_name(1) + kPlainEnd];
  bytes[bytes.find_last_not_of('\0') / 2] ^= 1;
  put(path(), image);
  EXPECT_EQ(open_error().code, Code::corrupt);
}

TEST_F(FileJournalFault, a_lost_segment_is_corrupt_wherever_it_was) {
  fill();
  const Image whole = take(path());
  for (const std::string& name : names(kPlainEnd)) {
    for (bool with_seal : {false, true}) {
      Image image = whole;
      image.erase(name);
      if (with_seal) image.erase(name.substr(0, 20) + kSealEnd);
      put(path(), image);
      Error error = open_error();
      EXPECT_EQ(error.code, Code::corrupt) << name;
      EXPECT_NE(error.message.find("a lost directory entry"),
                error.message.find("a directory entry was lost"))
          << error.message;
    }
  }
  for (const std::string& kept : {std::string(kFirstName), std::string("nothing")}) {
    Image image = whole;
    if (kept == kFirstName)
      std::erase_if(image, [&](const auto& file) { return file.first != kept; });
    else
      image.erase(kFirstName);
    put(path(), image);
    EXPECT_EQ(open_error().code, Code::corrupt);
  }
}

TEST_F(FileJournalFault, an_interrupted_trim_is_finished) {
  Seq last = fill();
  Image whole = take(path());
  {
    auto journal = open();
    ASSERT_TRUE(journal->trim(last));
    ASSERT_GT(journal->first(), 1u);
  }
  Image trimmed = take(path());
  for (const auto& [name, bytes] : whole)
    trimmed.insert({name, bytes});
  put(path(), trimmed);
  auto journal = open();
  EXPECT_GT(journal->first(), 1u);
  EXPECT_EQ(read_all(*journal).last, last);
  EXPECT_EQ(names(kPlainEnd).size(), 1u);
}

TEST_F(FileJournalFault, an_unfinished_birth_is_begun_again) {
  { auto journal = open(); }
  Image whole = take(path());
  for (Image image : {Image{{kNextName, "half"}},
                      Image{{segment_name(1) + kPlainEnd, whole[segment_name(1) + kPlainEnd]}}}) {
    put(path(), image);
    auto journal = open();
    ASSERT_TRUE(append(*journal, 1));
    journal.reset();
    EXPECT_EQ(open()->last(), 1u);
  }
}

TEST_F(FileJournalFault, foreign_files_are_left_alone_and_false_segments_refused) {
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

TEST_F(FileJournalFault, a_second_opener_is_refused_by_name) {
  auto journal = open();
  Error error = open_error();
  EXPECT_EQ(error.reason, "JOURNAL_LOCKED");
  EXPECT_NE(error.message.find(std::to_string(::getpid())), std::string::npos) << error.message;
  journal.reset();
  EXPECT_NE(open(), nullptr);
}

// A disk with room for so many bytes, that can also refuse to flush.
class SmallDisk final : public Disk {
 public:
  ssize_t write_at(int fd, const char* bytes, size_t size, uint64_t offset) override {
    if (full) return errno = ENOSPC, -1;
    size_t fits = std::min<uint64_t>(size, room);
    if (fits < size) {
      full = true;
      uint64_t end = (offset + fits) / 512 * 512;  // a disk takes whole sectors
      fits = end > offset ? end - offset : 0;
    }
    room -= fits;
    if (fits == 0) return errno = ENOSPC, -1;
    return Disk::write_at(fd, bytes, fits, offset);
  }
  int flush(int) override {
    ++flushes;
    return broken ? (errno = EIO, -1) : 0;
  }
  int flush_folder(int) override { return 0; }
  std::atomic<uint64_t> room = UINT64_MAX;
  std::atomic<int> flushes = 0;
  std::atomic<bool> full = false, broken = false;
};

TEST_F(FileJournalFault, a_full_disk_stops_appends_and_loses_nothing_acknowledged) {
  for (uint64_t room = 9000; room < 16000; room += 97) {
    std::filesystem::remove_all(path());
    SmallDisk disk;
    disk.room = room;
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
      disk.room = UINT64_MAX;
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

TEST_F(FileJournalFault, a_failed_flush_is_never_tried_again) {
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

TEST_F(FileJournalFault, opening_makes_what_it_found_durable_or_fails) {
  fill();
  SmallDisk disk;
  FileJournalOptions small = options();
  small.disk = &disk;
  uint64_t room = disk.room;
  ASSERT_TRUE(FileJournal::open(small));
  EXPECT_EQ(disk.flushes, 1);
  EXPECT_GT(room - disk.room, 3 * 20u);
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

TEST_F(FileJournalFault, a_cut_gives_up_what_follows_and_nothing_else) {
  for (bool pack : {false, true}) {
    std::filesystem::remove_all(path());
    Seq last = fill(pack);
    const Image whole = take(path());
    for (Seq at = 0; at <= last; ++at) {
      put(path(), whole);
      auto cut = cut_journal(options(), at);
      if (!cut) {
        ASSERT_EQ(cut.error().reason, "CUT_INSIDE_GROUP") << cut.error().message;
        continue;
      }
      auto journal = open(pack);
      ASSERT_EQ(journal->last(), at);
      ASSERT_EQ(read_all(*journal).last, at);
      for (int i = 0; i < 30; ++i)
        ASSERT_TRUE(append(*journal, 3));
      journal.reset();
      ASSERT_EQ(read_all(*open(pack)).last, at + 90);
    }
    put(path(), whole);
    EXPECT_EQ(cut_journal(options(), last + 1).error().code, Code::corrupt);
  }
}

TEST_F(FileJournalFault, a_cut_mends_a_damaged_journal) {
  Seq last = fill();
  Image image = take(path());
  std::string middle = names(kPlainEnd)[1];
  image[middle][kSegmentHeadBytes + 50] ^= 1;
  put(path(), image);
  EXPECT_TRUE(read_all(*open()).error);
  Seq keep = std::stoull(middle.substr(0, 20)) - 1;
  ASSERT_TRUE(cut_journal(options(), keep));
  Reading reading = read_all(*open());
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.last, keep);
  EXPECT_LT(keep, last);
}

TEST_F(FileJournalFault, a_group_over_the_limit_is_refused_and_the_journal_goes_on) {
  auto journal = open();
  Bytes megabyte(1 << 20, 'x');
  std::vector<BytesView> entries(kMaxGroup >> 20, megabyte);
  EXPECT_EQ(journal->append(entries, 0).error().code, Code::too_large);
  EXPECT_TRUE(append(*journal, 1));
}

TEST_F(FileJournalFault, a_newer_version_is_not_called_damage) {
  { auto journal = open(); }
  Image image = take(path());
  image[segment_name(1) + kPlainEnd].replace(0, kSegmentHeadBytes, encode(SegmentHead{1, 0, 5, 2}));
  put(path(), image);
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
  EXPECT_LT(std::filesystem::file_size(path() + "/" + names(kPackedEnd).front()), 300u << 10);
  EXPECT_EQ(read_all(*journal).last, journal->last());
}

}  // namespace
}  // namespace pawl
