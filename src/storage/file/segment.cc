#include "storage/file/segment.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "storage/file/zero_sectors.h"

namespace pawl {
namespace {

constexpr BytesView kSegmentMagic = "PAWLSEG\n";
constexpr BytesView kIndexMagic = "PAWLIDX\n";
constexpr uint32_t kIndexVersion = 1;
constexpr BytesView kGroupMagic = "PGRP";
constexpr BytesView kGroupWithZeroListMagic = "PGRZ";
constexpr uint64_t kSizeUnit = 4096;  // of SegmentHeader::file_bytes on disk
// How much a scan through a segment reads at once.
constexpr size_t kScanBytes = 1 << 20;

// A little-endian integer at `p`; store() returns where the next field goes.
template <class T>
T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
char* store(char* p, T v) {
  std::memcpy(p, &v, sizeof v);
  return p + sizeof v;
}

// The checksum covers the seq and the length too, so an entry in the wrong place is found.
uint32_t entry_crc(Seq seq, BytesView entry, uint32_t salt) {
  char prefix[12];
  store(prefix, seq);
  store(prefix + 8, static_cast<uint32_t>(entry.size()));
  return crc32c(entry, crc32c({prefix, sizeof prefix}, salt));
}

bool all_zero(BytesView bytes) { return bytes.find_first_not_of('\0') == BytesView::npos; }

// Writes the header of a group to the front of `group`.
void store_group_header(Bytes& group, const GroupHeader& header, uint32_t salt) {
  BytesView magic = header.has_zero_list ? kGroupWithZeroListMagic : kGroupMagic;
  char* p = group.data();
  std::memcpy(p, magic.data(), magic.size());
  p = store(p + magic.size(), header.length);
  p = store(p, header.first);
  p = store(p, header.count);
  store(p, crc32c({group.data(), 20}, salt));
}

// The last word of a header of version 2: 24 bits of size and 8 bits that check them. The checksum
// before it covers the same bytes as in version 1, so that older binaries read the version number.
uint32_t size_word(BytesView header, uint64_t file_bytes) {
  auto units = static_cast<uint32_t>(std::min<uint64_t>(file_bytes / kSizeUnit, 0xffffff));
  return units | (crc32c(header.substr(0, 36), units) << 24);
}

}  // namespace

Bytes encode(const SegmentHeader& header) {
  Bytes out(kSegmentMagic);
  Writer writer(out);
  writer.fixed32(header.version);
  writer.fixed32(header.salt);
  writer.fixed64(header.first);
  writer.fixed64(header.previous);
  writer.fixed32(crc32c(out));
  writer.fixed32(header.version == 1 ? 0 : size_word(out, header.file_bytes));
  return out;
}

std::optional<SegmentHeader> decode_segment_header(BytesView bytes) {
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kSegmentMagic)) return std::nullopt;
  Reader reader(bytes.substr(kSegmentMagic.size()));
  SegmentHeader header;
  header.version = reader.fixed32();
  header.salt = reader.fixed32();
  header.first = reader.fixed64();
  header.previous = reader.fixed64();
  if (reader.fixed32() != crc32c(bytes.substr(0, 32))) return std::nullopt;
  const uint32_t word = reader.fixed32();
  if (header.version != kSegmentVersion) return header;
  header.file_bytes = (word & 0xffffff) * kSizeUnit;
  if (word != size_word(bytes, header.file_bytes)) return std::nullopt;
  return header;
}

std::optional<GroupHeader> decode_group_header(BytesView bytes, uint32_t salt) {
  if (bytes.size() < kGroupHeaderBytes) return std::nullopt;
  const bool has_zero_list = bytes.starts_with(kGroupWithZeroListMagic);
  if (!has_zero_list && !bytes.starts_with(kGroupMagic)) return std::nullopt;
  if (load<uint32_t>(bytes.data() + 20) != crc32c(bytes.substr(0, 20), salt)) return std::nullopt;
  GroupHeader header{load<uint32_t>(bytes.data() + 4), load<uint64_t>(bytes.data() + 8),
                     load<uint32_t>(bytes.data() + 16), has_zero_list};
  if (header.count == 0 || header.length > kMaxGroupLength) return std::nullopt;
  return header;
}

uint64_t group_bytes(std::span<const BytesView> entries) {
  uint64_t bytes = kGroupHeaderBytes;
  for (BytesView entry : entries)
    bytes += kEntryHeaderBytes + entry.size();
  return bytes;
}

