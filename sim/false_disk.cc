#include "sim/false_disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace pawl::sim {

namespace fs = std::filesystem;

// A disk writes whole sectors.
static constexpr size_t kSector = 512;

FalseDisk::FalseDisk(Schedule& schedule, FaultCounts& counts)
    : schedule_(schedule), counts_(counts) {
  const fs::path memory = "/dev/shm";
  for (std::string* folder : {&folder_, &side_folder_}) {
    *folder = (fs::exists(memory) ? memory : fs::temp_directory_path()) / "pawl-sim.XXXXXX";
    CHECK(::mkdtemp(folder->data()) != nullptr);
  }
}

FalseDisk::~FalseDisk() {
  std::error_code ignored;  // a folder that stays behind in memory harms nobody
  fs::remove_all(folder_, ignored);
  fs::remove_all(side_folder_, ignored);
}

static uint64_t inode_of(int fd) {
  struct stat found {};
  CHECK(::fstat(fd, &found) == 0);
  return found.st_ino;
}

static uint64_t inode_of(const std::string& path) {
  struct stat found {};
  CHECK(::stat(path.c_str(), &found) == 0);
  return found.st_ino;
}

ssize_t FalseDisk::read_at(int fd, char* bytes, size_t size, uint64_t offset) {
  if (!dead_ && fails_read && fails_read()) {
    ++counts_[Fault::failed_read];
    if (hides_failed_reads) return 0;
    errno = EIO;
    return -1;
  }
  return Disk::read_at(fd, bytes, size, offset);
}

ssize_t FalseDisk::write_at(int fd, const char* bytes, size_t size, uint64_t offset) {
  if (dead_) return static_cast<ssize_t>(size);
  if (full) {
    ++counts_[Fault::full_disk];
    errno = ENOSPC;
    return -1;
  }
  Write write{offset, Bytes(size, '\0'), Bytes(bytes, size)};
  const ssize_t had = ::pread(fd, write.before.data(), size, static_cast<off_t>(offset));
  CHECK(had >= 0);
  unflushed_[inode_of(fd)].push_back(std::move(write));
  return Disk::write_at(fd, bytes, size, offset);
}

int FalseDisk::flush(int fd) {
  if (dead_) return 0;
  if (fails_flushes) {
    ++counts_[Fault::failed_flush];
    errno = EIO;
    return -1;
  }
  if (lies) return 0;
  const uint64_t inode = inode_of(fd);
  if (while_flushing) while_flushing();
  const Time takes = static_cast<Time>(schedule_.roll(static_cast<uint64_t>(max_flush)));
  if (takes > 10 * kMillisecond) ++counts_[Fault::slow_disk];
  schedule_.meanwhile(takes);
  // The process may have died meanwhile; then nothing of this flush is sure.
  if (!dead_) unflushed_.erase(inode);
  return 0;
}

int FalseDisk::flush_folder(int) {
  if (dead_) return 0;
  if (before_names) before_names();
  if (!dead_) flushed_names_ = names();
  return 0;
}

std::map<uint64_t, std::string> FalseDisk::names() const {
  std::map<uint64_t, std::string> out;
  for (const auto& file : fs::directory_iterator(folder_))
    out[inode_of(file.path().string())] = file.path().filename().string();
  return out;
}

// A file whose new name was not flushed has its old name again, unless another file has that now.
void FalseDisk::undo_renames() {
  for (const auto& [inode, name] : names()) {
    auto before = flushed_names_.find(inode);
    if (before == flushed_names_.end() || before->second == name) continue;
    if (image_.contains(before->second) || !schedule_.chance(50)) continue;
    ++counts_[Fault::undone_rename];
    image_[before->second] = std::move(image_[name]);
    image_.erase(name);
  }
}

// Each sector of a write reached the disk or did not, in any order.
void FalseDisk::tear(Bytes& file, const std::vector<Write>& writes) {
  for (auto write = writes.rbegin(); write != writes.rend(); ++write)
    file.replace(write->offset, write->before.size(), write->before);
  for (const Write& write : writes) {
    const uint64_t fate = schedule_.roll(3);
    ++counts_[fate == 0 ? Fault::lost_write : fate == 1 ? Fault::kept_write : Fault::torn_write];
    if (fate == 0) continue;
    for (uint64_t at = write.offset; at < write.offset + write.after.size();) {
      const uint64_t end =
          std::min((at / kSector + 1) * kSector, write.offset + write.after.size());
      if (fate == 1 || schedule_.chance(50))
        file.replace(at, end - at, write.after, at - write.offset, end - at);
      at = end;
    }
  }
}

FalseDisk::Image FalseDisk::read_files(const std::string& folder) {
  Image image;
  for (const auto& file : fs::directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    image[file.path().filename().string()] = Bytes(std::istreambuf_iterator<char>(in), {});
  }
  image.erase("LOCK");
  return image;
}

void FalseDisk::crash(Crash how) {
  image_ = read_files(folder_);
  side_image_ = read_files(side_folder_);
  dead_ = true;
  for (auto& [name, bytes] : image_) {
    auto row = unflushed_.find(inode_of(folder_ + "/" + name));
    if (row == unflushed_.end()) continue;
    if (how == Crash::power_cut)
      tear(bytes, row->second);
    else
      in_page_cache_[name] = std::move(row->second);
  }
  unflushed_.clear();
  if (how == Crash::power_cut) undo_renames();
}

void FalseDisk::write_files(const std::string& folder, const Image& image) {
  for (const auto& file : fs::directory_iterator(folder))
    fs::remove(file.path());
  for (const auto& [name, bytes] : image)
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

bool FalseDisk::flip_a_bit() {
  whole_ = read_files(folder_);
  std::vector<std::string> complete;
  for (const auto& [name, bytes] : whole_)
    if (name.ends_with(".seg") && !bytes.empty()) complete.push_back(name);
  if (!complete.empty()) complete.pop_back();  // names are in the order of their entries
  if (complete.empty()) return false;
  const std::string& name = complete[schedule_.roll(complete.size())];
  Bytes bytes = whole_[name];
  bytes[schedule_.roll(bytes.size())] ^= static_cast<char>(1 << schedule_.roll(8));
  std::ofstream(folder_ + "/" + name, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ++counts_[Fault::flipped_bit];
  return true;
}

void FalseDisk::mend() {
  write_files(folder_, whole_);
  whole_.clear();
  flushed_names_ = names();
}

void FalseDisk::restore() {
  write_files(folder_, image_);
  write_files(side_folder_, side_image_);
  for (auto& [name, writes] : in_page_cache_)
    unflushed_[inode_of(folder_ + "/" + name)] = std::move(writes);
  image_.clear();
  side_image_.clear();
  in_page_cache_.clear();
  dead_ = false;
  full = fails_flushes = false;
  flushed_names_ = names();
}

}  // namespace pawl::sim
