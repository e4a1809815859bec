#include "runtime/quarantine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/bytes.h"

namespace pawl {

// The format of both files stands in docs/formats/quarantine.md.
struct Quarantine::Slot {
  uint64_t size;  // of the id; 0: no turn runs
  char id[kMaxIdBytes];
};

static std::unexpected<Error> file_error(const std::string& path) {
  return fail(Code::unavailable, "QUARANTINE_IO",
              "cannot use " + path + ": " + std::strerror(errno) +
                  "; check that this user may write there and that the disk has space");
}

Result<std::unique_ptr<Quarantine>> Quarantine::open(const std::string& folder, Time now) {
  std::unique_ptr<Quarantine> out(new Quarantine(folder));
  if (folder.empty()) return out;
  TRY_OK(out->load());
  TRY_OK(out->map_slot());
  std::lock_guard lock(out->mutex_);
  if (!out->in_doubt_.empty()) {
    Record& record = out->records_[out->in_doubt_];
    if (++record.strikes >= kStrikes && record.parked == 0) record.parked = now;
    TRY_OK(out->save());
    // Only now: a crash before this counts the strike again, and one strike too many does no harm.
    out->slot_->size = 0;
  }
  out->count();
  return out;
}

Quarantine::~Quarantine() {
  if (slot_) munmap(slot_, sizeof(Slot));
}

Result<void> Quarantine::map_slot() {
  const std::string path = folder_ + "/in-doubt";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(path);
  void* at = MAP_FAILED;
  // The pages are allocated here: a write to a page that does not fit on the disk is a SIGBUS.
  if (posix_fallocate(fd, 0, sizeof(Slot)) == 0)
    at = mmap(nullptr, sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) return file_error(path);
  slot_ = static_cast<Slot*>(at);
  if (slot_->size > 0 && slot_->size <= kMaxIdBytes) in_doubt_.assign(slot_->id, slot_->size);
  return {};
}

// One line for each record: strikes, parked since, and the id in hexadecimal.
Result<void> Quarantine::load() {
  std::ifstream in(folder_ + "/quarantine");
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    Record record;
    std::string id;
    if (!(words >> record.strikes >> record.parked >> id)) continue;
    if (auto bytes = unhex(id)) records_[std::move(*bytes)] = record;
  }
  return {};
}

Result<void> Quarantine::save() const {
  const std::string path = folder_ + "/quarantine";
  const std::string temporary = path + ".tmp";
  {
    std::ofstream out(temporary, std::ios::trunc);
    for (const auto& [id, record] : records_)
      out << record.strikes << ' ' << record.parked << ' ' << hex(id) << '\n';
    out.close();
    if (!out) return file_error(temporary);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return file_error(path);
  return {};
}

void Quarantine::count() {
  size_t parked = 0;
  for (const auto& [id, record] : records_)
    parked += record.parked != 0;
  parked_count_ = parked;
  has_strikes_ = records_.size() > parked;
}

void Quarantine::enter(std::string_view effect_id) {
  if (!slot_ || effect_id.size() > kMaxIdBytes) return;
  std::memcpy(slot_->id, effect_id.data(), effect_id.size());
  // The compiler must not move the size before the id or past the turn.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot_->size = effect_id.size();
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void Quarantine::leave() {
  if (!slot_ || slot_->size == 0) return;
  if (has_strikes_.load(std::memory_order_relaxed)) {
    std::lock_guard lock(mutex_);
    auto it = records_.find(std::string_view(slot_->id, slot_->size));
    if (it != records_.end() && it->second.parked == 0) {
      records_.erase(it);
      count();
      // If this fails, the strike is still counted at the next start.
      (void)save().has_value();
    }
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot_->size = 0;
}

std::vector<Quarantine::Parked> Quarantine::list() const {
  std::lock_guard lock(mutex_);
  std::vector<Parked> out;
  for (const auto& [id, record] : records_)
    if (record.parked != 0) out.push_back({id, record.parked});
  return out;
}

bool Quarantine::holds(std::string_view effect_id) const {
  if (size() == 0) return false;
  std::lock_guard lock(mutex_);
  auto it = records_.find(effect_id);
  return it != records_.end() && it->second.parked != 0;
}

Result<void> Quarantine::release(std::string_view effect_id) {
  std::lock_guard lock(mutex_);
  auto it = records_.find(effect_id);
  if (it == records_.end() || it->second.parked == 0)
    return fail(Code::not_found, "NOT_QUARANTINED",
                "the effect is not in quarantine: list them with `pawl quarantine list`");
  records_.erase(it);
  count();
  return save();
}

}  // namespace pawl
