#pragma once
// Effects in quarantine (runtime/quarantine.h), as the processes face sees them: each belongs to an
// instance, is among its incidents, and is delivered again when the instance is retried.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/quarantine.h"

namespace pawl::processes {

// How the face reaches the quarantine. Both are empty when there is none.
struct QuarantineAccess {
  std::function<std::vector<Quarantine::Parked>()> list{};
  std::function<Result<void>(std::string_view effect_id)> release{};
};

// The instance that an effect of this face belongs to; nothing for the timer of a limiter, which
// serves many instances, and for effects of other faces. `tenant` is empty when the id does not
// name it: then the instance must be looked up.
struct EffectOwner {
  std::string tenant, instance_id;
  std::string kind;      // "job", "timer", "retry" or "chain"
  uint32_t ordinal = 0;  // of the job or execution; 0 for a chain
};
std::optional<EffectOwner> owner_of(std::string_view effect_id);

}  // namespace pawl::processes
