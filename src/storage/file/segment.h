#pragma once
// A segment is a file of groups. A group is the entries of one append. This file is the only place
// that knows their bytes; docs/formats/journal.md describes them.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/file/disk.h"
#include "storage/journal.h"

namespace pawl {

inline constexpr size_t kSegmentHeaderBytes = 40;
inline constexpr size_t kGroupHeaderBytes = 24;
inline constexpr size_t kEntryHeaderBytes = 8;
// Groups begin at multiples of this; zeros fill the gap.
inline constexpr uint64_t kGroupAlignment = 8;
// Size of one group. Its length has 32 bits and it is assembled in memory. A larger append is
// refused.
inline constexpr size_t kMaxGroupBytes = 1u << 30;
// A zero list adds at most 8 bytes for each 1 KiB of its group, and 8.
inline constexpr size_t kMaxGroupLength = kMaxGroupBytes + kMaxGroupBytes / 64;
// The index of a segment holds one position for about this many bytes. It is also what a read of
// one entry scans to find it.
inline constexpr uint64_t kIndexEvery = 16 * 1024;

// Version 1 has no file_bytes, and its groups never list zero sectors. New segments have version 2.
inline constexpr uint32_t kSegmentVersion = 2;

struct SegmentHeader {
  Seq first = 0;
  Seq previous = 0;   // first seq of the segment before; 0 in the first segment ever
  uint32_t salt = 0;  // random; it seeds every checksum of the segment's groups
  uint32_t version = kSegmentVersion;
  // The size that the file was made with, rounded down to 4 KiB; 0 when it is unknown. A plain
  // segment file that is smaller was cut by something else than Pawl.
  uint64_t file_bytes = 0;
};
Bytes encode(const SegmentHeader& header);
// Decodes a header of any version; the caller refuses versions that it does not know.
std::optional<SegmentHeader> decode_segment_header(BytesView bytes);

struct GroupHeader {
  uint32_t length = 0;  // of the entries with their headers and the zero list, without padding
  Seq first = 0;
  uint32_t count = 0;
  bool has_zero_list = false;  // see zero_sectors.h
  uint64_t size() const {      // of the whole group with header and padding
    return (kGroupHeaderBytes + length + kGroupAlignment - 1) & ~(kGroupAlignment - 1);
  }
  Seq last() const { return first + count - 1; }
};
std::optional<GroupHeader> decode_group_header(BytesView bytes, uint32_t salt);
uint64_t group_bytes(std::span<const BytesView> entries);  // with headers, without padding
// Replaces `out` with the encoded group, padding included.
void encode_group(std::span<const BytesView> entries, Seq first, uint32_t salt, Bytes& out);
// Adds the list of zero sectors to an encoded group that needs one. `offset` is where the group
// goes in its segment.
void add_zero_list(Bytes& group, uint64_t offset, uint32_t salt);

// The offset of the group that begins with entry `seq`.
struct GroupPosition {
  Seq seq = 0;
  uint64_t offset = 0;
};
// Adds the position when it is at least kIndexEvery bytes after the last one.
void add_position(std::vector<GroupPosition>& positions, GroupPosition position);
// The last position at or before `seq`, otherwise `default_value`.
GroupPosition position_before(const std::vector<GroupPosition>& positions, Seq seq,
                              GroupPosition default_value);

// The index of a closed segment, which stands in a file beside it.
struct SegmentIndex {
  Seq first = 0;
  Seq last = 0;
  uint64_t end = 0;  // offset at which the last group ends
  std::vector<GroupPosition> positions;
};
Bytes encode(const SegmentIndex& index);
std::optional<SegmentIndex> decode_segment_index(BytesView bytes);

// Reads the bytes of a segment, which is plain or compressed. Not thread-safe.
class SegmentReader {
 public:
  virtual ~SegmentReader() = default;
  // Returns fewer bytes than `size` only at the end of the segment.
  virtual Result<Bytes> at(uint64_t offset, size_t size) = 0;
  virtual const std::string& path() const = 0;
};

class PlainSegment final : public SegmentReader {
 public:
  PlainSegment(Disk& disk, int fd, std::string path)
      : disk_(disk), fd_(fd), path_(std::move(path)) {}
  PlainSegment(Disk& disk, File file, std::string path)
      : disk_(disk), owned_(std::move(file)), fd_(owned_.fd()), path_(std::move(path)) {}
  Result<Bytes> at(uint64_t offset, size_t size) override {
    return read_at(disk_, fd_, path_, offset, size);
  }
  const std::string& path() const override { return path_; }

 private:
  Disk& disk_;
  File owned_;
  int fd_;
  std::string path_;
};

// Steps through the groups of a segment, beginning with the group at `offset`.
class GroupCursor {
 public:
  enum class Found { group, end, invalid };
  enum class Visited { all, stopped, invalid };

  GroupCursor(SegmentReader& reader, uint32_t salt, uint64_t offset)
      : reader_(reader), salt_(salt), offset_(offset) {}

  // Steps to the next group and checks its header, which must name `expected` as first entry.
  // Afterwards offset() is where the group begins, or where it was expected.
  Result<Found> next(Seq expected);
  // Steps to the next group and checks its entries too. Returns false at the end of the groups
  // (then problem() is empty) and at a group that is invalid.
  Result<bool> next_checked(Seq expected);
  // Checks each entry of the current group and passes it to `visit`, until `visit` returns false or
  // an error.
  Result<Visited> visit_entries(const Journal::Visit& visit);

  const GroupHeader& header() const { return header_; }
  bool header_valid() const { return header_valid_; }  // of the last group that was looked for
  uint64_t offset() const { return offset_; }
  // The finding in place of a valid group or entry, for error messages.
  const std::string& problem() const { return problem_; }

 private:
  Result<BytesView> window(uint64_t offset, size_t size);
  Found invalid(std::string problem);

  SegmentReader& reader_;
  uint32_t salt_;
  uint64_t offset_;
  bool at_group_ = false;  // offset_ is the begin of a group that header_ describes
  bool header_valid_ = false;
  GroupHeader header_;
  std::string problem_;
  // Bytes that were read ahead. Small at first, because most reads want one entry, and doubled by
  // each further read.
  Bytes window_;
  uint64_t window_offset_ = 0;
  size_t window_bytes_ = 32 * 1024;
};

// The offset of the first valid group header at or after `offset` with a seq after `after`.
Result<std::optional<uint64_t>> find_later_group(SegmentReader& reader, uint32_t salt,
                                                 uint64_t offset, Seq after);
// The offset after the last byte that is not zero; `offset` when all from there on are zero.
Result<uint64_t> end_of_nonzero(SegmentReader& reader, uint64_t offset);

// The error JOURNAL_CORRUPT, with the place, what was found there, and the remedies.
Error damaged(const std::string& path, uint64_t offset, std::string_view found, Seq last_good);

}  // namespace pawl
