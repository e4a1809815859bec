#pragma once
// Drift: an instance is in a phase that its type does not declare, because the type has changed or
// an update bypassed the transitions table. Readers warn about it once for each instance and phase.

#include <mutex>
#include <optional>
#include <unordered_set>

#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

class DriftWarnings {
 public:
  // Returns the warning the first time; nothing when the phase is declared or was warned about.
  std::optional<std::string> warn_once(const dynamic_type& type, std::string_view id,
                                       std::string_view phase);

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> warned_;
};

}  // namespace pawl::lifecycle
