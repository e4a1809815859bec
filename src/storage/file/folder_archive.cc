// An archive in a folder. A file is copied to a temporary name, flushed, and linked to its final
// name, which fails when that name exists: so nobody ever sees half a file, and of two writers one
// is refused.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "storage/archive.h"
#include "storage/file/disk.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = 1 << 20;
constexpr std::string_view kPartial = ".partial-";

std::unexpected<Error> archive_error(std::string_view verb, const std::string& path, int number) {
  return fail(Code::unavailable, "ARCHIVE_IO",
              fmt::format("cannot {} {}: {}; check that the folder of the archive is there and has "
                          "space",
                          verb, path, std::strerror(number)));
}

Result<void> copy(const std::string& from, const std::string& to) {
  TRY(File in, open_file(from, O_RDONLY | O_CLOEXEC));
  File out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out.is_open()) return archive_error("write", to, errno);
  Disk disk;
  for (uint64_t at = 0;;) {
    TRY(Bytes piece, read_at(disk, in.fd(), from, at, kPiece));
    if (piece.empty()) break;
    TRY_OK(write_all(disk, out.fd(), to, piece, at));
    at += piece.size();
  }
  return flush_file(disk, out.fd(), to);
}

class FolderArchive final : public Archive {
 public:
  explicit FolderArchive(std::string folder) : folder_(std::move(folder)) {}

  Result<void> put(const std::string& name, const std::string& file) override {
    TRY_OK(check_archive_name(name));
    const fs::path final_path = path_of(name);
    std::error_code ec;
    fs::create_directories(final_path.parent_path(), ec);
    if (ec) return archive_error("make", final_path.parent_path(), ec.value());
    static std::atomic<unsigned> count = 0;
    const std::string partial =
        fmt::format("{}/{}{}-{}", final_path.parent_path().string(), kPartial, getpid(), ++count);
    Result<void> done = copy(file, partial);
    if (done && ::link(partial.c_str(), final_path.c_str()) != 0)
      done = errno == EEXIST ? Result<void>(fail(Code::conflict, kArchived,
                                                 fmt::format("the archive has {} already", name)))
                             : archive_error("write", final_path, errno);
    ::unlink(partial.c_str());
    Disk disk;
    if (done) done = flush_folder(disk, final_path.parent_path());
    return done;
  }

  Result<void> get(const std::string& name, const std::string& file) const override {
    TRY_OK(check_archive_name(name));
    std::error_code ec;
    if (!fs::exists(path_of(name), ec))
      return fail(Code::not_found, "NOT_ARCHIVED", fmt::format("the archive has no {}", name));
    return copy(path_of(name), file);
  }

  Result<std::vector<std::string>> list(const std::string& prefix) const override {
    std::vector<std::string> names;
    std::error_code ec;
    for (auto it = fs::recursive_directory_iterator(folder_, ec);
         !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
      if (!it->is_regular_file(ec)) continue;
      if (it->path().filename().string().starts_with(kPartial)) continue;
      std::string name = fs::relative(it->path(), folder_, ec).string();
      if (name.starts_with(prefix)) names.push_back(std::move(name));
    }
    if (ec) return archive_error("read", folder_, ec.value());
    std::ranges::sort(names);
    return names;
  }

  Result<void> remove(const std::string& name) override {
    TRY_OK(check_archive_name(name));
    if (::unlink(path_of(name).c_str()) == 0 || errno == ENOENT) return {};
    return archive_error("remove", path_of(name), errno);
  }

 private:
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
  const std::string folder_;
};

}  // namespace

Result<void> check_archive_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  };
  bool good = !name.empty() && std::ranges::all_of(name, allowed);
  for (size_t begin = 0; good && begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    good = !part.empty() && !part.starts_with('.');
    begin = end + 1;
  }
  if (good) return {};
  return fail(Code::invalid, "BAD_ARCHIVE_NAME",
              fmt::format("'{}' is no name of the archive: use letters, digits, '.', '_' and '-' "
                          "between slashes, and begin no part with a dot",
                          name));
}

Result<std::unique_ptr<Archive>> open_folder_archive(const std::string& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return archive_error("make", folder, ec.value());
  return std::make_unique<FolderArchive>(folder);
}

}  // namespace pawl
