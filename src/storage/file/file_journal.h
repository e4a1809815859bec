#pragma once
// The journal on a local disk: segment files in one folder, one write and one flush for a group.
// The bytes are described in docs/formats/journal.md.

#include <deque>
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
  flush,  // an append that returns is on the disk
  none,   // for tests and throw-away journals only
};

struct FileJournalOptions {
  std::string folder;                  // made when it does not exist
  uint64_t segment_bytes = 64u << 20;  // the largest; a group that is larger gets one of its own
  uint64_t first_segment_bytes = 1u << 20;  // each next one is four times larger, up to the largest
  Sync sync = Sync::flush;
  bool pack = true;      // closed segments are compressed in the background
  Disk* disk = nullptr;  // the machine's own unless a test brings another; must outlive the journal
};

// What opening had to drop: the tail of a write that was never acknowledged.
struct Recovered {
  std::string path;
  uint64_t offset = 0;
  uint64_t dropped_bytes = 0;  // 0: nothing was torn
  std::string what;
  std::string text() const;  // one line for the log; empty when nothing was torn
};

class FileJournal final : public Journal {
 public:
  static Result<std::unique_ptr<FileJournal>> open(FileJournalOptions options);

  Result<void> append(std::span<const BytesView> entries, Seq expected_last) override;
  Result<void> read(Seq from, const Visit& visit) const override;
  Seq first() const override;
  Seq last() const override;
  Result<void> trim(Seq keep_from) override;
  uint64_t bytes() const override;

  const Recovered& recovered() const { return recovered_; }
  void finish_background();  // waits until closed segments are sealed and packed

 private:
  struct Segment {
    SegmentHead head;
    std::string path;         // as it was when it was the last
    uint64_t size = 0;        // on disk
    std::vector<Mark> marks;  // none and not loaded: closed and never looked into
    bool marks_loaded = false;
    std::shared_ptr<File> file;  // the last segment's; shared with readers that outlive a roll
  };
  // Where to begin reading for one seq, and how far this segment goes now.
  struct Place {
    std::shared_ptr<Segment> segment;
    std::shared_ptr<File> file;
    Mark from;
    Seq last = 0;
    bool marks_loaded = false;
  };

  explicit FileJournal(FileJournalOptions options);

  // Opening, in order.
  Result<void> prepare_folder();
  Result<void> load();
  Result<void> finish_trim(FolderListing& listing, Seq first);
  Result<void> check_chain(const FolderListing& listing);
  Result<void> begin();
  Result<void> walk_last();
  void resume_closing(const FolderListing& listing);
  Result<void> secure_last(uint64_t last_group);
  Result<void> drop_tail(SegmentBytes& bytes, const GroupWalk& walk, bool head_good);

  // Writing.
  Result<void> write_group(std::span<const BytesView> entries, uint64_t size);
  Result<void> roll(uint64_t group_size);
  Result<void> add_segment(const SegmentHead& head, uint64_t size);
  Result<File> take_next(uint64_t size);
  void prepare_next();
  uint64_t next_size() const;
  void close_segment(const std::shared_ptr<Segment>& segment, Seq last);
  Result<Seal> survey(const Segment& segment, Seq last) const;
  Result<void> pack_segment(const std::shared_ptr<Segment>& segment, uint64_t end);

  // Reading.
  Result<std::optional<Place>> find(Seq at) const;
  Result<std::unique_ptr<SegmentBytes>> bytes_of(const Place& place) const;
  Result<void> load_marks(Place& place) const;
  Result<bool> read_place(const Place& place, Seq& at, const Visit& visit) const;

  std::string path_of(Seq first, std::string_view end) const;

  FileJournalOptions options_;
  UnflushedDisk unflushed_;
  Disk machine_;
  Disk& disk_;
  File lock_;
  Recovered recovered_;

  std::mutex writing_;               // one append at a time; held over the flush
  std::shared_ptr<Segment> active_;  // the last segment, for the writer
  Bytes buffer_;                     // the group being written, kept for its memory
  std::optional<Error> poisoned_;
  bool next_asked_ = false;

  std::mutex preparing_;  // guards the file that becomes the next segment
  File next_;
  uint64_t next_bytes_ = 0;

  std::mutex maintaining_;  // trim and packing, one at a time

  mutable std::mutex state_;  // guards what follows; never held over a disk call
  std::deque<std::shared_ptr<Segment>> segments_;
  uint64_t end_ = kSegmentHeadBytes;  // where the next group goes in the last segment
  Seq last_ = 0;

  TaskThread background_;  // last: its thread ends before the rest goes
};

// Gives up every entry after `last`, deliberately: the remedy for damage that has no backup. What
// is kept is checked first. Nobody may have the journal open.
Result<void> cut_journal(const FileJournalOptions& options, Seq last);

}  // namespace pawl
