// Opening a file journal: finds the segments, checks that none is missing, and finds where the last
// one ends. docs/formats/journal.md, section "Opening", states the rules.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "storage/file/file_journal.h"
#include "storage/file/zero_sectors.h"

namespace pawl {

static constexpr uint64_t kLeastSegmentBytes = 4096;

static Disk& choose_disk(const FileJournalOptions& options, Disk& real, Disk& unflushed) {
  if (options.disk) return *options.disk;
  return options.sync == Sync::none ? unflushed : real;
}

FileJournal::FileJournal(FileJournalOptions options)
    : options_(std::move(options)), disk_(choose_disk(options_, real_disk_, unflushed_disk_)) {
  options_.segment_bytes = std::max(options_.segment_bytes, kLeastSegmentBytes);
  options_.first_segment_bytes =
      std::clamp(options_.first_segment_bytes, kLeastSegmentBytes, options_.segment_bytes);
  background_ = options_.tasks ? options_.tasks() : std::make_unique<TaskThread>();
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
                fmt::format("cannot make the folder {}: {}; check that this user may write there",
                            options_.folder, error.message()));
  }
  TRY(lock_, lock_folder(options_.folder));
  return {};
}

Result<void> FileJournal::load() {
  TRY(FolderListing listing, list_folder(options_.folder));
  TRY_OK(remove_files(disk_, options_.folder, listing.unfinished));
  TRY(std::optional<Seq> first, read_first_seq(disk_, options_.folder));
  if (!first) {
    if (listing.segments.empty()) return create_first_segment();
    // The first segment gets its name before FIRST is written. A crash between the two leaves a
    // plain segment 1 alone; anything else means that FIRST was lost.
    const SegmentFiles& only = listing.segments[0];
    bool creation_interrupted =
        listing.segments.size() == 1 && only.first == 1 && only.plain && !only.indexed;
    if (!creation_interrupted) {
      return fail(Code::corrupt, "JOURNAL_CORRUPT",
                  fmt::format("{} has segments but no file {}: a directory entry was lost. Restore "
                              "from a backup with `pawl restore`",
                              options_.folder, kFirstSeqName));
    }
    TRY_OK(write_first_seq(disk_, options_.folder, 1));
  }
  TRY_OK(remove_leftovers(listing, first.value_or(1)));
  TRY_OK(load_segments(listing));
  TRY_OK(scan_last_segment());
  resume_closing_segments(listing);
  return {};
}

Result<void> FileJournal::create_first_segment() {
  TRY_OK(add_segment({.first = 1}, options_.first_segment_bytes));
  return write_first_seq(disk_, options_.folder, 1);
}

// Removes the segments of an interrupted trim, and compressed segments whose plain file is still
// there: their compression was interrupted.
Result<void> FileJournal::remove_leftovers(FolderListing& listing, Seq first) {
  std::vector<std::string> names;
  for (SegmentFiles& files : listing.segments) {
    if (files.first < first) {
      add_segment_files(names, files.first);
    } else if (files.plain && files.compressed) {
      names.push_back(segment_name(files.first) + kCompressedSuffix);
      files.compressed = false;
    }
  }
  std::erase_if(listing.segments, [&](const SegmentFiles& files) { return files.first < first; });
  TRY_OK(remove_files(disk_, options_.folder, names));
  if (listing.segments.empty() || listing.segments[0].first != first) {
    return fail(Code::corrupt, "JOURNAL_CORRUPT",
                fmt::format("the first segment {} is missing: a directory entry was lost. Restore "
                            "from a backup with `pawl restore`",
                            path_of(first, kPlainSuffix)));
  }
  return {};
}

// Fills segments_. Each header names the segment before it, so a missing one is found.
Result<void> FileJournal::load_segments(const FolderListing& listing) {
  for (size_t i = 0; i < listing.segments.size(); ++i) {
    const SegmentFiles& files = listing.segments[i];
    if (!files.plain && !files.compressed) {
      return fail(damaged(path_of(files.first, kPlainSuffix), 0,
                          "no such file beside its index: a lost directory entry",
                          files.first - 1));
    }
    TRY(SegmentHeader header, read_segment_header(disk_, options_.folder, files));
    if (i > 0 && header.previous != listing.segments[i - 1].first) {
      return fail(damaged(path_of(header.previous, kPlainSuffix), 0,
                          fmt::format("no such file before {}: a lost directory entry",
                                      path_of(header.first, kPlainSuffix)),
                          header.previous - 1));
    }
    auto segment = std::make_shared<Segment>();
    segment->header = header;
    segment->path = path_of(header.first, kPlainSuffix);
    std::error_code error;
    segment->size = std::filesystem::file_size(
        path_of(header.first, files.plain ? kPlainSuffix : kCompressedSuffix), error);
    segments_.push_back(std::move(segment));
  }
  // An index is written only after the next segment exists.
  const SegmentFiles& last = listing.segments.back();
  if (last.indexed || !last.plain) {
    return fail(
        damaged(path_of(last.first, kIndexSuffix), 0,
                "the index of a closed segment and no segment after it: a lost directory entry",
                last.first - 1));
  }
  return {};
}

