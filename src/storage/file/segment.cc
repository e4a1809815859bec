#include "storage/file/segment.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace pawl {
namespace {

constexpr BytesView kSegmentMagic = "PAWLSEG\n";
constexpr BytesView kSealMagic = "PAWLIDX\n";
constexpr uint32_t kVersion = 1;
constexpr char kGroupMagic[] = {'P', 'G', 'R', 'P'};

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

uint32_t entry_crc(Seq seq, BytesView entry, uint32_t salt) {
  char head[12];
  store(store(head, seq), static_cast<uint32_t>(entry.size()));
  return crc32c(entry, crc32c({head, sizeof head}, salt));
}

bool all_zero(BytesView bytes) { return bytes.find_first_not_of('\0') == BytesView::npos; }

}  // namespace

Bytes encode(const SegmentHead& head) {
  Bytes out(kSegmentMagic);
  Writer writer(out);
  writer.fixed32(head.version);
  writer.fixed32(head.salt);
  writer.fixed64(head.first);
  writer.fixed64(head.previous);
  writer.fixed32(crc32c(out));
  writer.fixed32(0);
  return out;
}

std::optional<SegmentHead> decode_segment_head(BytesView bytes) {
  if (bytes.size() < kSegmentHeadBytes || !bytes.starts_with(kSegmentMagic)) return std::nullopt;
  Reader reader(bytes.substr(kSegmentMagic.size()));
  SegmentHead head;
  head.version = reader.fixed32();
  head.salt = reader.fixed32();
  head.first = reader.fixed64();
  head.previous = reader.fixed64();
  if (reader.fixed32() != crc32c(bytes.substr(0, 32))) return std::nullopt;
  return head;
}

std::optional<GroupHead> decode_group_head(BytesView bytes, uint32_t salt) {
  if (bytes.size() < kGroupHeadBytes || std::memcmp(bytes.data(), kGroupMagic, 4) != 0)
    return std::nullopt;
  if (load<uint32_t>(bytes.data() + 20) != crc32c(bytes.substr(0, 20), salt)) return std::nullopt;
  GroupHead head{load<uint32_t>(bytes.data() + 4), load<uint64_t>(bytes.data() + 8),
                 load<uint32_t>(bytes.data() + 16)};
  if (head.count == 0 || head.length > kMaxGroup) return std::nullopt;
  return head;
}

uint64_t group_bytes(std::span<const BytesView> entries) {
  uint64_t bytes = kGroupHeadBytes;
  for (BytesView entry : entries)
    bytes += kEntryHeadBytes + entry.size();
  return bytes;
}

void encode_group(std::span<const BytesView> entries, Seq first, uint32_t salt, Bytes& out) {
  uint64_t length = group_bytes(entries) - kGroupHeadBytes;
  CHECK(length <= kMaxGroup);
  GroupHead head{static_cast<uint32_t>(length), first, static_cast<uint32_t>(entries.size())};
  out.resize(head.size());
  char* p = out.data();
  std::memcpy(p, kGroupMagic, 4);
  p = store(store(store(p + 4, head.length), head.first), head.count);
  p = store(p, crc32c({out.data(), 20}, salt));
  Seq seq = first;
  for (BytesView entry : entries) {
    p = store(p, static_cast<uint32_t>(entry.size()));
    p = store(p, entry_crc(seq++, entry, salt));
    std::memcpy(p, entry.data(), entry.size());
    p += entry.size();
  }
  std::memset(p, 0, static_cast<size_t>(out.data() + out.size() - p));
}

void add_mark(std::vector<Mark>& marks, Mark mark) {
  if (marks.empty() || mark.offset >= marks.back().offset + kMarkEvery) marks.push_back(mark);
}

Mark mark_before(const std::vector<Mark>& marks, Seq seq, Mark default_value) {
  auto after = std::upper_bound(marks.begin(), marks.end(), seq,
                                [](Seq s, const Mark& m) { return s < m.seq; });
  return after == marks.begin() ? default_value : *(after - 1);
}

Bytes encode(const Seal& seal) {
  Bytes out(kSealMagic);
  Writer writer(out);
  writer.fixed32(kVersion);
  writer.fixed32(static_cast<uint32_t>(seal.marks.size()));
  writer.fixed64(seal.first);
  writer.fixed64(seal.last);
  writer.fixed64(seal.end);
  for (const Mark& mark : seal.marks) {
    writer.fixed64(mark.seq);
    writer.fixed64(mark.offset);
  }
  writer.fixed32(crc32c(out));
  return out;
}

std::optional<Seal> decode_seal(BytesView bytes) {
  if (bytes.size() < 44 || !bytes.starts_with(kSealMagic)) return std::nullopt;
  BytesView body = bytes.substr(0, bytes.size() - 4);
  if (Reader(bytes.substr(body.size())).fixed32() != crc32c(body)) return std::nullopt;
  Reader reader(body.substr(kSealMagic.size()));
  Seal seal;
  uint32_t version = reader.fixed32();
  uint32_t count = reader.fixed32();
  seal.first = reader.fixed64();
  seal.last = reader.fixed64();
  seal.end = reader.fixed64();
  if (version != kVersion || reader.rest().size() != size_t{count} * 16) return std::nullopt;
  seal.marks.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    Seq seq = reader.fixed64();
    seal.marks.push_back({seq, reader.fixed64()});
  }
  return seal;
}

