#include "storage/file/packed_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zstd.h>

#include "base/hash.h"

namespace pawl {
namespace {

constexpr BytesView kMagic = "PAWLZST\n";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kChunk = 64 * 1024;
constexpr size_t kTableHead = 24;
constexpr int kLevel = 3;

struct Chunk {
  uint64_t offset = 0;
  uint32_t size = 0;
  uint32_t crc = 0;
};

class PackedBytes final : public SegmentBytes {
 public:
  PackedBytes(File file, std::string path, Seq first, uint64_t end, std::vector<Chunk> chunks)
      : file_(std::move(file)),
        path_(std::move(path)),
        first_(first),
        end_(end),
        chunks_(std::move(chunks)) {}

  Result<Bytes> at(uint64_t offset, size_t size) override {
    Bytes out;
    uint64_t until = std::min<uint64_t>(offset + size, end_);
    while (offset < until) {
      TRY_OK(unpack(offset / kChunk));
      BytesView part = BytesView(unpacked_).substr(offset % kChunk, until - offset);
      out.append(part);
      offset += part.size();
    }
    return out;
  }
  const std::string& path() const override { return path_; }

 private:
  Result<void> unpack(size_t index) {
    if (index == unpacked_index_) return {};
    const Chunk& chunk = chunks_[index];
    TRY(Bytes packed, read_at(file_.fd(), path_, chunk.offset, chunk.size));
    size_t want = std::min(kChunk, end_ - index * kChunk);
    unpacked_index_ = SIZE_MAX;
    unpacked_.resize(want);
    bool good = packed.size() == chunk.size && crc32c(packed) == chunk.crc &&
                ZSTD_decompress(unpacked_.data(), want, packed.data(), packed.size()) == want;
    if (!good)
      return fail(damaged(path_, chunk.offset, "a packed chunk that does not check", first_ - 1));
    unpacked_index_ = index;
    return {};
  }

  File file_;
  std::string path_;
  Seq first_;
  uint64_t end_;
  std::vector<Chunk> chunks_;
  Bytes unpacked_;
  size_t unpacked_index_ = SIZE_MAX;
};

}  // namespace

// The file is made in one piece of memory, each page of it written once: growing it, and a context
// for each chunk, cost a twentieth of all processor time while a world was busy.
Result<uint64_t> write_packed(Disk& disk, SegmentBytes& plain, uint64_t end,
                              const std::string& folder, const std::string& name) {
  TRY(Bytes out, plain.at(0, kSegmentHeadBytes));
  const uint32_t count = static_cast<uint32_t>((end + kChunk - 1) / kChunk);
  const size_t table_bytes = kTableHead + size_t{count} * 8 + 4, table_at = out.size();
  const size_t bound = ZSTD_compressBound(kChunk);
  out.reserve(table_at + table_bytes + end / 2 + bound);
  out.resize(table_at + table_bytes);
  Bytes table(kMagic);
  table.reserve(table_bytes);
  Writer writer(table);
  writer.fixed32(kVersion);
  writer.fixed32(count);
  writer.fixed64(end);
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  CHECK(context);
  Bytes packed(bound, '\0');
  for (uint64_t at = 0; at < end; at += kChunk) {
    size_t want = std::min(kChunk, end - at);
    TRY(Bytes chunk, plain.at(at, want));
    if (chunk.size() != want) return fail(damaged(plain.path(), at, "the end of the file", 0));
    size_t size = ZSTD_compressCCtx(context.get(), packed.data(), packed.size(), chunk.data(),
                                    chunk.size(), kLevel);
    CHECK(!ZSTD_isError(size));
    writer.fixed32(static_cast<uint32_t>(size));
    writer.fixed32(crc32c(BytesView(packed).substr(0, size)));
    out.append(packed, 0, size);
  }
  writer.fixed32(crc32c(table));
  CHECK(table.size() == table_bytes);
  out.replace(table_at, table_bytes, table);
  TRY_OK(replace_file(disk, folder, name, out));
  return out.size();
}

Result<std::unique_ptr<SegmentBytes>> open_packed(const std::string& path, Seq first) {
  TRY(File file, open_file(path, O_RDONLY));
  TRY(Bytes head, read_at(file.fd(), path, kSegmentHeadBytes, kTableHead));
  Error bad = damaged(path, kSegmentHeadBytes, "a chunk table that does not check", first - 1);
  Reader reader(BytesView(head).substr(std::min(head.size(), kMagic.size())));
  uint32_t version = reader.fixed32();
  uint32_t count = reader.fixed32();
  uint64_t end = reader.fixed64();
  if (!reader.done() || !head.starts_with(kMagic) || version != kVersion ||
      (end + kChunk - 1) / kChunk != count || end > (uint64_t{1} << 40)) {
    return fail(bad);
  }
  TRY(Bytes table, read_at(file.fd(), path, kSegmentHeadBytes + kTableHead, size_t{count} * 8 + 4));
  if (table.size() != size_t{count} * 8 + 4) return fail(bad);
  Reader rows(table);
  std::vector<Chunk> chunks(count);
  uint64_t offset = kSegmentHeadBytes + kTableHead + table.size();
  for (Chunk& chunk : chunks) {
    chunk.offset = offset;
    chunk.size = rows.fixed32();
    chunk.crc = rows.fixed32();
    offset += chunk.size;
  }
  if (rows.fixed32() != crc32c(BytesView(table).substr(0, table.size() - 4), crc32c(head)))
    return fail(bad);
  return std::make_unique<PackedBytes>(std::move(file), path, first, end, std::move(chunks));
}

}  // namespace pawl
