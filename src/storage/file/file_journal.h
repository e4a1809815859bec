#pragma once
// FileJournal is the journal on a local disk. It writes entries to segment files in one folder;
// each append is one write and one flush (fdatasync). docs/formats/journal.md describes the bytes.
//
// The life of a segment:
//   1. A background thread fills a spare file with zeros, so appends never change a file's size.
//   2. The spare file is renamed and becomes the last segment. Appends go there until it is full.
//   3. The background thread checks the closed segment, writes its index and compresses it.
//   4. trim() removes it when no entry in it is needed any more.
//
// Thread-safe. One thread appends at a time; readers never wait for a flush.

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "storage/file/disk.h"
#include "storage/file/journal_folder.h"
#include "storage/file/segment.h"
#include "storage/file/task_thread.h"

namespace pawl {

enum class Sync {
  flush,  // an append that has returned survives a power cut
  none,   // an append that has returned survives a crash of the process only; for tests
};

struct FileJournalOptions {
  std::string folder;  // created when it does not exist
  // The first segment has first_segment_bytes, each further one four times the size of the one
  // before, up to segment_bytes. A group that is larger gets a segment of its own size.
  uint64_t segment_bytes = 64u << 20;
  uint64_t first_segment_bytes = 1u << 20;
  Sync sync = Sync::flush;
  bool compress = true;  // compress closed segments in the background
  // Replaces the real disk in tests that inject faults; must outlive the journal.
  Disk* disk = nullptr;
  // The simulator replaces the thread for background jobs and the random salts of segments.
  std::function<std::unique_ptr<TaskQueue>()> tasks{};
  std::function<uint32_t()> salt{};
};

// The bytes that opening dropped: a last append that was interrupted and never acknowledged.
struct RecoveryReport {
  std::string path;
  uint64_t offset = 0;
  uint64_t dropped_bytes = 0;  // 0: nothing was dropped
  std::string problem;         // what was found at the offset
  std::string text() const;    // one line for the log; empty when nothing was dropped
};

class FileJournal final : public Journal {
 public:
  // Opens the journal in the folder, or creates one. Errors: JOURNAL_LOCKED when another process
  // has it open, JOURNAL_CORRUPT when acknowledged entries are damaged or missing, JOURNAL_VERSION
  // when a newer version wrote it.
  static Result<std::unique_ptr<FileJournal>> open(FileJournalOptions options);

  Result<void> append(std::span<const BytesView> entries, Seq expected_last) override;
  Result<void> read(Seq from, const Visit& visit) const override;
  Seq first() const override;
  Seq last() const override;
  Result<void> trim(Seq keep_from) override;
  uint64_t bytes() const override;

  const RecoveryReport& recovered() const { return recovered_; }
  void finish_background();  // waits until every closed segment has its index and is compressed

 private:
  struct Segment {
    SegmentHeader header;
    std::string path;   // of the plain file; it is gone once the segment is compressed
    uint64_t size = 0;  // on disk
    std::vector<GroupPosition> positions;
    bool index_loaded = false;  // false: positions is empty because the index was not read yet
    // Open while this is the last segment; shared with readers that still use it after it closed.
    std::shared_ptr<File> file;
  };
  // Where a read of one entry begins, and the last entry of that segment at this moment.
  struct ReadPosition {
    std::shared_ptr<Segment> segment;
    std::shared_ptr<File> file;  // null: the segment is closed, open it by name
    GroupPosition from;
    Seq last = 0;
    bool index_loaded = false;
  };

  explicit FileJournal(FileJournalOptions options);

  // Opening, in the order of the calls (file_journal_open.cc).
  Result<void> prepare_folder();
  Result<void> load();
  Result<void> create_first_segment();
  Result<void> remove_leftovers(FolderListing& listing, Seq first);
  Result<void> load_segments(const FolderListing& listing);
  Result<void> scan_last_segment();
  Result<void> drop_torn_tail(SegmentReader& reader, const GroupCursor& cursor);
  Result<void> rewrite_last_group(uint64_t offset);
  void resume_closing_segments(const FolderListing& listing);

  // Appending.
  Result<void> write_group(std::span<const BytesView> entries, uint64_t size);
  Result<void> start_next_segment(uint64_t group_size);
  Result<void> add_segment(SegmentHeader header, uint64_t size);
  Result<File> take_spare_file(uint64_t size);
  void prepare_spare_file();
  uint64_t next_segment_bytes() const;

  // Closing a full segment, in the background.
  void close_segment(const std::shared_ptr<Segment>& segment, Seq last);
  Result<SegmentIndex> check_segment(const Segment& segment, Seq last) const;
  Result<void> compress_segment(const std::shared_ptr<Segment>& segment, uint64_t end);

  // Reading.
  Result<std::optional<ReadPosition>> find(Seq seq) const;
  Result<std::unique_ptr<SegmentReader>> open_segment(const ReadPosition& position) const;
  Result<void> load_index(const ReadPosition& position) const;
  Result<std::vector<GroupPosition>> read_index(const ReadPosition& position) const;
  Result<bool> read_segment(const ReadPosition& position, Seq& at, const Visit& visit) const;

  std::string path_of(Seq first, std::string_view suffix) const;

  FileJournalOptions options_;
  UnflushedDisk unflushed_disk_;
  Disk real_disk_;
  Disk& disk_;
  File lock_;
  RecoveryReport recovered_;

  // Locks are taken in the order append_mutex_ or maintenance_mutex_, spare_mutex_, state_mutex_.

  std::mutex append_mutex_;                // held over the flush: one append at a time
  std::shared_ptr<Segment> last_segment_;  // the one that is appended to
  Bytes buffer_;                           // the encoded group; kept to reuse its memory
  std::optional<Error> write_failure_;     // after a failed write every append fails with this
  bool spare_requested_ = false;

  std::mutex spare_mutex_;  // guards the spare file, which becomes the next segment
  File spare_;
  uint64_t spare_bytes_ = 0;

  std::mutex maintenance_mutex_;  // closing a segment and trimming, one at a time

  mutable std::mutex state_mutex_;  // guards the members below; never held over a disk call
  std::deque<std::shared_ptr<Segment>> segments_;
  uint64_t end_offset_ = kSegmentHeaderBytes;  // where the next group goes in the last segment
  Seq last_ = 0;

  // The last member: its jobs end before the others are destroyed.
  std::unique_ptr<TaskQueue> background_;
};

// Removes every entry after `last` for good: the remedy for damage when there is no backup. The
// entries that stay are checked first. The journal must not be open. `mark` is kept in the folder
// (journal_folder.h).
Result<void> cut_journal(const FileJournalOptions& options, Seq last, const std::string& mark);

// Keeps the valid entries of a journal whose end was lost, and returns the last one. An empty
// journal is made when the whole folder is gone. Damage before the last segment is left to
// cut_journal.
Result<Seq> accept_loss(const FileJournalOptions& options, const std::string& mark);

}  // namespace pawl