Result<BytesView> GroupWalk::window(uint64_t offset, size_t size) {
  if (offset < window_at_ || offset + size > window_at_ + window_.size()) {
    TRY(window_, bytes_.at(offset, std::max(size, window_bytes_)));
    window_bytes_ = std::min<size_t>(window_bytes_ * 2, 512 * 1024);
    window_at_ = offset;
  }
  size_t skip = offset - window_at_;
  return BytesView(window_).substr(skip, size);
}

GroupWalk::Found GroupWalk::bad(std::string what) {
  what_ = std::move(what);
  return Found::bad;
}

Result<GroupWalk::Found> GroupWalk::next(Seq expected) {
  if (stepped_) offset_ += head_.size();
  stepped_ = false;
  head_good_ = false;
  TRY(BytesView bytes, window(offset_, kGroupHeadBytes));
  if (all_zero(bytes)) return Found::end;
  auto head = decode_group_head(bytes, salt_);
  if (!head) return bad("a group head that does not check");
  head_ = *head;
  head_good_ = true;
  if (head_.first != expected)
    return bad(fmt::format("a group that begins with {} where {} belongs", head_.first, expected));
  TRY(BytesView whole, window(offset_, kGroupHeadBytes + head_.length));
  if (whole.size() < kGroupHeadBytes + head_.length)
    return bad("a group that goes past the end of the file");
  stepped_ = true;
  return Found::group;
}

Result<bool> GroupWalk::entries(const std::function<Result<bool>(Seq, BytesView)>& visit,
                                bool& more) {
  more = true;
  TRY(BytesView whole, window(offset_, kGroupHeadBytes + head_.length));
  BytesView rest = whole.substr(kGroupHeadBytes);
  for (Seq seq = head_.first; seq <= head_.last(); ++seq) {
    uint32_t length = rest.size() < kEntryHeadBytes ? 0 : load<uint32_t>(rest.data());
    if (rest.size() < kEntryHeadBytes + size_t{length}) {
      what_ = fmt::format("entry {} longer than its group", seq);
      return false;
    }
    BytesView entry = rest.substr(kEntryHeadBytes, length);
    if (load<uint32_t>(rest.data() + 4) != entry_crc(seq, entry, salt_)) {
      what_ = fmt::format("entry {} that does not check", seq);
      return false;
    }
    rest.remove_prefix(kEntryHeadBytes + length);
    TRY(more, visit(seq, entry));
    if (!more) return true;
  }
  if (!rest.empty()) {
    what_ = "a group longer than its entries";
    return false;
  }
  return true;
}

Result<std::optional<uint64_t>> find_later_group(SegmentBytes& bytes, uint32_t salt,
                                                 uint64_t offset, Seq after) {
  constexpr size_t kWindow = 1 << 20;
  for (uint64_t at = (offset + 7) & ~uint64_t{7};; at += kWindow) {
    // A head that lies across two windows is seen in the first.
    TRY(Bytes window, bytes.at(at, kWindow + kGroupHeadBytes));
    for (size_t i = 0; i < kWindow && i + kGroupHeadBytes <= window.size(); i += 8) {
      auto head = decode_group_head(BytesView(window).substr(i), salt);
      if (head && head->first > after) return std::optional(at + i);
    }
    if (window.size() < kWindow) return std::optional<uint64_t>();
  }
}

// Where the zeros at the end begin. A new segment is megabytes of them: they are looked at by the
// page.
static size_t end_of_nonzero(BytesView bytes) {
  constexpr size_t kPage = 4096;
  static constexpr char zeros[kPage] = {};
  size_t end = bytes.size();
  while (end >= kPage && std::memcmp(bytes.data() + end - kPage, zeros, kPage) == 0)
    end -= kPage;
  return bytes.substr(0, end).find_last_not_of('\0') + 1;
}

Result<uint64_t> end_of_nonzero(SegmentBytes& bytes, uint64_t offset) {
  constexpr size_t kWindow = 1 << 20;
  uint64_t end = offset;
  for (uint64_t at = offset;; at += kWindow) {
    TRY(Bytes window, bytes.at(at, kWindow));
    if (size_t found = end_of_nonzero(window)) end = at + found;
    if (window.size() < kWindow) return end;
  }
}

Error damaged(const std::string& path, uint64_t offset, std::string_view what, Seq last_good) {
  return Error{
      Code::corrupt, "JOURNAL_CORRUPT",
      fmt::format("{} is damaged at byte {}: found {}; the last good entry is {}. Restore from a "
                  "backup with "
                  "`pawl restore`, or give up everything after it with `pawl journal cut --at {}`",
                  path, offset, what, last_good, last_good)};
}

}  // namespace pawl
