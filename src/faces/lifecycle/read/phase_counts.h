#pragma once
// PhaseCounts knows how many instances of each type are in each phase. It counts the rows once and
// then applies the frames written since, so a call costs as much as was written since the last one.

#include <map>
#include <mutex>

#include "kernel/access.h"
#include "kernel/frame.h"

namespace pawl::lifecycle {

struct TypeCounts {
  std::map<std::string, size_t> by_phase;  // phases with at least one instance
  size_t unreadable = 0;
};

class PhaseCounts {
 public:
  explicit PhaseCounts(const KernelAccess& kernel) : kernel_(kernel) {}
  // Thread-safe; callers wait for one another while one of them counts.
  Result<TypeCounts> of(std::string_view tenant, std::string_view type);
  // How often all rows were counted, for tests.
  size_t recounts() const { return recounts_; }

 private:
  Result<void> recount(const ReadSnapshot& snapshot);
  // Returns false, and changes nothing, when counting all rows again is cheaper.
  Result<bool> apply_frames(const ReadSnapshot& snapshot);

  const KernelAccess& kernel_;
  std::mutex mutex_;
  // By tenant and type, escaped as in instance keys.
  std::map<std::string, TypeCounts> counts_;
  size_t total_ = 0;
  Seq counted_to_ = 0;  // the last frame that is counted
  bool counted_ = false;
  size_t recounts_ = 0;
};

}  // namespace pawl::lifecycle
