#include "storage/file/zero_sectors.h"

#include <algorithm>

#include "base/hash.h"

namespace pawl {
namespace {

constexpr uint64_t kSector = 512;
constexpr size_t kFewZeros = 16;
constexpr size_t kRunBytes = 8;
constexpr size_t kListEndBytes = 8;  // number of runs, checksum

// Size of the list at the end of the group, as its number of runs says.
size_t list_bytes(BytesView group) {
  return Reader(group.substr(group.size() - kListEndBytes)).fixed32() * kRunBytes + kListEndBytes;
}

bool all_zero(BytesView bytes) { return bytes.find_first_not_of('\0') == BytesView::npos; }

}  // namespace

std::vector<SectorRun> zero_sectors(BytesView group, uint64_t offset) {
  std::vector<SectorRun> runs;
  const uint64_t first_sector = offset / kSector;
  const uint64_t end = offset + group.size();
  for (uint64_t at = offset; at < end;) {
    uint64_t next = std::min(end, (at / kSector + 1) * kSector);
    BytesView piece = group.substr(at - offset, next - at);
    auto sector = static_cast<uint32_t>(at / kSector - first_sector);
    at = next;
    // The first byte decides for nearly every sector.
    if (piece[0] != '\0' || !all_zero(piece)) continue;
    if (!runs.empty() && runs.back().first + runs.back().count == sector)
      ++runs.back().count;
    else
      runs.push_back({sector, 1});
  }
  return runs;
}

bool ends_in_zeros(BytesView group) {
  size_t last = group.find_last_not_of('\0');
  return last == BytesView::npos || group.size() - last > kFewZeros;
}

Bytes encode_zero_list(const std::vector<SectorRun>& runs, uint32_t salt) {
  Bytes out;
  Writer writer(out);
  for (const SectorRun& run : runs) {
    writer.fixed32(run.first);
    writer.fixed32(run.count);
  }
  writer.fixed32(static_cast<uint32_t>(runs.size()));
  writer.fixed32(crc32c(out, salt));
  return out;
}

std::optional<ZeroList> decode_zero_list(BytesView group, uint32_t salt) {
  if (group.size() < kListEndBytes) return std::nullopt;
  const size_t bytes = list_bytes(group);
  if (bytes > group.size()) return std::nullopt;
  BytesView list = group.substr(group.size() - bytes);
  const uint32_t crc = Reader(list.substr(bytes - 4)).fixed32();
  if (crc != crc32c(list.substr(0, bytes - 4), salt)) return std::nullopt;
  ZeroList out{{}, bytes};
  Reader reader(list);
  for (size_t at = 0; at + kListEndBytes < bytes; at += kRunBytes) {
    uint32_t first = reader.fixed32();
    uint32_t length = reader.fixed32();
    out.runs.push_back({first, length});
  }
  return out;
}

bool has_unlisted_zeros(BytesView group, uint64_t offset, uint32_t salt) {
  const std::vector<SectorRun> zeros = zero_sectors(group, offset);
  if (std::optional<ZeroList> list = decode_zero_list(group, salt)) {
    return !std::all_of(zeros.begin(), zeros.end(), [&](const SectorRun& zero) {
      return std::any_of(list->runs.begin(), list->runs.end(), [&](const SectorRun& listed) {
        return listed.first <= zero.first && zero.first + zero.count <= listed.first + listed.count;
      });
    });
  }
  // No sector inside a list is zero by its content, so a zero one was not written.
  const size_t bytes = list_bytes(group);
  if (bytes > group.size()) return false;
  const uint64_t list_sector = (offset + group.size() - bytes) / kSector - offset / kSector;
  return std::any_of(zeros.begin(), zeros.end(), [&](const SectorRun& zero) {
    return uint64_t{zero.first} + zero.count > list_sector;
  });
}

}  // namespace pawl
