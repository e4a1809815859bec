#include "storage/file/file_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "storage/file/packed_segment.h"

namespace pawl {

std::string Recovered::text() const {
  if (dropped_bytes == 0) return {};
  return fmt::format(
      "dropped {} bytes of a torn write in {} at byte {} (found {}); it was never acknowledged",
      dropped_bytes, path, offset, what);
}

std::string FileJournal::path_of(Seq first, std::string_view end) const {
  return fmt::format("{}/{}{}", options_.folder, segment_name(first), end);
}

Seq FileJournal::first() const {
  std::lock_guard lock(state_);
  return segments_.front()->head.first;
}

Seq FileJournal::last() const {
  std::lock_guard lock(state_);
  return last_;
}

uint64_t FileJournal::bytes() const {
  std::lock_guard lock(state_);
  uint64_t sum = 0;
  for (const auto& segment : segments_)
    sum += segment->size;
  return sum;
}

void FileJournal::finish_background() { background_.finish(); }

// ---- writing

Result<void> FileJournal::append(std::span<const BytesView> entries, Seq expected_last) {
  std::lock_guard writing(writing_);
  if (poisoned_) return fail(*poisoned_);
  if (expected_last != last_) return fail(fenced(last_, expected_last));
  if (entries.empty()) return {};
  uint64_t size = group_bytes(entries);
  if (size > kMaxGroup) {
    return fail(
        Code::too_large, "JOURNAL_GROUP",
        fmt::format("one append of {} bytes; the largest is {}: append fewer entries at once", size,
                    kMaxGroup));
  }
  Result<void> written = write_group(entries, size);
  if (!written) {
    poisoned_ = Error{Code::unavailable, "JOURNAL_WRITE",
                      fmt::format("the journal takes no more appends since one failed: {}",
                                  written.error().message)};
  }
  return written;
}

Result<void> FileJournal::write_group(std::span<const BytesView> entries, uint64_t size) {
  if (end_ + size + 7 > active_->size) TRY_OK(roll(size + 7));
  Segment& active = *active_;
  encode_group(entries, last_ + 1, active.head.salt, buffer_);
  TRY_OK(write_all(disk_, active.file->fd(), active.path, buffer_, end_));
  TRY_OK(flush_file(disk_, active.file->fd(), active.path));
  {
    std::lock_guard lock(state_);
    add_mark(active.marks, {last_ + 1, end_});
    end_ += buffer_.size();
    last_ += entries.size();
  }
  if (buffer_.capacity() > (32u << 20)) buffer_ = Bytes();
  if (!next_asked_ && end_ > active.size / 4) {
    next_asked_ = true;
    background_.add_first([this] { prepare_next(); });
  }
  return {};
}

uint64_t FileJournal::next_size() const {
  std::lock_guard lock(state_);
  uint64_t now = segments_.empty() ? 0 : segments_.back()->size;
  return std::clamp(now * 4, options_.first_segment_bytes, options_.segment_bytes);
}

// The last segment is full. One that is still empty is made larger instead: its name is taken.
Result<void> FileJournal::roll(uint64_t group_size) {
  std::shared_ptr<Segment> active = active_;
  if (end_ == kSegmentHeadBytes) {
    uint64_t size = kSegmentHeadBytes + group_size;
    TRY_OK(write_zeros(disk_, active->file->fd(), active->path, active->size, size));
    TRY_OK(flush_file(disk_, active->file->fd(), active->path));
    std::lock_guard lock(state_);
    active->size = size;
    return {};
  }
  SegmentHead head{last_ + 1, active->head.first, 0};
  TRY_OK(add_segment(head, std::max(next_size(), kSegmentHeadBytes + group_size)));
  background_.add([this, active, last = last_] { close_segment(active, last); });
  return {};
}

Result<void> FileJournal::add_segment(const SegmentHead& given, uint64_t size) {
  SegmentHead head = given;
  if (::getrandom(&head.salt, sizeof head.salt, 0) != sizeof head.salt) {
    return fail(write_error("draw a salt for", path_of(head.first, kPlainEnd), errno));
  }
  std::lock_guard preparing(preparing_);  // until the file has left its name to the next one
  TRY(File file, take_next(size));
  std::string path = options_.folder + "/" + kNextName;
  TRY_OK(write_all(disk_, file.fd(), path, encode(head), 0));
  TRY_OK(flush_file(disk_, file.fd(), path));
  TRY_OK(rename_file(disk_, options_.folder, kNextName, segment_name(head.first) + kPlainEnd));
  auto segment = std::make_shared<Segment>();
  segment->head = head;
  segment->path = path_of(head.first, kPlainEnd);
  segment->size = static_cast<uint64_t>(::lseek(file.fd(), 0, SEEK_END));
  segment->marks_loaded = true;
  segment->file = std::make_shared<File>(std::move(file));
  active_ = segment;
  next_asked_ = false;
  std::lock_guard lock(state_);
  segments_.push_back(std::move(segment));
  end_ = kSegmentHeadBytes;
  return {};
}

// The zero-filled file that becomes the next segment, of at least `size`. The caller holds
// preparing_.
Result<File> FileJournal::take_next(uint64_t size) {
  std::string path = options_.folder + "/" + kNextName;
  if (!next_.is_open()) {
    TRY(next_, open_file(path, O_RDWR | O_CREAT | O_TRUNC));
    next_bytes_ = 0;
  }
  if (next_bytes_ < size) {
    TRY_OK(write_zeros(disk_, next_.fd(), path, next_bytes_, size));
    TRY_OK(flush_file(disk_, next_.fd(), path));
  }
  next_bytes_ = 0;
  return std::exchange(next_, File());
}

// Ahead of need and beside the appends. A failure is left to the append that needs the file.
void FileJournal::prepare_next() {
  uint64_t size = next_size();
  std::lock_guard lock(preparing_);
  if (next_.is_open()) return;
  std::string path = options_.folder + "/" + kNextName;
  auto file = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
  if (!file) return;
  if (!write_zeros_paced(disk_, file->fd(), path, size)) return;
  next_ = *std::move(file);
  next_bytes_ = size;
}

// ---- after a segment is full

// Seals it, then packs it. Both only save time and room: without them the segment is walked as it
// is. One that does not check is left exactly as it is, for the reader who comes to it.
void FileJournal::close_segment(const std::shared_ptr<Segment>& segment, Seq last) {
  std::lock_guard maintaining(maintaining_);
  if (segment->head.first < first()) return;
  auto seal = survey(*segment, last);
  if (!seal) return;
  if (!replace_file(disk_, options_.folder, segment_name(segment->head.first) + kSealEnd,
                    encode(*seal)))
    return;
  {
    std::lock_guard lock(state_);
    segment->file.reset();
    segment->marks = seal->marks;
    segment->marks_loaded = true;
  }
  if (options_.pack && !pack_segment(segment, seal->end)) return;
}

// Walks a closed segment, checking every entry.
Result<Seal> FileJournal::survey(const Segment& segment, Seq last) const {
  TRY(File file, open_file(segment.path, O_RDONLY));
  PlainBytes bytes(std::move(file), segment.path);
  Seal seal{segment.head.first, last, kSegmentHeadBytes, {}};
  GroupWalk walk(bytes, segment.head.salt, kSegmentHeadBytes);
  for (Seq next = seal.first; next <= last; next = walk.head().last() + 1) {
    TRY(auto found, walk.next(next));
    bool more = true;
    bool good = found == GroupWalk::Found::group;
    if (good) {
      TRY(good, walk.entries([](Seq, BytesView) -> Result<bool> { return true; }, more));
    }
    if (!good) return fail(damaged(segment.path, walk.offset(), walk.what(), next - 1));
    add_mark(seal.marks, {next, walk.offset()});
    seal.end = walk.offset() + walk.head().size();
  }
  return seal;
}

Result<void> FileJournal::pack_segment(const std::shared_ptr<Segment>& segment, uint64_t end) {
  Seq first = segment->head.first;
  TRY(File file, open_file(segment->path, O_RDONLY));
  PlainBytes plain(std::move(file), segment->path);
  TRY(uint64_t size,
      write_packed(disk_, plain, end, options_.folder, segment_name(first) + kPackedEnd));
  TRY_OK(remove_files(disk_, options_.folder, {segment_name(first) + kPlainEnd}));
  std::lock_guard lock(state_);
  segment->size = size;
  return {};
}

Result<void> FileJournal::trim(Seq keep_from) {
  std::lock_guard maintaining(maintaining_);
  std::vector<std::string> names;
  size_t gone = 0;
  Seq first = 0;
  {
    std::lock_guard lock(state_);
    while (gone + 1 < segments_.size() && segments_[gone + 1]->head.first <= keep_from)
      ++gone;
    first = segments_[gone]->head.first;
    for (size_t i = 0; i < gone; ++i) {
      std::string name = segment_name(segments_[i]->head.first);
      for (const char* end : {kPlainEnd, kPackedEnd, kSealEnd})
        names.push_back(name + end);
    }
  }
  if (gone == 0) return {};
  TRY_OK(write_first(disk_, options_.folder, first));
  {
    std::lock_guard lock(state_);
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(gone));
  }
  return remove_files(disk_, options_.folder, names);
}