void encode_group(std::span<const BytesView> entries, Seq first, uint32_t salt, Bytes& out) {
  uint64_t length = group_bytes(entries) - kGroupHeaderBytes;
  CHECK(length <= kMaxGroupBytes);
  GroupHeader header{static_cast<uint32_t>(length), first, static_cast<uint32_t>(entries.size())};
  out.resize(header.size());
  store_group_header(out, header, salt);
  char* p = out.data() + kGroupHeaderBytes;
  Seq seq = first;
  for (BytesView entry : entries) {
    p = store(p, static_cast<uint32_t>(entry.size()));
    p = store(p, entry_crc(seq, entry, salt));
    std::memcpy(p, entry.data(), entry.size());
    p += entry.size();
    ++seq;
  }
  std::memset(p, 0, static_cast<size_t>(out.data() + out.size() - p));
}

void add_zero_list(Bytes& group, uint64_t offset, uint32_t salt) {
  std::vector<SectorRun> runs = zero_sectors(group, offset);
  if (runs.empty() && !ends_in_zeros(group)) return;
  std::optional<GroupHeader> header = decode_group_header(group, salt);
  CHECK(header);
  Bytes list = encode_zero_list(runs, salt);
  group.resize(kGroupHeaderBytes + header->length);
  group += list;
  header->length += static_cast<uint32_t>(list.size());
  header->has_zero_list = true;
  group.resize(header->size());
  store_group_header(group, *header, salt);
}

void add_position(std::vector<GroupPosition>& positions, GroupPosition position) {
  if (positions.empty() || position.offset >= positions.back().offset + kIndexEvery)
    positions.push_back(position);
}

GroupPosition position_before(const std::vector<GroupPosition>& positions, Seq seq,
                              GroupPosition default_value) {
  auto after = std::upper_bound(positions.begin(), positions.end(), seq,
                                [](Seq s, const GroupPosition& p) { return s < p.seq; });
  return after == positions.begin() ? default_value : *(after - 1);
}

Bytes encode(const SegmentIndex& index) {
  Bytes out(kIndexMagic);
  Writer writer(out);
  writer.fixed32(kIndexVersion);
  writer.fixed32(static_cast<uint32_t>(index.positions.size()));
  writer.fixed64(index.first);
  writer.fixed64(index.last);
  writer.fixed64(index.end);
  for (const GroupPosition& position : index.positions) {
    writer.fixed64(position.seq);
    writer.fixed64(position.offset);
  }
  writer.fixed32(crc32c(out));
  return out;
}

std::optional<SegmentIndex> decode_segment_index(BytesView bytes) {
  constexpr size_t kLeastBytes = 44;  // an index without positions
  if (bytes.size() < kLeastBytes || !bytes.starts_with(kIndexMagic)) return std::nullopt;
  BytesView body = bytes.substr(0, bytes.size() - 4);
  if (Reader(bytes.substr(body.size())).fixed32() != crc32c(body)) return std::nullopt;
  Reader reader(body.substr(kIndexMagic.size()));
  SegmentIndex index;
  uint32_t version = reader.fixed32();
  uint32_t count = reader.fixed32();
  index.first = reader.fixed64();
  index.last = reader.fixed64();
  index.end = reader.fixed64();
  if (version != kIndexVersion || reader.rest().size() != size_t{count} * 16) return std::nullopt;
  index.positions.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    Seq seq = reader.fixed64();
    uint64_t offset = reader.fixed64();
    index.positions.push_back({seq, offset});
  }
  return index;
}

Result<BytesView> GroupCursor::window(uint64_t offset, size_t size) {
  constexpr size_t kMaxWindow = 512 * 1024;
  if (offset < window_offset_ || offset + size > window_offset_ + window_.size()) {
    TRY(window_, reader_.at(offset, std::max(size, window_bytes_)));
    window_bytes_ = std::min<size_t>(window_bytes_ * 2, kMaxWindow);
    window_offset_ = offset;
  }
  return BytesView(window_).substr(offset - window_offset_, size);
}

GroupCursor::Found GroupCursor::invalid(std::string problem) {
  problem_ = std::move(problem);
  return Found::invalid;
}

