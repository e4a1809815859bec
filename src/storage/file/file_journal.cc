#include "storage/file/file_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "storage/file/compressed_segment.h"

namespace pawl {

// A group buffer that has grown beyond this is freed after its append.
static constexpr size_t kMaxKeptBuffer = 32u << 20;

std::string RecoveryReport::text() const {
  if (dropped_bytes == 0) return {};
  return fmt::format(
      "dropped {} bytes of an interrupted append in {} at byte {} (found {}); it was never "
      "acknowledged",
      dropped_bytes, path, offset, problem);
}

std::string FileJournal::path_of(Seq first, std::string_view suffix) const {
  return fmt::format("{}/{}{}", options_.folder, segment_name(first), suffix);
}

Seq FileJournal::first() const {
  std::lock_guard lock(state_mutex_);
  return segments_.front()->header.first;
}

Seq FileJournal::last() const {
  std::lock_guard lock(state_mutex_);
  return last_;
}

uint64_t FileJournal::bytes() const {
  std::lock_guard lock(state_mutex_);
  uint64_t sum = 0;
  for (const auto& segment : segments_)
    sum += segment->size;
  return sum;
}

void FileJournal::finish_background() { background_->finish(); }

// Appending. The caller of every function here holds append_mutex_, except prepare_spare_file(),
// which the background thread runs.

Result<void> FileJournal::append(std::span<const BytesView> entries, Seq expected_last) {
  std::lock_guard appending(append_mutex_);
  if (write_failure_) return fail(*write_failure_);
  if (expected_last != last_) return fail(fenced(last_, expected_last));
  if (entries.empty()) return {};
  uint64_t size = group_bytes(entries);
  if (size > kMaxGroupBytes) {
    return fail(Code::too_large, "JOURNAL_GROUP",
                fmt::format("one append of {} bytes is over the limit of {}: append fewer entries "
                            "at once",
                            size, kMaxGroupBytes));
  }
  Result<void> written = write_group(entries, size);
  if (!written) {
    write_failure_ = Error{Code::unavailable, "JOURNAL_WRITE",
                           fmt::format("the journal takes no more appends since one failed: {}",
                                       written.error().message)};
  }
  return written;
}

Result<void> FileJournal::write_group(std::span<const BytesView> entries, uint64_t size) {
  uint64_t padded_size = size + kGroupAlignment - 1;
  if (end_offset_ + padded_size > last_segment_->size) TRY_OK(start_next_segment(padded_size));
  Segment& segment = *last_segment_;
  encode_group(entries, last_ + 1, segment.header.salt, buffer_);
  // The list may make the group longer than the room that is left. Then the file grows.
  if (segment.header.version > 1) add_zero_list(buffer_, end_offset_, segment.header.salt);
  TRY_OK(write_all(disk_, segment.file->fd(), segment.path, buffer_, end_offset_));
  TRY_OK(flush_file(disk_, segment.file->fd(), segment.path));
  {
    std::lock_guard lock(state_mutex_);
    add_position(segment.positions, {last_ + 1, end_offset_});
    end_offset_ += buffer_.size();
    last_ += entries.size();
  }
  if (buffer_.capacity() > kMaxKeptBuffer) buffer_ = Bytes();
  if (!spare_requested_ && end_offset_ > segment.size / 4) {
    spare_requested_ = true;
    background_->add_first([this] { prepare_spare_file(); });
  }
  return {};
}

uint64_t FileJournal::next_segment_bytes() const {
  std::lock_guard lock(state_mutex_);
  uint64_t current = segments_.empty() ? 0 : segments_.back()->size;
  return std::clamp(current * 4, options_.first_segment_bytes, options_.segment_bytes);
}

// Called when the group does not fit into the last segment. A segment is named after its first
// entry, so one that is still empty is enlarged: a new segment would have the same name.
Result<void> FileJournal::start_next_segment(uint64_t group_size) {
  std::shared_ptr<Segment> full = last_segment_;
  if (end_offset_ == kSegmentHeaderBytes) {
    uint64_t size = kSegmentHeaderBytes + group_size;
    TRY_OK(write_zeros(disk_, full->file->fd(), full->path, full->size, size));
    TRY_OK(flush_file(disk_, full->file->fd(), full->path));
    std::lock_guard lock(state_mutex_);
    full->size = size;
    return {};
  }
  SegmentHeader header{.first = last_ + 1, .previous = full->header.first};
  TRY_OK(add_segment(header, std::max(next_segment_bytes(), kSegmentHeaderBytes + group_size)));
  background_->add([this, full, last = last_] { close_segment(full, last); });
  return {};
}

// Makes the spare file the last segment. The file gets its name after its header is durable, so a
// crash never leaves a segment with a bad header.
Result<void> FileJournal::add_segment(SegmentHeader header, uint64_t size) {
  if (options_.salt) {
    header.salt = options_.salt();
  } else if (::getrandom(&header.salt, sizeof header.salt, 0) != sizeof header.salt) {
    return fail(write_error("draw a salt for", path_of(header.first, kPlainSuffix), errno));
  }
  // Held until the rename: the spare file has the same name each time.
  std::lock_guard taking_spare(spare_mutex_);
  TRY(File file, take_spare_file(size));
  header.file_bytes = static_cast<uint64_t>(::lseek(file.fd(), 0, SEEK_END));
  std::string spare_path = options_.folder + "/" + kSpareName;
  TRY_OK(write_all(disk_, file.fd(), spare_path, encode(header), 0));
  TRY_OK(flush_file(disk_, file.fd(), spare_path));
  TRY_OK(
      rename_file(disk_, options_.folder, kSpareName, segment_name(header.first) + kPlainSuffix));
  auto segment = std::make_shared<Segment>();
  segment->header = header;
  segment->path = path_of(header.first, kPlainSuffix);
  segment->size = header.file_bytes;
  segment->index_loaded = true;
  segment->file = std::make_shared<File>(std::move(file));
  last_segment_ = segment;
  spare_requested_ = false;
  std::lock_guard lock(state_mutex_);
  segments_.push_back(std::move(segment));
  end_offset_ = kSegmentHeaderBytes;
  return {};
}

// Returns the spare file, filled with zeros up to at least `size`. The caller holds spare_mutex_.
Result<File> FileJournal::take_spare_file(uint64_t size) {
  std::string path = options_.folder + "/" + kSpareName;
  if (!spare_.is_open()) {
    TRY(spare_, open_file(path, O_RDWR | O_CREAT | O_TRUNC));
    spare_bytes_ = 0;
  }
  if (spare_bytes_ < size) {
    TRY_OK(write_zeros(disk_, spare_.fd(), path, spare_bytes_, size));
    TRY_OK(flush_file(disk_, spare_.fd(), path));
  }
  spare_bytes_ = 0;
  return std::exchange(spare_, File());
}

// Prepares the spare file before it is needed. When that fails, the append that needs the file
// tries again and reports the failure.
void FileJournal::prepare_spare_file() {
  uint64_t size = next_segment_bytes();
  std::lock_guard preparing(spare_mutex_);
  if (spare_.is_open()) return;
  std::string path = options_.folder + "/" + kSpareName;
  Result<File> file = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
  if (!file) return;
  if (!write_zeros_paced(disk_, file->fd(), path, size)) return;
  spare_ = *std::move(file);
  spare_bytes_ = size;
}

// Closing a full segment, and trimming.

// Writes the index of the segment and compresses it. Both only save time and space, so failures are
// ignored: a segment without an index is scanned. A damaged segment is left as it is, and the
// reader that comes to it reports the damage.
void FileJournal::close_segment(const std::shared_ptr<Segment>& segment, Seq last) {
  std::lock_guard maintaining(maintenance_mutex_);
  if (segment->header.first < first()) return;  // trimmed in the meantime
  Result<SegmentIndex> index = check_segment(*segment, last);
  if (!index) return;
  std::string name = segment_name(segment->header.first) + kIndexSuffix;
  if (!replace_file(disk_, options_.folder, name, encode(*index))) return;
  {
    std::lock_guard lock(state_mutex_);
    segment->file.reset();
    segment->positions = index->positions;
    segment->index_loaded = true;
  }
  if (!options_.compress) return;
  [[maybe_unused]] Result<void> ignored = compress_segment(segment, index->end);
}

// Checks every entry of a closed segment and returns its index.
Result<SegmentIndex> FileJournal::check_segment(const Segment& segment, Seq last) const {
  TRY(File file, open_file(segment.path, O_RDONLY));
  PlainSegment reader(disk_, std::move(file), segment.path);
  SegmentIndex index{segment.header.first, last, kSegmentHeaderBytes, {}};
  GroupCursor cursor(reader, segment.header.salt, kSegmentHeaderBytes);
  for (Seq next = index.first; next <= last; next = cursor.header().last() + 1) {
    TRY(bool valid, cursor.next_checked(next));
    if (!valid) return fail(damaged(segment.path, cursor.offset(), cursor.problem(), next - 1));
    add_position(index.positions, {next, cursor.offset()});
    index.end = cursor.offset() + cursor.header().size();
  }
  return index;
}

Result<void> FileJournal::compress_segment(const std::shared_ptr<Segment>& segment, uint64_t end) {
  std::string name = segment_name(segment->header.first);
  TRY(File file, open_file(segment->path, O_RDONLY));
  PlainSegment plain(disk_, std::move(file), segment->path);
  TRY(uint64_t size,
      write_compressed(disk_, plain, end, options_.folder, name + kCompressedSuffix));
  TRY_OK(remove_files(disk_, options_.folder, {name + kPlainSuffix}));
  std::lock_guard lock(state_mutex_);
  segment->size = size;
  return {};
}

// The new first seq is durable before a file is removed, so opening finishes an interrupted trim.
Result<void> FileJournal::trim(Seq keep_from) {
  std::lock_guard maintaining(maintenance_mutex_);
  std::vector<std::string> names;
  size_t removed = 0;
  Seq first = 0;
  {
    std::lock_guard lock(state_mutex_);
    while (removed + 1 < segments_.size() && segments_[removed + 1]->header.first <= keep_from)
      ++removed;
    first = segments_[removed]->header.first;
    for (size_t i = 0; i < removed; ++i)
      add_segment_files(names, segments_[i]->header.first);
  }
  if (removed == 0) return {};
  TRY_OK(write_first_seq(disk_, options_.folder, first));
  {
    std::lock_guard lock(state_mutex_);
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(removed));
  }
  return remove_files(disk_, options_.folder, names);
}

