#include "runtime/cluster/file_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/hash.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "PAWLPACK";
constexpr uint8_t kVersion = 1;
constexpr size_t kPiece = 1 << 20;
constexpr size_t kHeadBytes = kMagic.size() + 5;  // with the version and the size of the list

// SHA-256 over pieces: the hash of each is that of the hash before and the piece.
class Checksum {
 public:
  void add(BytesView piece) { sum_ = sha256(view(sum_), piece); }
  const Digest& end() const { return sum_; }

 private:
  Digest sum_{};
};

struct Packed {
  std::string name;
  uint64_t size = 0;
};

std::unexpected<Error> pack_io(std::string_view verb, const std::string& path) {
  return fail(Code::unavailable, "CHECKPOINT_IO",
              fmt::format("cannot {} {}: {}; check that the disk has space", verb, path,
                          std::strerror(errno)));
}

std::unexpected<Error> damaged(const std::string& pack, std::string_view how) {
  return fail(Code::corrupt, "CHECKPOINT_DAMAGED",
              fmt::format("{} is no whole checkpoint: {}; remove it from the archive, and an older "
                          "one is used",
                          pack, how));
}

Result<std::vector<Packed>> files_of(const std::string& folder) {
  std::vector<Packed> out;
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(folder, ec);
       !ec && it != fs::recursive_directory_iterator(); it.increment(ec))
    if (it->is_regular_file(ec))
      out.push_back({fs::relative(it->path(), folder, ec).string(), it->file_size(ec)});
  if (ec) return pack_io("read", folder);
  std::ranges::sort(out, {}, &Packed::name);
  return out;
}

Bytes head_of(const std::vector<Packed>& files, BytesView label) {
  Bytes list;
  Writer l(list);
  l.str(label);
  l.uint(files.size());
  for (const Packed& file : files) {
    l.str(file.name);
    l.uint(file.size);
  }
  Bytes out(kMagic);
  Writer w(out);
  w.u8(kVersion);
  w.fixed32(static_cast<uint32_t>(list.size()));
  return out + list;
}

// Names in a pack come from outside: they must stay below the folder.
bool safe(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

// Copies `size` bytes and adds them to the checksum.
bool copy(std::istream& in, std::ostream& out, uint64_t size, Checksum& sum) {
  Bytes piece;
  for (; size > 0; size -= piece.size()) {
    piece.resize(std::min<uint64_t>(size, kPiece));
    if (!in.read(piece.data(), static_cast<std::streamsize>(piece.size()))) return false;
    sum.add(piece);
    if (!out.write(piece.data(), static_cast<std::streamsize>(piece.size()))) return false;
  }
  return true;
}

}  // namespace

Result<void> pack_files(const std::string& folder, BytesView label, const std::string& to) {
  TRY(std::vector<Packed> files, files_of(folder));
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  const Bytes head = head_of(files, label);
  Checksum sum;
  sum.add(BytesView(head).substr(0, kHeadBytes));
  sum.add(BytesView(head).substr(kHeadBytes));
  if (!out.write(head.data(), static_cast<std::streamsize>(head.size())))
    return pack_io("write", to);
  for (const Packed& file : files) {
    std::ifstream in(folder + "/" + file.name, std::ios::binary);
    if (!in || !copy(in, out, file.size, sum)) return pack_io("copy", folder + "/" + file.name);
  }
  const Digest digest = sum.end();
  out.write(reinterpret_cast<const char*>(digest.data()), digest.size());
  out.close();
  if (!out) return pack_io("write", to);
  return {};
}

static Result<Bytes> unpack_into(const std::string& pack, const std::string& folder) {
  std::ifstream in(pack, std::ios::binary);
  Bytes head(kHeadBytes, '\0');
  if (!in.read(head.data(), static_cast<std::streamsize>(head.size())) || !head.starts_with(kMagic))
    return damaged(pack, "it does not begin as one");
  if (head[kMagic.size()] != static_cast<char>(kVersion))
    return fail(Code::unsupported, "CHECKPOINT_VERSION",
                fmt::format("{} was written by a newer version of pawl: use that one", pack));
  const uint32_t list_size = Reader(BytesView(head).substr(kMagic.size() + 1)).fixed32();
  std::error_code ec;
  if (list_size > fs::file_size(pack, ec)) return damaged(pack, "its list is cut off");
  Bytes list(list_size, '\0');
  if (!in.read(list.data(), list_size)) return damaged(pack, "its list is cut off");
  Checksum sum;
  sum.add(head);
  sum.add(list);
  Reader r(list);
  Bytes label(r.str());
  for (size_t count = r.count(); count-- > 0;) {
    const std::string name(r.str());
    const uint64_t size = r.uint();
    if (!r.ok() || !safe(name)) return damaged(pack, "its list is wrong");
    fs::create_directories(fs::path(folder + "/" + name).parent_path(), ec);
    std::ofstream out(folder + "/" + name, std::ios::binary | std::ios::trunc);
    if (!out) return pack_io("write", folder + "/" + name);
    if (!copy(in, out, size, sum)) return damaged(pack, "the files in it are cut off");
    out.close();
    if (!out) return pack_io("write", folder + "/" + name);
  }
  const Digest own = sum.end();
  Digest stored;
  if (!r.done() || !in.read(reinterpret_cast<char*>(stored.data()), stored.size()) ||
      stored != own || in.peek() != std::char_traits<char>::eof())
    return damaged(pack, "its checksum is another");
  return label;
}

Result<Bytes> unpack_files(const std::string& pack, const std::string& folder) {
  std::error_code ec;
  if (fs::exists(folder, ec))
    return fail(Code::conflict, "FOLDER_EXISTS",
                fmt::format("{} is there already: remove it first", folder));
  fs::create_directories(folder, ec);
  Result<Bytes> label = unpack_into(pack, folder);
  if (!label) fs::remove_all(folder, ec);
  return label;
}

}  // namespace pawl
