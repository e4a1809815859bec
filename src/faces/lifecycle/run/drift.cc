#include "faces/lifecycle/run/drift.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

std::optional<std::string> DriftWarnings::warn_once(const dynamic_type& type,
                                                    std::string_view id_text,
                                                    std::string_view phase_name) {
  if (type.declares(phase_name)) return std::nullopt;
  {
    std::lock_guard lock(mutex_);
    // Bounded memory is worth a repeated warning.
    if (warned_.size() >= limits::kRememberedDrifts) warned_.clear();
    if (!warned_.insert(fmt::format("{}\n{}\n{}", type.name, id_text, phase_name)).second)
      return std::nullopt;
  }
  return fmt::format("{} '{}' is in phase '{}', which is not declared; declared phases: {}",
                     type.name, id_text, phase_name, fmt::join(type.phases(), ", "));
}

}  // namespace pawl::lifecycle
