#include "server/ops/backup_path.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace pawl::server {
namespace fs = std::filesystem;

namespace {

std::unexpected<Error> refused(const std::string& why) {
  return fail(Code::invalid, "BAD_BACKUP_PATH", why + "; name a new folder with ?to=NAME");
}

bool is_below(const fs::path& root, const fs::path& path) {
  auto [left, right] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return left == root.end();
}

}  // namespace

Result<std::string> backup_path(const std::string& root, std::string_view asked) {
  fs::path to(asked);
  std::error_code failed;
  if (to.empty() || asked.find('\0') != std::string_view::npos || !to.has_filename() ||
      to.filename() == ".")
    return refused("the backup has no name");
  if (std::find(to.begin(), to.end(), fs::path("..")) != to.end())
    return refused("the path of the backup must not contain '..'");
  if (!fs::exists(root, failed)) {
    fs::create_directories(fs::path(root).parent_path(), failed);
    mkdir(root.c_str(), 0700);
  }
  fs::path real_root = fs::canonical(root, failed);
  if (failed)
    return fail(Code::unavailable, "NO_BACKUP_DIR",
                "the backup folder " + root + " cannot be used: " + failed.message());
  if (to.is_relative()) to = real_root / to;
  // Links are resolved before the comparison, so a link inside the root does not lead out of it.
  fs::path parent = fs::canonical(to.parent_path(), failed);
  if (failed) return refused("the folder above " + to.string() + " does not exist");
  if (!is_below(real_root, parent))
    return refused(to.string() + " is outside of the backup folder " + root + " (--backup-dir)");
  fs::path path = parent / to.filename();
  if (fs::symlink_status(path, failed).type() != fs::file_type::not_found)
    return refused(path.string() + " exists already");
  return path.string();
}

}  // namespace pawl::server