// Reading.

Result<void> FileJournal::read(Seq from, const Visit& visit) const {
  for (Seq at = from;;) {
    TRY(std::optional<ReadPosition> position, find(at));
    if (!position) return {};
    // The index is read only when it helps to skip groups at the front.
    if (!position->index_loaded && at > position->segment->header.first) {
      TRY_OK(load_index(*position));
      TRY(position, find(at));
      if (!position) return {};
    }
    TRY(bool more, read_segment(*position, at, visit));
    if (!more) return {};
  }
}

// Nothing when `seq` is after the last entry.
Result<std::optional<FileJournal::ReadPosition>> FileJournal::find(Seq seq) const {
  std::lock_guard lock(state_mutex_);
  Seq first = segments_.front()->header.first;
  if (seq < first) return fail(trimmed(seq, first));
  if (seq > last_) return std::optional<ReadPosition>();
  auto after =
      std::upper_bound(segments_.begin(), segments_.end(), seq,
                       [](Seq s, const auto& segment) { return s < segment->header.first; });
  const std::shared_ptr<Segment>& segment = *(after - 1);
  ReadPosition position;
  position.segment = segment;
  position.file = segment->file;
  position.from =
      position_before(segment->positions, seq, {segment->header.first, kSegmentHeaderBytes});
  position.last = after == segments_.end() ? last_ : (*after)->header.first - 1;
  position.index_loaded = segment->index_loaded;
  return std::optional(std::move(position));
}

