#pragma once
// Drift: an instance stands in a phase that its table does not declare, because the table has
// changed or an update went past it. It is told of once for each instance and phase, by whoever
// reads it first.

#include <mutex>
#include <optional>
#include <unordered_set>

#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

class Drifts {
 public:
  // The warning, the first time; nothing when the phase is declared or was told of before.
  std::optional<std::string> noticed(const dynamic_type& type, std::string_view id,
                                     std::string_view phase);

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> told_;
};

}  // namespace pawl::lifecycle
