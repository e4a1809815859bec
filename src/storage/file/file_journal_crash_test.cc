// Tests that end the process or the disk in the middle of an append: every acknowledged entry is
// there afterwards, and the journal opens.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/file/file_journal.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

Bytes entry(Seq n) {
  return std::to_string(n) + ":" + Bytes(20 + n * 7 % 90, static_cast<char>('a' + n % 26));
}

FileJournalOptions small_segments(const std::string& folder) {
  FileJournalOptions options;
  options.folder = folder;
  options.segment_bytes = options.first_segment_bytes = 4096;
  options.sync = Sync::none;
  return options;
}

// Appends `groups` groups and trims from time to time, until one fails. Calls `acknowledged` with
// the last seq after each append.
template <class Acknowledged>
void append_groups(Journal& journal, int groups, Acknowledged&& acknowledged) {
  for (int i = 0; i < groups; ++i) {
    std::vector<Bytes> entries;
    for (Seq n = 0; n < 1 + journal.last() % 5; ++n)
      entries.push_back(entry(journal.last() + 1 + n));
    std::vector<BytesView> views(entries.begin(), entries.end());
    if (!journal.append(views, journal.last())) return;
    acknowledged(journal.last());
    if (i % 64 == 63 && !journal.trim(journal.last() - 100)) return;
  }
}

// Opens the journal, checks every entry and returns the last seq.
Seq check_journal(const std::string& folder) {
  auto journal = FileJournal::open(small_segments(folder));
  if (!journal) {
    ADD_FAILURE() << journal.error().message;
    return 0;
  }
  Seq next = (*journal)->first();
  auto read = (*journal)->read(next, [&](Seq seq, BytesView bytes) -> Result<bool> {
    EXPECT_EQ(seq, next++);
    EXPECT_EQ(bytes, entry(seq));
    return true;
  });
  EXPECT_TRUE(read) << read.error().message;
  EXPECT_EQ(next - 1, (*journal)->last());
  return (*journal)->last();
}

TEST(file_journal_crash, a_killed_process_loses_no_acknowledged_entry) {
  TestFolder folder;
  Seq before = 0;
  for (int round = 0; round < 20; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    pid_t child = ::fork();
    if (child == 0) {
      auto journal = FileJournal::open(small_segments(folder.sub("journal")));
      if (!journal) ::_exit(1);
      append_groups(**journal, 1'000'000, [&](Seq last) {
        if (::write(pipe_ends[1], &last, sizeof last) != sizeof last) ::_exit(1);
      });
      ::_exit(1);
    }
    ::close(pipe_ends[1]);
    Seq acknowledged = 0;
    Seq received = 0;
    for (int n = 0; ::read(pipe_ends[0], &received, sizeof received) == sizeof received; ++n) {
      acknowledged = received;
      if (n == 100 + round * 37) ::kill(child, SIGKILL);
    }
    ::close(pipe_ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    Seq last = check_journal(folder.sub("journal"));
    ASSERT_GE(last, acknowledged);
    ASSERT_GT(acknowledged, before);
    before = last;
  }
}

// A disk that is unplugged after a number of calls. If the last of them is a write, half of it is
// written.
class UnpluggedDisk final : public Disk {
 public:
  explicit UnpluggedDisk(int calls) : calls_(calls) {}
  ssize_t write_at(int fd, const char* bytes, size_t size, uint64_t offset) override {
    int left = calls_--;
    if (left == 1) return Disk::write_at(fd, bytes, size / 2 + 1, offset);
    return left > 0 ? Disk::write_at(fd, bytes, size, offset) : gone();
  }
  int flush(int) override { return calls_-- > 0 ? 0 : gone(); }
  int flush_folder(int) override { return calls_-- > 0 ? 0 : gone(); }

 private:
  static int gone() {
    errno = EIO;
    return -1;
  }
  std::atomic<int> calls_;
};

TEST(file_journal_crash, a_disk_unplugged_at_any_call_loses_no_acknowledged_entry) {
  TestFolder folder;
  for (int calls = 1; calls < 600; calls += 1 + calls / 100) {
    std::string path = folder.sub(std::to_string(calls));
    UnpluggedDisk disk(calls);
    FileJournalOptions options = small_segments(path);
    options.disk = &disk;
    Seq acknowledged = 0;
    if (auto journal = FileJournal::open(options)) {
      append_groups(**journal, 300, [&](Seq last) { acknowledged = last; });
    }
    ASSERT_GE(check_journal(path), acknowledged) << "after " << calls << " calls";
    std::filesystem::remove_all(path);
  }
}

}  // namespace
}  // namespace pawl