// ---- reading

Result<std::optional<FileJournal::Place>> FileJournal::find(Seq at) const {
  std::lock_guard lock(state_);
  if (at < segments_.front()->head.first) return fail(trimmed(at, segments_.front()->head.first));
  if (at > last_) return std::optional<Place>();
  auto after =
      std::upper_bound(segments_.begin(), segments_.end(), at,
                       [](Seq seq, const auto& segment) { return seq < segment->head.first; });
  const auto& segment = *(after - 1);
  Place place{segment,
              segment->file,
              {segment->head.first, kSegmentHeadBytes},
              last_,
              segment->marks_loaded};
  if (after != segments_.end()) place.last = (*after)->head.first - 1;
  place.from = mark_before(segment->marks, at, place.from);
  return std::optional(std::move(place));
}

Result<std::unique_ptr<SegmentBytes>> FileJournal::bytes_of(const Place& place) const {
  Seq first = place.segment->head.first;
  std::string path = path_of(first, kPlainEnd);
  if (place.file) return std::make_unique<PlainBytes>(place.file->fd(), path);
  auto file = open_file(path, O_RDONLY);
  if (file) return std::make_unique<PlainBytes>(*std::move(file), path);
  if (file.error().code != Code::not_found) return fail(std::move(file).error());
  auto packed = open_packed(path_of(first, kPackedEnd), first);
  if (packed || packed.error().code != Code::not_found) return packed;
  // Trimmed since it was found, or lost under us.
  if (first < this->first()) return fail(trimmed(first, this->first()));
  return fail(damaged(path, 0, "no such file", first - 1));
}

