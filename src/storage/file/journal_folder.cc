#include "storage/file/journal_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "base/hash.h"

namespace pawl {
namespace {

constexpr BytesView kFirstMagic = "PAWLFST\n";
constexpr size_t kNameDigits = 20;

struct Ending {
  std::string_view text;
  bool SegmentFiles::*flag;
};
constexpr Ending kEndings[] = {
    {kPlainEnd, &SegmentFiles::plain},
    {kPackedEnd, &SegmentFiles::packed},
    {kSealEnd, &SegmentFiles::sealed},
};

std::optional<Seq> seq_of(std::string_view digits) {
  Seq seq = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seq);
  if (digits.size() != kNameDigits || error != std::errc() ||
      end != digits.data() + digits.size() || seq == 0) {
    return std::nullopt;
  }
  return seq;
}

}  // namespace

std::string segment_name(Seq first) { return fmt::format("{:020}", first); }

Result<FolderListing> list_folder(const std::string& folder) {
  FolderListing listing;
  std::map<Seq, SegmentFiles> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".tmp")) listing.unfinished.push_back(name);
    for (const Ending& ending : kEndings) {
      std::string extension = it->path().extension().string();
      if (extension != ending.text) continue;
      auto seq = seq_of(it->path().stem().string());
      if (!seq) {
        return fail(
            Code::corrupt, "JOURNAL_CORRUPT",
            fmt::format(
                "{}/{} is named like a segment but is none of this journal; move it elsewhere",
                folder, name));
      }
      found[*seq].first = *seq;
      found[*seq].*ending.flag = true;
    }
  }
  if (error) {
    return fail(
        Code::unavailable, "JOURNAL_IO",
        fmt::format("cannot list {}: {}; see that this user may read it", folder, error.message()));
  }
  for (auto& [seq, files] : found)
    listing.segments.push_back(files);
  return listing;
}

Result<File> lock_folder(const std::string& folder) {
  std::string path = folder + "/LOCK";
  TRY(File file, open_file(path, O_RDWR | O_CREAT));
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    auto owner = read_at(file.fd(), path, 0, 32);
    return fail(
        Code::conflict, "JOURNAL_LOCKED",
        fmt::format(
            "the journal in {} is in use by process {}; stop that process or choose another data "
            "folder",
            folder, owner && !owner->empty() ? *owner : "unknown"));
  }
  std::string owner = std::to_string(::getpid());
  Disk disk;
  if (::ftruncate(file.fd(), 0) != 0) return fail(write_error("write", path, errno));
  TRY_OK(write_all(disk, file.fd(), path, owner, 0));
  return file;
}

Result<std::optional<Seq>> read_first(const std::string& folder) {
  std::string path = folder + "/" + kFirstName;
  auto file = open_file(path, O_RDONLY);
  if (!file && file.error().code == Code::not_found) return std::optional<Seq>();
  if (!file) return fail(std::move(file).error());
  TRY(Bytes bytes, read_at(file->fd(), path, 0, 29));
  Reader reader(BytesView(bytes).substr(std::min(bytes.size(), kFirstMagic.size())));
  uint32_t version = reader.fixed32();
  reader.fixed32();
  Seq first = reader.fixed64();
  uint32_t crc = reader.fixed32();
  if (!reader.done() || version != 1 || !bytes.starts_with(kFirstMagic) ||
      crc != crc32c(BytesView(bytes).substr(0, 24))) {
    return fail(Code::corrupt, "JOURNAL_CORRUPT",
                fmt::format("{} is damaged: restore it from a backup with `pawl restore`", path));
  }
  return std::optional(first);
}

Result<void> write_first(Disk& disk, const std::string& folder, Seq first) {
  Bytes out(kFirstMagic);
  Writer writer(out);
  writer.fixed32(1);
  writer.fixed32(0);
  writer.fixed64(first);
  writer.fixed32(crc32c(out));
  return replace_file(disk, folder, kFirstName, out);
}

Result<SegmentHead> read_segment_head(const std::string& folder, const SegmentFiles& files) {
  std::string path =
      folder + "/" + segment_name(files.first) + (files.plain ? kPlainEnd : kPackedEnd);
  TRY(File file, open_file(path, O_RDONLY));
  TRY(Bytes bytes, read_at(file.fd(), path, 0, kSegmentHeadBytes));
  auto head = decode_segment_head(bytes);
  if (!head) return fail(damaged(path, 0, "a segment header that does not check", files.first - 1));
  if (head->version != 1) {
    return fail(Code::unsupported, "JOURNAL_VERSION",
                fmt::format("{} has version {} and this binary knows version 1: it was written by "
                            "a newer pawl; run "
                            "that one",
                            path, head->version));
  }
  if (head->first != files.first) {
    return fail(damaged(path, 0,
                        fmt::format("the header of the segment that begins with {}", head->first),
                        files.first - 1));
  }
  return *head;
}

Result<void> remove_files(Disk& disk, const std::string& folder,
                          const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::string path = folder + "/" + name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return fail(write_error("remove", path, errno));
  }
  return names.empty() ? Result<void>() : flush_folder(disk, folder);
}

}  // namespace pawl
