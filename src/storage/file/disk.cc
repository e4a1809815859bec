#include "storage/file/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace pawl {
namespace {

// How much the paced writes write between two flushes.
constexpr uint64_t kPaceBytes = 2u << 20;

}  // namespace

ssize_t Disk::write_at(int fd, const char* bytes, size_t size, uint64_t offset) {
  return ::pwrite(fd, bytes, size, static_cast<off_t>(offset));
}
int Disk::flush(int fd) { return ::fdatasync(fd); }
int Disk::flush_folder(int fd) { return ::fsync(fd); }

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Error write_error(std::string_view verb, const std::string& path, int error_number) {
  return Error{
      Code::unavailable, "JOURNAL_WRITE",
      fmt::format("cannot {} {}: {} (errno {}); free space or repair the disk, then start again",
                  verb, path, std::strerror(error_number), error_number)};
}

Result<File> open_file(const std::string& path, int flags) {
  int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0640);
  if (fd < 0) {
    int error_number = errno;
    return fail(
        error_number == ENOENT ? Code::not_found : Code::unavailable, "JOURNAL_IO",
        fmt::format(
            "cannot open {}: {}; check that the folder exists and that this user may write there",
            path, std::strerror(error_number)));
  }
  return File(fd);
}

ssize_t Disk::read_at(int fd, char* bytes, size_t size, uint64_t offset) {
  return ::pread(fd, bytes, size, static_cast<off_t>(offset));
}

Result<Bytes> read_at(Disk& disk, int fd, const std::string& path, uint64_t offset, size_t size) {
  Bytes out;
  out.resize_and_overwrite(size, [](char*, size_t n) { return n; });
  size_t done = 0;
  while (done < size) {
    ssize_t n = disk.read_at(fd, out.data() + done, size - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return fail(
          Code::unavailable, "JOURNAL_IO",
          fmt::format("cannot read {} at byte {}: {}; repair the disk, or restore from a backup "
                      "with `pawl restore`",
                      path, offset + done, std::strerror(errno)));
    }
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  out.resize(done);
  return out;
}

Result<void> write_all(Disk& disk, int fd, const std::string& path, BytesView bytes,
                       uint64_t offset) {
  while (!bytes.empty()) {
    ssize_t n = disk.write_at(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(write_error("write", path, n == 0 ? ENOSPC : errno));
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Result<void> write_zeros(Disk& disk, int fd, const std::string& path, uint64_t from, uint64_t to) {
  static const Bytes zeros(1 << 20, '\0');
  while (from < to) {
    size_t step = std::min<uint64_t>(zeros.size(), to - from);
    TRY_OK(write_all(disk, fd, path, BytesView(zeros).substr(0, step), from));
    from += step;
  }
  return {};
}

Result<void> write_paced(Disk& disk, int fd, const std::string& path, BytesView bytes) {
  for (uint64_t at = 0; at < bytes.size(); at += kPaceBytes) {
    TRY_OK(write_all(disk, fd, path, bytes.substr(at, kPaceBytes), at));
    TRY_OK(flush_file(disk, fd, path));
  }
  return {};
}

Result<void> write_zeros_paced(Disk& disk, int fd, const std::string& path, uint64_t to) {
  for (uint64_t at = 0; at < to; at += kPaceBytes) {
    TRY_OK(write_zeros(disk, fd, path, at, std::min(at + kPaceBytes, to)));
    TRY_OK(flush_file(disk, fd, path));
  }
  return {};
}

Result<void> flush_file(Disk& disk, int fd, const std::string& path) {
  if (disk.flush(fd) != 0) return fail(write_error("flush", path, errno));
  return {};
}

Result<void> flush_folder(Disk& disk, const std::string& folder) {
  TRY(File file, open_file(folder, O_RDONLY | O_DIRECTORY));
  if (disk.flush_folder(file.fd()) != 0) return fail(write_error("flush", folder, errno));
  return {};
}

Result<void> rename_file(Disk& disk, const std::string& folder, const std::string& from,
                         const std::string& to) {
  if (::rename((folder + "/" + from).c_str(), (folder + "/" + to).c_str()) != 0) {
    return fail(write_error("rename", folder + "/" + from, errno));
  }
  return flush_folder(disk, folder);
}

Result<void> replace_file(Disk& disk, const std::string& folder, const std::string& name,
                          BytesView bytes) {
  std::string path = folder + "/" + name + ".tmp";
  TRY(File file, open_file(path, O_RDWR | O_CREAT | O_TRUNC));
  TRY_OK(write_paced(disk, file.fd(), path, bytes));
  return rename_file(disk, folder, name + ".tmp", name);
}

}  // namespace pawl