Result<GroupCursor::Found> GroupCursor::next(Seq expected) {
  if (at_group_) offset_ += header_.size();
  at_group_ = false;
  header_valid_ = false;
  problem_.clear();
  TRY(BytesView bytes, window(offset_, kGroupHeaderBytes));
  if (all_zero(bytes)) return Found::end;
  std::optional<GroupHeader> header = decode_group_header(bytes, salt_);
  if (!header) return invalid("an invalid group header");
  header_ = *header;
  header_valid_ = true;
  if (header_.first != expected)
    return invalid(fmt::format("a group that begins with entry {} where entry {} belongs",
                               header_.first, expected));
  TRY(BytesView whole, window(offset_, kGroupHeaderBytes + header_.length));
  if (whole.size() < kGroupHeaderBytes + header_.length)
    return invalid("a group that goes past the end of the file");
  at_group_ = true;
  return Found::group;
}

Result<bool> GroupCursor::next_checked(Seq expected) {
  TRY(Found found, next(expected));
  if (found != Found::group) return false;
  TRY(Visited visited, visit_entries([](Seq, BytesView) -> Result<bool> { return true; }));
  return visited == Visited::all;
}

Result<GroupCursor::Visited> GroupCursor::visit_entries(const Journal::Visit& visit) {
  TRY(BytesView whole, window(offset_, kGroupHeaderBytes + header_.length));
  BytesView rest = whole.substr(kGroupHeaderBytes);
  if (header_.has_zero_list) {
    std::optional<ZeroList> list = decode_zero_list(rest, salt_);
    if (!list) {
      problem_ = "a list of zero sectors with a wrong checksum";
      return Visited::invalid;
    }
    rest.remove_suffix(list->bytes);
  }
  for (Seq seq = header_.first; seq <= header_.last(); ++seq) {
    uint32_t length = rest.size() < kEntryHeaderBytes ? 0 : load<uint32_t>(rest.data());
    if (rest.size() < kEntryHeaderBytes + size_t{length}) {
      problem_ = fmt::format("entry {} longer than its group", seq);
      return Visited::invalid;
    }
    BytesView entry = rest.substr(kEntryHeaderBytes, length);
    if (load<uint32_t>(rest.data() + 4) != entry_crc(seq, entry, salt_)) {
      problem_ = fmt::format("entry {} with a wrong checksum", seq);
      return Visited::invalid;
    }
    rest.remove_prefix(kEntryHeaderBytes + length);
    TRY(bool more, visit(seq, entry));
    if (!more) return Visited::stopped;
  }
  if (!rest.empty()) {
    problem_ = "a group longer than its entries";
    return Visited::invalid;
  }
  return Visited::all;
}

Result<std::optional<uint64_t>> find_later_group(SegmentReader& reader, uint32_t salt,
                                                 uint64_t offset, Seq after) {
  uint64_t at = (offset + kGroupAlignment - 1) & ~(kGroupAlignment - 1);
  for (;; at += kScanBytes) {
    // Each step reads one header more, for the header that lies across two steps.
    TRY(Bytes bytes, reader.at(at, kScanBytes + kGroupHeaderBytes));
    for (size_t i = 0; i < kScanBytes && i + kGroupHeaderBytes <= bytes.size();
         i += kGroupAlignment) {
      auto header = decode_group_header(BytesView(bytes).substr(i), salt);
      if (header && header->first > after) return std::optional(at + i);
    }
    if (bytes.size() < kScanBytes) return std::optional<uint64_t>();
  }
}

// The size without the zeros at the end. A new segment is megabytes of zeros, so they are compared
// page by page.
static size_t size_without_zeros(BytesView bytes) {
  constexpr size_t kPage = 4096;
  static constexpr char zeros[kPage] = {};
  size_t end = bytes.size();
  while (end >= kPage && std::memcmp(bytes.data() + end - kPage, zeros, kPage) == 0)
    end -= kPage;
  return bytes.substr(0, end).find_last_not_of('\0') + 1;
}

Result<uint64_t> end_of_nonzero(SegmentReader& reader, uint64_t offset) {
  uint64_t end = offset;
  for (uint64_t at = offset;; at += kScanBytes) {
    TRY(Bytes bytes, reader.at(at, kScanBytes));
    if (size_t size = size_without_zeros(bytes)) end = at + size;
    if (bytes.size() < kScanBytes) return end;
  }
}

Error damaged(const std::string& path, uint64_t offset, std::string_view found, Seq last_good) {
  return Error{
      Code::corrupt, "JOURNAL_CORRUPT",
      fmt::format("{} is damaged at byte {}: found {}; the last good entry is {}. Restore from a "
                  "backup with `pawl restore`, or give up everything after it with "
                  "`pawl journal cut --at {}`",
                  path, offset, found, last_good, last_good)};
}

}  // namespace pawl