Result<std::unique_ptr<SegmentReader>> FileJournal::open_segment(
    const ReadPosition& position) const {
  Seq first = position.segment->header.first;
  std::string path = path_of(first, kPlainSuffix);
  if (position.file) return std::make_unique<PlainSegment>(disk_, position.file->fd(), path);
  Result<File> file = open_file(path, O_RDONLY);
  if (file) return std::make_unique<PlainSegment>(disk_, *std::move(file), path);
  if (file.error().code != Code::not_found) return fail(std::move(file).error());
  auto compressed = open_compressed(disk_, path_of(first, kCompressedSuffix), first);
  if (compressed || compressed.error().code != Code::not_found) return compressed;
  // Neither file is there: the segment was trimmed since find(), or it is lost.
  if (first < this->first()) return fail(trimmed(first, this->first()));
  return fail(damaged(path, 0, "no such file", first - 1));
}

// Loads the index of a segment that was closed by an earlier process. Without a valid index file
// the headers of its groups are scanned.
Result<void> FileJournal::load_index(const ReadPosition& position) const {
  Segment& segment = *position.segment;
  TRY(std::vector<GroupPosition> positions, read_index(position));
  if (positions.empty()) {
    TRY(auto reader, open_segment(position));
    GroupCursor cursor(*reader, segment.header.salt, kSegmentHeaderBytes);
    for (Seq next = segment.header.first; next <= position.last;
         next = cursor.header().last() + 1) {
      TRY(GroupCursor::Found found, cursor.next(next));
      if (found != GroupCursor::Found::group) break;  // read_segment() reports it
      add_position(positions, {next, cursor.offset()});
    }
  }
  std::lock_guard lock(state_mutex_);
  if (!segment.index_loaded) segment.positions = std::move(positions);
  segment.index_loaded = true;
  return {};
}

