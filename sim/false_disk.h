#pragma once
// The disk of a simulated world, below the real FileJournal. The files are real and lie in a folder
// of their own in memory (tmpfs); this class knows which of their bytes were flushed. A kill keeps
// everything that was written; a power cut keeps what was flushed, and of the rest some sectors.

#include <map>
#include <string>
#include <vector>

#include "sim/faults.h"
#include "sim/schedule.h"
#include "storage/file/disk.h"

namespace pawl::sim {

class FalseDisk final : public Disk {
 public:
  FalseDisk(Schedule& schedule, FaultCounts& counts);
  ~FalseDisk() override;
  const std::string& folder() const { return folder_; }
  // For small files beside the journal, which are durable when they are written.
  const std::string& side_folder() const { return side_folder_; }

  ssize_t read_at(int fd, char* bytes, size_t size, uint64_t offset) override;
  ssize_t write_at(int fd, const char* bytes, size_t size, uint64_t offset) override;
  int flush(int fd) override;
  int flush_folder(int fd) override;

  // A flush takes up to this long; the dice decide.
  Time max_flush = 2 * kMillisecond;
  bool full = false;
  bool fails_flushes = false;
  // Called before a read: true makes it fail.
  std::function<bool()> fails_read{};
  // A mutation: flushes return at once and nothing is durable.
  bool lies = false;
  // A mutation: a read that fails looks like the end of the file.
  bool hides_failed_reads = false;
  // Called while a flush waits: it may crash the world.
  std::function<void()> while_flushing{};
  // Called before the names of files are flushed: it may crash the world.
  std::function<void()> before_names{};

  // The process is dead: its further writes go nowhere. The files become what a new process finds.
  enum class Crash { kill, power_cut };
  void crash(Crash how);
  // After the dead process has let go of its files.
  void restore();
  // Between two processes: a bit changes in a file that is complete, so not in the newest segment.
  // Returns false when there is none. `mend` brings all files back as they were before.
  bool flip_a_bit();
  void mend();

 private:
  using Image = std::map<std::string, Bytes>;
  struct Write {
    uint64_t offset;
    Bytes before, after;
  };
  void tear(Bytes& file, const std::vector<Write>& writes);
  static Image read_files(const std::string& folder);
  static void write_files(const std::string& folder, const Image& image);
  std::map<uint64_t, std::string> names() const;  // by inode
  void undo_renames();

  Schedule& schedule_;
  FaultCounts& counts_;
  std::string folder_, side_folder_;
  std::map<uint64_t, std::vector<Write>> unflushed_;  // by inode
  bool dead_ = false;
  Image image_, side_image_;  // what a new process finds
  Image whole_;               // before a bit was flipped
  std::map<uint64_t, std::string> flushed_names_;
  // After a kill: bytes that a later power cut may still lose, by the name of the file.
  std::map<std::string, std::vector<Write>> in_page_cache_;
};

}  // namespace pawl::sim
