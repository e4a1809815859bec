#pragma once
// How many instances of each type stand in each phase. Counted once from the rows, then brought
// forward by the frames since: an answer costs what was written between two questions, not what
// there is.

#include <map>
#include <mutex>

#include "kernel/access.h"
#include "kernel/frame.h"

namespace pawl::lifecycle {

struct Counts {
  std::map<std::string, size_t> by_phase;  // phases in use only
  size_t unreadable = 0;
};

class Tally {
 public:
  explicit Tally(const KernelAccess& kernel) : kernel_(kernel) {}
  Result<Counts> of(std::string_view tenant, std::string_view type);
  // How often everything was counted anew, for tests.
  size_t recounts() const { return recounts_; }

 private:
  Result<void> recount(const ReadSnapshot& snapshot);
  Result<bool> bring_forward(const ReadSnapshot& snapshot);  // false: counting anew is cheaper

  const KernelAccess& kernel_;
  std::mutex mutex_;
  // By tenant and type as instance keys spell them.
  std::map<std::string, Counts> counts_;
  size_t total_ = 0;
  Seq upto_ = 0;  // counted up to this frame
  bool counted_ = false;
  size_t recounts_ = 0;
};

}  // namespace pawl::lifecycle