// Checks every entry of the last segment and finds where its groups end.
Result<void> FileJournal::scan_last_segment() {
  last_segment_ = segments_.back();
  Segment& segment = *last_segment_;
  TRY(File file, open_file(segment.path, O_RDWR));
  segment.file = std::make_shared<File>(std::move(file));
  segment.index_loaded = true;
  PlainSegment reader(disk_, segment.file->fd(), segment.path);
  last_ = segment.header.first - 1;
  if (segment.size < segment.header.file_bytes) {
    return fail(Code::corrupt, "JOURNAL_CORRUPT",
                fmt::format("{} has {} bytes and was made with {}: its end was cut off, and "
                            "acknowledged entries with it. {}",
                            segment.path, segment.size, segment.header.file_bytes, kLossRemedy));
  }
  GroupCursor cursor(reader, segment.header.salt, kSegmentHeaderBytes);
  uint64_t last_group = kSegmentHeaderBytes;
  for (;;) {
    TRY(bool valid, cursor.next_checked(last_ + 1));
    end_offset_ = cursor.offset();
    if (!valid) break;
    add_position(segment.positions, {last_ + 1, end_offset_});
    last_ = cursor.header().last();
    last_group = end_offset_;
  }
  TRY_OK(drop_torn_tail(reader, cursor));
  return rewrite_last_group(last_group);
}

// Makes the last group durable. The process before may have ended before its last flush, or its
// flush may have failed. Then the group is in the page cache and perhaps not on the disk, which
// looks the same to a reader, and a flush of clean pages would not write it.
Result<void> FileJournal::rewrite_last_group(uint64_t offset) {
  int fd = last_segment_->file->fd();
  TRY(Bytes group, read_at(disk_, fd, last_segment_->path, offset, end_offset_ - offset));
  TRY_OK(write_all(disk_, fd, last_segment_->path, group, offset));
  TRY_OK(flush_file(disk_, fd, last_segment_->path));
  return flush_folder(disk_, options_.folder);
}

// True when the write of the group was interrupted: some part of it is zeros, or the file ends. A
// group of which every sector was written and that is invalid was complete once and is damaged
// now; it may have been acknowledged. `header` is null when the header itself is invalid: then only
// the bytes of the header are judged.
static Result<bool> was_torn(SegmentReader& reader, uint64_t from, const GroupHeader* header,
                             uint32_t salt) {
  const uint64_t size = header ? header->size() : kGroupHeaderBytes;
  TRY(Bytes group, reader.at(from, size));
  if (group.size() < size || ends_in_zeros(group)) return true;
  if (!header || !header->has_zero_list) return !zero_sectors(group, from).empty();
  group.resize(kGroupHeaderBytes + header->length);
  return has_unlisted_zeros(group, from, salt);
}

// The valid groups end at end_offset_. What follows is zeros, an interrupted write, which is
// dropped, or damage, which is an error.
Result<void> FileJournal::drop_torn_tail(SegmentReader& reader, const GroupCursor& cursor) {
  TRY(uint64_t nonzero_end, end_of_nonzero(reader, end_offset_));
  if (nonzero_end == end_offset_) return {};
  std::string problem =
      cursor.problem().empty() ? "bytes without a group header" : cursor.problem();
  // When the header is valid and in its place, the group is one unit, and only a valid group after
  // it proves damage. Otherwise its length is not trusted.
  bool header_trusted = cursor.header_valid() && cursor.header().first == last_ + 1;
  uint64_t group_size = header_trusted ? cursor.header().size() : 0;
  TRY(auto later,
      find_later_group(reader, last_segment_->header.salt, end_offset_ + group_size, last_));
  if (later) {
    return fail(damaged(reader.path(), end_offset_,
                        fmt::format("{}, and a valid group after it at byte {}", problem, *later),
                        last_));
  }
  uint64_t header_end = end_offset_ + kGroupHeaderBytes;
  TRY(bool torn, was_torn(reader, end_offset_, header_trusted ? &cursor.header() : nullptr,
                          last_segment_->header.salt));
  bool nothing_after_header = nonzero_end <= header_end;
  if (!torn && !nothing_after_header)
    return fail(
        damaged(reader.path(), end_offset_, problem + ", although all of it was written", last_));
  recovered_ = {reader.path(), end_offset_, nonzero_end - end_offset_, std::move(problem)};
  int fd = last_segment_->file->fd();
  TRY_OK(write_zeros(disk_, fd, reader.path(), end_offset_, nonzero_end));
  return flush_file(disk_, fd, reader.path());
}

// Closes the segments that the process before did not finish closing.
void FileJournal::resume_closing_segments(const FolderListing& listing) {
  for (size_t i = 0; i + 1 < listing.segments.size(); ++i) {
    const SegmentFiles& files = listing.segments[i];
    if (!files.plain || (files.indexed && !options_.compress)) continue;
    background_->add([this, segment = segments_[i], last = listing.segments[i + 1].first - 1] {
      close_segment(segment, last);
    });
  }
}

}  // namespace pawl
