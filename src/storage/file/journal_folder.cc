#include "storage/file/journal_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/hash.h"

namespace pawl {
namespace {

constexpr BytesView kFirstMagic = "PAWLFST\n";
constexpr size_t kNameDigits = 20;

struct Suffix {
  std::string_view text;
  bool SegmentFiles::*flag;
};
constexpr Suffix kSuffixes[] = {
    {kPlainSuffix, &SegmentFiles::plain},
    {kCompressedSuffix, &SegmentFiles::compressed},
    {kIndexSuffix, &SegmentFiles::indexed},
};

std::optional<Seq> parse_segment_name(std::string_view name) {
  if (name.size() != kNameDigits) return std::nullopt;
  Seq seq = 0;
  const char* name_end = name.data() + name.size();
  auto [end, error] = std::from_chars(name.data(), name_end, seq);
  if (error != std::errc() || end != name_end || seq == 0) return std::nullopt;
  return seq;
}

}  // namespace

std::string segment_name(Seq first) { return fmt::format("{:020}", first); }

void add_segment_files(std::vector<std::string>& names, Seq first) {
  for (const Suffix& suffix : kSuffixes)
    names.push_back(segment_name(first) + std::string(suffix.text));
}

Result<FolderListing> list_folder(const std::string& folder) {
  FolderListing listing;
  std::map<Seq, SegmentFiles> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".tmp")) listing.unfinished.push_back(name);
    for (const Suffix& suffix : kSuffixes) {
      if (it->path().extension().string() != suffix.text) continue;
      std::optional<Seq> seq = parse_segment_name(it->path().stem().string());
      if (!seq) {
        return fail(Code::corrupt, "JOURNAL_CORRUPT",
                    fmt::format("{}/{} has the suffix of a segment but is not a segment of this "
                                "journal; move it elsewhere",
                                folder, name));
      }
      found[*seq].first = *seq;
      found[*seq].*suffix.flag = true;
    }
  }
  if (error) {
    return fail(Code::unavailable, "JOURNAL_IO",
                fmt::format("cannot list {}: {}; check that this user may read it", folder,
                            error.message()));
  }
  for (auto& [seq, files] : found)
    listing.segments.push_back(files);
  return listing;
}

Result<File> lock_folder(const std::string& folder) {
  std::string path = folder + "/LOCK";
  TRY(File file, open_file(path, O_RDWR | O_CREAT));
  Disk disk;
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    auto owner = read_at(disk, file.fd(), path, 0, 32);
    return fail(
        Code::conflict, "JOURNAL_LOCKED",
        fmt::format(
            "the journal in {} is in use by process {}; stop that process or choose another data "
            "folder",
            folder, owner && !owner->empty() ? *owner : "unknown"));
  }
  std::string owner = std::to_string(::getpid());
  if (::ftruncate(file.fd(), 0) != 0) return fail(write_error("write", path, errno));
  TRY_OK(write_all(disk, file.fd(), path, owner, 0));
  return file;
}

Result<std::optional<Seq>> read_first_seq(Disk& disk, const std::string& folder) {
  std::string path = folder + "/" + kFirstSeqName;
  auto file = open_file(path, O_RDONLY);
  if (!file && file.error().code == Code::not_found) return std::optional<Seq>();
  if (!file) return fail(std::move(file).error());
  TRY(Bytes bytes, read_at(disk, file->fd(), path, 0, 29));
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

Result<void> write_first_seq(Disk& disk, const std::string& folder, Seq first) {
  Bytes out(kFirstMagic);
  Writer writer(out);
  writer.fixed32(1);
  writer.fixed32(0);
  writer.fixed64(first);
  writer.fixed32(crc32c(out));
  return replace_file(disk, folder, kFirstSeqName, out);
}

std::vector<std::string> read_loss_marks(const std::string& folder) {
  std::ifstream in(folder + "/" + kLossName);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

Result<void> add_loss_mark(Disk& disk, const std::string& folder, const std::string& line) {
  std::string text;
  for (const std::string& before : read_loss_marks(folder))
    text += before + "\n";
  return replace_file(disk, folder, kLossName, text + line + "\n");
}

Result<SegmentHeader> read_segment_header(Disk& disk, const std::string& folder,
                                          const SegmentFiles& files) {
  std::string path =
      folder + "/" + segment_name(files.first) + (files.plain ? kPlainSuffix : kCompressedSuffix);
  TRY(File file, open_file(path, O_RDONLY));
  TRY(Bytes bytes, read_at(disk, file.fd(), path, 0, kSegmentHeaderBytes));
  auto head = decode_segment_header(bytes);
  if (!head) return fail(damaged(path, 0, "a segment header that does not check", files.first - 1));
  if (head->version == 0 || head->version > kSegmentVersion) {
    return fail(Code::unsupported, "JOURNAL_VERSION",
                fmt::format("{} has version {} and this binary knows versions up to {}: it was "
                            "written by a newer pawl; run that one",
                            path, head->version, kSegmentVersion));
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
