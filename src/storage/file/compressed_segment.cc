#include "storage/file/compressed_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zstd.h>

#include "base/hash.h"

namespace pawl {
namespace {

constexpr BytesView kMagic = "PAWLZST\n";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kChunkBytes = 64 * 1024;  // of the plain segment, in each chunk
constexpr size_t kTableHeaderBytes = 24;
constexpr int kCompressionLevel = 3;
// A plain segment larger than this (1 TiB) is not believed when the table is read.
constexpr uint64_t kMaxPlainBytes = uint64_t{1} << 40;

size_t chunk_count(uint64_t end) { return (end + kChunkBytes - 1) / kChunkBytes; }
// Size and checksum of each chunk, and the checksum of the table.
size_t rows_bytes(size_t chunks) { return chunks * 8 + 4; }

// A compressed chunk in the file.
struct Chunk {
  uint64_t offset = 0;
  uint32_t size = 0;
  uint32_t crc = 0;
};

class CompressedSegment final : public SegmentReader {
 public:
  CompressedSegment(Disk& disk, File file, std::string path, Seq first, uint64_t end,
                    std::vector<Chunk> chunks)
      : disk_(disk),
        file_(std::move(file)),
        path_(std::move(path)),
        first_(first),
        end_(end),
        chunks_(std::move(chunks)) {}

  Result<Bytes> at(uint64_t offset, size_t size) override {
    Bytes out;
    uint64_t until = std::min<uint64_t>(offset + size, end_);
    while (offset < until) {
      TRY_OK(load_chunk(offset / kChunkBytes));
      BytesView part = BytesView(plain_).substr(offset % kChunkBytes, until - offset);
      out.append(part);
      offset += part.size();
    }
    return out;
  }
  const std::string& path() const override { return path_; }

 private:
  // Decompresses a chunk into plain_, unless it is there already.
  Result<void> load_chunk(size_t index) {
    if (index == plain_index_) return {};
    const Chunk& chunk = chunks_[index];
    TRY(Bytes compressed, read_at(disk_, file_.fd(), path_, chunk.offset, chunk.size));
    size_t size = std::min(kChunkBytes, end_ - index * kChunkBytes);
    plain_index_ = kNoChunk;
    plain_.resize(size);
    bool valid = compressed.size() == chunk.size && crc32c(compressed) == chunk.crc &&
                 ZSTD_decompress(plain_.data(), size, compressed.data(), compressed.size()) == size;
    if (!valid)
      return fail(
          damaged(path_, chunk.offset, "a compressed chunk with a wrong checksum", first_ - 1));
    plain_index_ = index;
    return {};
  }

  static constexpr size_t kNoChunk = SIZE_MAX;

  Disk& disk_;
  File file_;
  std::string path_;
  Seq first_;
  uint64_t end_;
  std::vector<Chunk> chunks_;
  Bytes plain_;  // the chunk that was read last, decompressed
  size_t plain_index_ = kNoChunk;
};

}  // namespace

// The file is built in one buffer of about its final size, and one compression context serves every
// chunk: growing the buffer and creating contexts cost 5 % of all processor time on a busy server.
Result<uint64_t> write_compressed(Disk& disk, SegmentReader& plain, uint64_t end,
                                  const std::string& folder, const std::string& name) {
  TRY(Bytes out, plain.at(0, kSegmentHeaderBytes));
  const size_t count = chunk_count(end);
  const size_t table_offset = out.size();
  const size_t table_bytes = kTableHeaderBytes + rows_bytes(count);
  const size_t max_chunk = ZSTD_compressBound(kChunkBytes);
  out.reserve(table_offset + table_bytes + end / 2 + max_chunk);
  out.resize(table_offset + table_bytes);
  Bytes table(kMagic);
  table.reserve(table_bytes);
  Writer writer(table);
  writer.fixed32(kVersion);
  writer.fixed32(static_cast<uint32_t>(count));
  writer.fixed64(end);
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  CHECK(context);
  Bytes compressed(max_chunk, '\0');
  for (uint64_t at = 0; at < end; at += kChunkBytes) {
    size_t expected = std::min(kChunkBytes, end - at);
    TRY(Bytes chunk, plain.at(at, expected));
    if (chunk.size() != expected) return fail(damaged(plain.path(), at, "the end of the file", 0));
    size_t size = ZSTD_compressCCtx(context.get(), compressed.data(), compressed.size(),
                                    chunk.data(), chunk.size(), kCompressionLevel);
    CHECK(!ZSTD_isError(size));
    writer.fixed32(static_cast<uint32_t>(size));
    writer.fixed32(crc32c(BytesView(compressed).substr(0, size)));
    out.append(compressed, 0, size);
  }
  writer.fixed32(crc32c(table));
  CHECK(table.size() == table_bytes);
  out.replace(table_offset, table_bytes, table);
  TRY_OK(replace_file(disk, folder, name, out));
  return out.size();
}

Result<std::unique_ptr<SegmentReader>> open_compressed(Disk& disk, const std::string& path,
                                                       Seq first) {
  TRY(File file, open_file(path, O_RDONLY));
  TRY(Bytes header, read_at(disk, file.fd(), path, kSegmentHeaderBytes, kTableHeaderBytes));
  const Error bad = damaged(path, kSegmentHeaderBytes, "an invalid chunk table", first - 1);
  Reader reader(BytesView(header).substr(std::min(header.size(), kMagic.size())));
  uint32_t version = reader.fixed32();
  uint32_t count = reader.fixed32();
  uint64_t end = reader.fixed64();
  if (!reader.done() || !header.starts_with(kMagic) || version != kVersion) return fail(bad);
  if (chunk_count(end) != count || end > kMaxPlainBytes) return fail(bad);
  TRY(Bytes table,
      read_at(disk, file.fd(), path, kSegmentHeaderBytes + kTableHeaderBytes, rows_bytes(count)));
  if (table.size() != rows_bytes(count)) return fail(bad);
  Reader rows(table);
  std::vector<Chunk> chunks(count);
  uint64_t offset = kSegmentHeaderBytes + kTableHeaderBytes + table.size();
  for (Chunk& chunk : chunks) {
    chunk.offset = offset;
    chunk.size = rows.fixed32();
    chunk.crc = rows.fixed32();
    offset += chunk.size;
  }
  BytesView checked = BytesView(table).substr(0, table.size() - 4);
  if (rows.fixed32() != crc32c(checked, crc32c(header))) return fail(bad);
  return std::make_unique<CompressedSegment>(disk, std::move(file), path, first, end,
                                             std::move(chunks));
}

}  // namespace pawl
