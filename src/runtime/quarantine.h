#pragma once
// Quarantine recognises inputs that kill the process. A receipt whose turn crashes the server would
// be delivered again after every start: a crash loop. So the id of the effect that a turn settles
// stands in a memory-mapped file while the turn runs, and the file survives the process. An effect
// that stands there at two starts is parked: it is not delivered until an operator releases it.
//
// Commands of callers are not recorded, because the server does not repeat them. Thread-safe, but
// enter() and leave() belong to the one thread that drives the kernel.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace pawl {

// The effect is parked, so nothing can settle it.
inline constexpr Reason kQuarantined{"QUARANTINED"};

class Quarantine {
 public:
  // Starts at which an effect was being settled before it is parked.
  static constexpr uint64_t kStrikes = 2;
  // Longer ids are not recorded. No effect of ours comes near.
  static constexpr size_t kMaxIdBytes = 4000;

  // Reads what an earlier process left in the folder and counts its strike. With an empty folder
  // nothing is recorded.
  static Result<std::unique_ptr<Quarantine>> open(const std::string& folder, Time now);
  ~Quarantine();
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  void enter(std::string_view effect_id);
  // The turn is over and the process lives: earlier strikes of the effect are forgotten.
  void leave();

  struct Parked {
    std::string effect_id;
    Time since = 0;
  };
  std::vector<Parked> list() const;
  size_t size() const { return parked_count_.load(std::memory_order_relaxed); }
  bool holds(std::string_view effect_id) const;
  // `not_found` when the effect is not parked.
  Result<void> release(std::string_view effect_id);
  // The effect that the last process was settling when it ended; empty when it stopped well.
  const std::string& in_doubt() const { return in_doubt_; }

 private:
  struct Slot;  // the mapped file
  struct Record {
    uint64_t strikes = 0;
    Time parked = 0;  // since when; 0: not parked
  };
  explicit Quarantine(std::string folder) : folder_(std::move(folder)) {}
  Result<void> map_slot();
  Result<void> load();
  Result<void> save() const;  // the caller holds mutex_
  void count();               // the caller holds mutex_

  const std::string folder_;
  Slot* slot_ = nullptr;
  std::string in_doubt_;
  mutable std::mutex mutex_;
  std::map<std::string, Record, std::less<>> records_;
  std::atomic<size_t> parked_count_{0};
  std::atomic<bool> has_strikes_{false};
};

}  // namespace pawl
