#include "faces/processes/parked.h"

#include "faces/processes/service.h"
#include "faces/processes/state/job.h"
#include "faces/processes/state/limiter.h"

namespace pawl::processes {

std::optional<EffectOwner> owner_of(std::string_view effect_id) {
  constexpr std::string_view kChain = "processes:chain:";
  if (effect_id.starts_with(kChain))
    return EffectOwner{"", std::string(effect_id.substr(kChain.size())), "chain", 0};
  for (std::string_view kind :
       {"processes:call:", "processes:child:", "processes:recheck:", "processes:cancel:"}) {
    if (!effect_id.starts_with(kind)) continue;
    auto of = parse_ordinal_id(effect_id.substr(kind.size(), 26));
    if (!of) return std::nullopt;
    return EffectOwner{"", of->instance_id, "call", of->ordinal};
  }
  if (auto limiter = parse_limiter_timer(effect_id)) {
    auto job = parse_ordinal_id(limiter->effect_id.substr(0, limiter->effect_id.find('.')));
    if (!job) return std::nullopt;
    return EffectOwner{limiter->tenant, job->instance_id, "retry", job->ordinal};
  }
  if (auto kept = parse_retention_timer(effect_id))
    return EffectOwner{kept->tenant, kept->instance_id, "timer", 0};
  if (auto attempt = parse_attempt_timer(effect_id)) {
    auto job = parse_ordinal_id(attempt->job_id);
    if (!job) return std::nullopt;
    return EffectOwner{attempt->tenant, job->instance_id, "timer", job->ordinal};
  }
  if (effect_id.find(':') == std::string_view::npos) {
    auto job = parse_ordinal_id(effect_id.substr(0, effect_id.find('.')));
    if (!job) return std::nullopt;
    return EffectOwner{"", job->instance_id, "job", job->ordinal};
  }
  auto timer = parse_timer_effect_id(effect_id);
  auto execution = timer ? parse_ordinal_id(timer->execution_id) : std::nullopt;
  if (!execution) return std::nullopt;
  return EffectOwner{timer->tenant, execution->instance_id, "timer", execution->ordinal};
}

std::vector<Service::ParkedEffect> Service::parked(std::string_view tenant,
                                                   std::string_view instance_id) const {
  std::vector<ParkedEffect> out;
  if (!quarantine_.list) return out;
  for (const Quarantine::Parked& one : quarantine_.list()) {
    auto owner = owner_of(one.effect_id);
    if (!owner || (!owner->tenant.empty() && owner->tenant != tenant)) continue;
    if (!instance_id.empty() && owner->instance_id != instance_id) continue;
    auto found = instance(tenant, owner->instance_id);
    if (!found) continue;
    out.push_back({one.effect_id, owner->kind, owner->ordinal, one.since, *std::move(found)});
  }
  return out;
}

bool Service::is_listed(std::string_view tenant, const Instance& instance,
                        const InstanceFilter& filter) const {
  return fits(tenant, instance, filter);
}

Result<size_t> Service::release_parked(std::string_view tenant, std::string_view instance_id) {
  size_t released = 0;
  for (const ParkedEffect& one : parked(tenant, instance_id)) {
    auto done = quarantine_.release(one.effect_id);
    // Another retry has released it meanwhile.
    if (!done && done.error().code == Code::not_found) continue;
    TRY_OK(done);
    ++released;
  }
  return released;
}

}  // namespace pawl::processes
