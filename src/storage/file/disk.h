#pragma once
// Disk holds the file operations that tests make fail: reads, writes and flushes. The functions
// below it open, read, write and replace files, and turn errno into an Error.

#include <sys/types.h>

#include <string>

#include "base/bytes.h"

namespace pawl {

class Disk {
 public:
  virtual ~Disk() = default;
  // These are pread(2), pwrite(2), fdatasync(2) and fsync(2): they return -1 and set errno on
  // failure.
  virtual ssize_t read_at(int fd, char* bytes, size_t size, uint64_t offset);
  virtual ssize_t write_at(int fd, const char* bytes, size_t size, uint64_t offset);
  virtual int flush(int fd);
  virtual int flush_folder(int fd);
};

// A disk whose flushes do nothing: data survives a crash of the process but not a power cut.
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

// The error JOURNAL_WRITE: "cannot write X: No space left on device (errno 28); ...".
Error write_error(std::string_view verb, const std::string& path, int error_number);

// Errors of the next two: JOURNAL_IO, with the code `not_found` when the file does not exist.
Result<File> open_file(const std::string& path, int flags);
// Returns fewer bytes than `size` only at the end of the file.
Result<Bytes> read_at(Disk& disk, int fd, const std::string& path, uint64_t offset, size_t size);

// Errors of the rest: JOURNAL_WRITE.
Result<void> write_all(Disk& disk, int fd, const std::string& path, BytesView bytes,
                       uint64_t offset);
Result<void> write_zeros(Disk& disk, int fd, const std::string& path, uint64_t from, uint64_t to);
// These write from the start of the file and flush after every 2 MiB. They serve background work: a
// flush of an append at the same time then waits for little of it.
Result<void> write_paced(Disk& disk, int fd, const std::string& path, BytesView bytes);
Result<void> write_zeros_paced(Disk& disk, int fd, const std::string& path, uint64_t to);
Result<void> flush_file(Disk& disk, int fd, const std::string& path);
Result<void> flush_folder(Disk& disk, const std::string& folder);
// Replaces the whole file: writes name.tmp, flushes, renames, flushes the folder. After a crash the
// file is the old one or the new one.
Result<void> replace_file(Disk& disk, const std::string& folder, const std::string& name,
                          BytesView bytes);
Result<void> rename_file(Disk& disk, const std::string& folder, const std::string& from,
                         const std::string& to);

}  // namespace pawl
