// Opening a file journal: what is there, is it whole, and where does it end.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "storage/file/file_journal.h"

namespace pawl {

FileJournal::FileJournal(FileJournalOptions options)
    : options_(std::move(options)),
      disk_(options_.disk                 ? *options_.disk
            : options_.sync == Sync::none ? static_cast<Disk&>(unflushed_)
                                          : machine_) {
  options_.segment_bytes = std::max<uint64_t>(options_.segment_bytes, 4096);
  options_.first_segment_bytes =
      std::clamp<uint64_t>(options_.first_segment_bytes, 4096, options_.segment_bytes);
}

Result<std::unique_ptr<FileJournal>> FileJournal::open(FileJournalOptions options) {
  std::unique_ptr<FileJournal> journal(new FileJournal(std::move(options)));
  TRY_OK(journal->prepare_folder());
  TRY_OK(journal->load());
  return journal;
}

Result<void> FileJournal::prepare_folder() {
  std::error_code error;
  if (std::filesystem::create_directories(options_.folder, error)) {
    auto parent = std::filesystem::absolute(options_.folder).lexically_normal().parent_path();
    TRY_OK(flush_folder(disk_, parent.string()));
  }
  if (error) {
    return fail(Code::unavailable, "JOURNAL_IO",
                fmt::format("cannot make the folder {}: {}; see who may write there",
                            options_.folder, error.message()));
  }
  TRY(lock_, lock_folder(options_.folder));
  return {};
}

Result<void> FileJournal::load() {
  TRY(FolderListing listing, list_folder(options_.folder));
  TRY_OK(remove_files(disk_, options_.folder, listing.unfinished));
  TRY(std::optional<Seq> first, read_first(options_.folder));
  if (!first) {
    bool unborn = listing.segments.empty() ||
                  (listing.segments.size() == 1 && listing.segments[0].first == 1 &&
                   listing.segments[0].plain && !listing.segments[0].sealed);
    if (!unborn) {
      return fail(Code::corrupt, "JOURNAL_CORRUPT",
                  fmt::format("{} has segments but no file {}: a directory entry was lost. Restore "
                              "from a backup with "
                              "`pawl restore`",
                              options_.folder, kFirstName));
    }
    if (listing.segments.empty()) return begin();
    TRY_OK(write_first(disk_, options_.folder, 1));
  }
  TRY_OK(finish_trim(listing, first.value_or(1)));
  TRY_OK(check_chain(listing));
  TRY_OK(walk_last());
  resume_closing(listing);
  return {};
}

// Closing is dropped when a process ends; the next one takes it up.
void FileJournal::resume_closing(const FolderListing& listing) {
  for (size_t i = 0; i + 1 < listing.segments.size(); ++i) {
    const SegmentFiles& files = listing.segments[i];
    if (!files.plain || (files.sealed && !options_.pack)) continue;
    background_.add([this, segment = segments_[i], last = listing.segments[i + 1].first - 1] {
      close_segment(segment, last);
    });
  }
}

Result<void> FileJournal::begin() {
  TRY_OK(add_segment({1, 0, 0}, options_.first_segment_bytes));
  return write_first(disk_, options_.folder, 1);
}

// Removes what a trim meant to remove before the process ended, and packed twins of segments whose
// packing was not finished.
Result<void> FileJournal::finish_trim(FolderListing& listing, Seq first) {
  std::vector<std::string> names;
  for (SegmentFiles& files : listing.segments) {
    std::string name = segment_name(files.first);
    if (files.first < first) {
      for (const char* end : {kPlainEnd, kPackedEnd, kSealEnd})
        names.push_back(name + end);
    } else if (files.plain && files.packed) {
      names.push_back(name + kPackedEnd);
      files.packed = false;
    }
  }
  std::erase_if(listing.segments, [&](const SegmentFiles& files) { return files.first < first; });
  TRY_OK(remove_files(disk_, options_.folder, names));
  if (listing.segments.empty() || listing.segments[0].first != first) {
    return fail(Code::corrupt, "JOURNAL_CORRUPT",
                fmt::format("the first segment {} is missing: a directory entry was lost. Restore "
                            "from a backup with "
                            "`pawl restore`",
                            path_of(first, kPlainEnd)));
  }
  return {};
}

Result<void> FileJournal::check_chain(const FolderListing& listing) {
  for (size_t i = 0; i < listing.segments.size(); ++i) {
    const SegmentFiles& files = listing.segments[i];
    if (!files.plain && !files.packed) {
      return fail(damaged(path_of(files.first, kPlainEnd), 0,
                          "no such file beside its seal: a lost directory entry", files.first - 1));
    }
    TRY(SegmentHead head, read_segment_head(options_.folder, files));
    if (i > 0 && head.previous != listing.segments[i - 1].first) {
      return fail(damaged(path_of(head.previous, kPlainEnd), 0,
                          fmt::format("no such file before {}: a lost directory entry",
                                      path_of(head.first, kPlainEnd)),
                          head.previous - 1));
    }
    auto segment = std::make_shared<Segment>();
    segment->head = head;
    segment->path = path_of(head.first, kPlainEnd);
    std::error_code error;
    segment->size = std::filesystem::file_size(
        path_of(head.first, files.plain ? kPlainEnd : kPackedEnd), error);
    segments_.push_back(std::move(segment));
  }
  const SegmentFiles& last = listing.segments.back();
  if (last.sealed || !last.plain) {
    return fail(
        damaged(path_of(last.first, kSealEnd), 0,
                "the seal of a closed segment and no segment after it: a lost directory entry",
                last.first - 1));
  }
  return {};
}

Result<void> FileJournal::walk_last() {
  active_ = segments_.back();
  Segment& active = *active_;
  TRY(File file, open_file(active.path, O_RDWR));
  active.file = std::make_shared<File>(std::move(file));
  active.marks_loaded = true;
  PlainBytes bytes(active.file->fd(), active.path);
  last_ = active.head.first - 1;
  GroupWalk walk(bytes, active.head.salt, kSegmentHeadBytes);
  for (uint64_t last_group = kSegmentHeadBytes;; last_group = end_) {
    TRY(auto found, walk.next(last_ + 1));
    end_ = walk.offset();
    bool head_good = walk.head_was_good();
    bool good = found == GroupWalk::Found::group;
    bool more = true;
    if (good) {
      TRY(good, walk.entries([](Seq, BytesView) -> Result<bool> { return true; }, more));
    }
    if (!good) {
      TRY_OK(drop_tail(bytes, walk, head_good));
      return secure_last(last_group);
    }
    add_mark(active.marks, {last_ + 1, end_});
    last_ = walk.head().last();
  }
}

// The process before us may have ended before its last flush, or been refused it: the last group
// can be in the system's cache and not on the disk, and looks the same. It is written again and
// flushed before anybody builds on it.
Result<void> FileJournal::secure_last(uint64_t last_group) {
  int fd = active_->file->fd();
  TRY(Bytes group, read_at(fd, active_->path, last_group, end_ - last_group));
  TRY_OK(write_all(disk_, fd, active_->path, group, last_group));
  TRY_OK(flush_file(disk_, fd, active_->path));
  return flush_folder(disk_, options_.folder);
}

// New segments are zeros: of a write that was cut off the end, or some sector, is still zero, or
// the file ends. A group of which every part was written, and that does not check, was whole once
// and is damaged now; it may have been acknowledged.
static Result<bool> was_cut_off(SegmentBytes& bytes, uint64_t from, uint64_t to) {
  constexpr uint64_t kSector = 512;
  constexpr uint64_t kFew = 16;  // zeros that an entry may well end in by itself
  TRY(Bytes group, bytes.at(from, to - from));
  if (group.size() < to - from) return true;
  for (uint64_t at = from; at < to;) {
    uint64_t next = std::min(to, (at / kSector + 1) * kSector);
    bool zero =
        BytesView(group).substr(at - from, next - at).find_first_not_of('\0') == BytesView::npos;
    if (zero && next - at >= kFew) return true;
    at = next;
  }
  size_t last = group.find_last_not_of('\0');
  return last == Bytes::npos || group.size() - last > kFew;
}

// The groups end at end_. What lies there is nothing, the rest of a torn write, or damage.
Result<void> FileJournal::drop_tail(SegmentBytes& bytes, const GroupWalk& walk, bool head_good) {
  TRY(uint64_t nonzero, end_of_nonzero(bytes, end_));
  if (nonzero == end_) return {};
  std::string what = walk.what().empty() ? "bytes without a group head" : walk.what();
  // A group whose head checks is one unit: only what follows it can speak against a torn write. A
  // good head in the wrong place speaks for itself.
  bool in_place = head_good && walk.head().first == last_ + 1;
  uint64_t scan = in_place ? end_ + walk.head().size() : end_;
  TRY(auto later, find_later_group(bytes, active_->head.salt, scan, last_));
  if (later) {
    return fail(damaged(bytes.path(), end_,
                        fmt::format("{}, and a valid group after it at byte {}", what, *later),
                        last_));
  }
  // Of a head that does not check nothing is believed, its length neither. Nothing behind it: the
  // write ended there.
  TRY(bool cut_off,
      was_cut_off(bytes, end_, in_place ? end_ + walk.head().size() : end_ + kGroupHeadBytes));
  cut_off = cut_off || nonzero <= end_ + kGroupHeadBytes;
  if (!cut_off)
    return fail(damaged(bytes.path(), end_, what + ", although all of it was written", last_));
  recovered_ = {bytes.path(), end_, nonzero - end_, std::move(what)};
  TRY_OK(write_zeros(disk_, active_->file->fd(), bytes.path(), end_, nonzero));
  return flush_file(disk_, active_->file->fd(), bytes.path());
}

}  // namespace pawl
