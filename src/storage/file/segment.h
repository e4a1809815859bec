#pragma once
// A segment is a file of groups; a group is the entries of one append. This is the one place that
// knows their bytes: see docs/formats/journal.md.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/file/disk.h"
#include "storage/journal.h"

namespace pawl {

inline constexpr size_t kSegmentHeadBytes = 40;
inline constexpr size_t kGroupHeadBytes = 24;
inline constexpr size_t kEntryHeadBytes = 8;
// One append; lengths are 32 bits, and a group is assembled in memory.
inline constexpr size_t kMaxGroup = 1u << 30;
// A mark about every so many bytes: what get() reads to find one entry.
inline constexpr uint64_t kMarkEvery = 16 * 1024;

struct SegmentHead {
  Seq first = 0;
  Seq previous = 0;  // first seq of the segment before; 0 for the first ever
  uint32_t salt = 0;
  uint32_t version = 1;
};
Bytes encode(const SegmentHead& head);
// Whatever its version: one that is not ours is a newer binary's.
std::optional<SegmentHead> decode_segment_head(BytesView bytes);

struct GroupHead {
  uint32_t length = 0;  // of the entries, without padding
  Seq first = 0;
  uint32_t count = 0;
  uint64_t size() const { return (kGroupHeadBytes + length + 7) & ~uint64_t{7}; }
  Seq last() const { return first + count - 1; }
};
std::optional<GroupHead> decode_group_head(BytesView bytes, uint32_t salt);
uint64_t group_bytes(std::span<const BytesView> entries);  // before padding
// Replaces `out` with one group, padding and all.
void encode_group(std::span<const BytesView> entries, Seq first, uint32_t salt, Bytes& out);

// Where a group begins.
struct Mark {
  Seq seq = 0;
  uint64_t offset = 0;
};
void add_mark(std::vector<Mark>& marks, Mark mark);  // if it is far enough from the last
Mark mark_before(const std::vector<Mark>& marks, Seq seq, Mark default_value);

// The seal of a closed segment.
struct Seal {
  Seq first = 0, last = 0;
  uint64_t end = 0;
  std::vector<Mark> marks;
};
Bytes encode(const Seal& seal);
std::optional<Seal> decode_seal(BytesView bytes);

// The bytes of a segment, however they are kept. Not safe for two threads.
class SegmentBytes {
 public:
  virtual ~SegmentBytes() = default;
  // Short only where the segment ends.
  virtual Result<Bytes> at(uint64_t offset, size_t size) = 0;
  virtual const std::string& path() const = 0;
};

class PlainBytes final : public SegmentBytes {
 public:
  PlainBytes(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  PlainBytes(File file, std::string path)
      : owned_(std::move(file)), fd_(owned_.fd()), path_(std::move(path)) {}
  Result<Bytes> at(uint64_t offset, size_t size) override {
    return read_at(fd_, path_, offset, size);
  }
  const std::string& path() const override { return path_; }

 private:
  File owned_;
  int fd_;
  std::string path_;
};

// Walks the groups of a segment from one that begins at `offset`. Entries are checked when walked
// over.
class GroupWalk {
 public:
  enum class Found { group, end, bad };

  GroupWalk(SegmentBytes& bytes, uint32_t salt, uint64_t offset)
      : bytes_(bytes), salt_(salt), offset_(offset) {}

  // Steps to the next group, which must begin with `expected`; offset() is where it was looked for.
  Result<Found> next(Seq expected);
  // Checks each entry of the group and visits it; `more` is what the last visit gave. False: an
  // entry does not check, see what().
  Result<bool> entries(const std::function<Result<bool>(Seq, BytesView)>& visit, bool& more);

  const GroupHead& head() const { return head_; }
  uint64_t offset() const { return offset_; }
  const std::string& what() const { return what_; }  // what was found, when bad
  bool head_was_good() const { return head_good_; }

 private:
  Result<BytesView> window(uint64_t offset, size_t size);
  Found bad(std::string what);

  SegmentBytes& bytes_;
  uint32_t salt_;
  uint64_t offset_;
  size_t window_bytes_ =
      32 * 1024;  // read at once: little for one entry, doubled for those that go on
  bool stepped_ = false;
  bool head_good_ = false;
  GroupHead head_;
  std::string what_;
  Bytes window_;
  uint64_t window_at_ = 0;
};

// The offset of the first valid group head at or after `offset` whose seq is later than `after`.
Result<std::optional<uint64_t>> find_later_group(SegmentBytes& bytes, uint32_t salt,
                                                 uint64_t offset, Seq after);
// One past the last byte at or after `offset` that is not zero; `offset` when there is none.
Result<uint64_t> end_of_nonzero(SegmentBytes& bytes, uint64_t offset);

Error damaged(const std::string& path, uint64_t offset, std::string_view what, Seq last_good);

}  // namespace pawl