// The positions in the index file; empty when there is no valid one.
Result<std::vector<GroupPosition>> FileJournal::read_index(const ReadPosition& position) const {
  const std::vector<GroupPosition> none;
  Seq first = position.segment->header.first;
  std::string path = path_of(first, kIndexSuffix);
  Result<File> file = open_file(path, O_RDONLY);
  if (!file) return none;
  auto size = static_cast<size_t>(::lseek(file->fd(), 0, SEEK_END));
  TRY(Bytes bytes, read_at(disk_, file->fd(), path, 0, size));
  std::optional<SegmentIndex> index = decode_segment_index(bytes);
  if (!index || index->first != first || index->last != position.last) return none;
  return std::move(index->positions);
}

// Visits the entries of one segment from `at` on and moves `at` past them. Returns false when the
// visitor has stopped.
Result<bool> FileJournal::read_segment(const ReadPosition& position, Seq& at,
                                       const Visit& visit) const {
  TRY(auto reader, open_segment(position));
  GroupCursor cursor(*reader, position.segment->header.salt, position.from.offset);
  auto visit_from_at = [&](Seq seq, BytesView entry) -> Result<bool> {
    if (seq < at) return true;
    at = seq + 1;
    return visit(seq, entry);
  };
  for (Seq next = position.from.seq; next <= position.last; next = cursor.header().last() + 1) {
    TRY(GroupCursor::Found found, cursor.next(next));
    if (found == GroupCursor::Found::end) {
      return fail(damaged(reader->path(), cursor.offset(),
                          fmt::format("the end of the groups where entry {} belongs", next),
                          next - 1));
    }
    if (found == GroupCursor::Found::invalid)
      return fail(damaged(reader->path(), cursor.offset(), cursor.problem(), next - 1));
    if (cursor.header().last() < at) continue;
    TRY(GroupCursor::Visited visited, cursor.visit_entries(visit_from_at));
    if (visited == GroupCursor::Visited::invalid)
      return fail(damaged(reader->path(), cursor.offset(), cursor.problem(), next - 1));
    if (visited == GroupCursor::Visited::stopped) return false;
  }
  return true;
}

}  // namespace pawl
