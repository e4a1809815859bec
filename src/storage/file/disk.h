#pragma once
// The calls on files that a disk can fail. The real one goes to the kernel; tests bring one that
// fills up, writes half, or refuses to flush.

#include <sys/types.h>

#include <string>

#include "base/bytes.h"

namespace pawl {

class Disk {
 public:
  virtual ~Disk() = default;
  // As pwrite(2), fdatasync(2) and fsync(2): -1 and errno on failure.
  virtual ssize_t write_at(int fd, const char* bytes, size_t size, uint64_t offset);
  virtual int flush(int fd);
  virtual int flush_folder(int fd);
};

// For tests and throw-away journals only: nothing survives a power cut.
class UnflushedDisk final : public Disk {
 public:
  int flush(int) override { return 0; }
  int flush_folder(int) override { return 0; }
};

// A file descriptor that closes itself.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File();
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// What the system says went wrong, with its errno: "cannot write X: No space left on device; ...".
Error write_error(std::string_view verb, const std::string& path, int error_number);

Result<File> open_file(const std::string& path, int flags);  // unavailable JOURNAL_IO
Result<Bytes> read_at(int fd, const std::string& path, uint64_t offset,
                      size_t size);  // short at the end
Result<void> write_all(Disk& disk, int fd, const std::string& path, BytesView bytes,
                       uint64_t offset);
Result<void> write_zeros(Disk& disk, int fd, const std::string& path, uint64_t from, uint64_t to);
// As above, flushed, a step at a time: beside appends, so that none of their flushes waits for much
// of it.
Result<void> write_paced(Disk& disk, int fd, const std::string& path, BytesView bytes);
Result<void> write_zeros_paced(Disk& disk, int fd, const std::string& path, uint64_t to);
Result<void> flush_file(Disk& disk, int fd, const std::string& path);
Result<void> flush_folder(Disk& disk, const std::string& folder);
// The whole file at once: tmp, flush, rename, folder flush. After a crash it is the old or the new.
Result<void> replace_file(Disk& disk, const std::string& folder, const std::string& name,
                          BytesView bytes);
Result<void> rename_file(Disk& disk, const std::string& folder, const std::string& from,
                         const std::string& to);

}  // namespace pawl