// A closed segment that was not written by this process: its seal says where the groups lie.
Result<void> FileJournal::load_marks(Place& place) const {
  std::string path = path_of(place.segment->head.first, kSealEnd);
  std::vector<Mark> marks;
  if (auto file = open_file(path, O_RDONLY)) {
    TRY(Bytes bytes,
        read_at(file->fd(), path, 0, static_cast<size_t>(::lseek(file->fd(), 0, SEEK_END))));
    auto seal = decode_seal(bytes);
    if (seal && seal->first == place.segment->head.first && seal->last == place.last)
      marks = std::move(seal->marks);
  }
  if (marks.empty()) {
    TRY(auto bytes, bytes_of(place));
    GroupWalk walk(*bytes, place.segment->head.salt, kSegmentHeadBytes);
    for (Seq next = place.segment->head.first; next <= place.last; next = walk.head().last() + 1) {
      TRY(auto found, walk.next(next));
      if (found != GroupWalk::Found::group)
        break;  // read_place() says what is wrong, if it comes to it
      add_mark(marks, {next, walk.offset()});
    }
  }
  std::lock_guard lock(state_);
  if (!place.segment->marks_loaded) place.segment->marks = std::move(marks);
  place.segment->marks_loaded = true;
  return {};
}

// Gives false when the visitor has had enough; moves `at` past what was visited.
Result<bool> FileJournal::read_place(const Place& place, Seq& at, const Visit& visit) const {
  TRY(auto bytes, bytes_of(place));
  GroupWalk walk(*bytes, place.segment->head.salt, place.from.offset);
  for (Seq next = place.from.seq; next <= place.last; next = walk.head().last() + 1) {
    TRY(auto found, walk.next(next));
    if (found == GroupWalk::Found::end) {
      return fail(damaged(bytes->path(), walk.offset(),
                          fmt::format("the end of the groups where {} belongs", next), next - 1));
    }
    if (found == GroupWalk::Found::bad)
      return fail(damaged(bytes->path(), walk.offset(), walk.what(), next - 1));
    if (walk.head().last() < at) continue;
    bool more = true;
    TRY(bool good, walk.entries(
                       [&](Seq seq, BytesView entry) -> Result<bool> {
                         if (seq < at) return true;
                         at = seq + 1;
                         return visit(seq, entry);
                       },
                       more));
    if (!good)
      return fail(damaged(bytes->path(), walk.offset(), walk.what(), walk.head().first - 1));
    if (!more) return false;
  }
  return true;
}

Result<void> FileJournal::read(Seq from, const Visit& visit) const {
  for (Seq at = from;;) {
    TRY(auto place, find(at));
    if (!place) return {};
    // The seal is only worth its reading when there is something to skip.
    if (!place->marks_loaded && at > place->segment->head.first) {
      TRY_OK(load_marks(*place));
      TRY(place, find(at));
      if (!place) return {};
    }
    TRY(bool more, read_place(*place, at, visit));
    if (!more) return {};
  }
}

}  // namespace pawl
