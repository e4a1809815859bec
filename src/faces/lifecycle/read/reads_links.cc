// The history of one instance, and the links between parents and children.

#include <fmt/format.h>

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/read/reads.h"
#include "faces/lifecycle/run/command.h"
#include "kernel/frame.h"

namespace pawl::lifecycle {

static constexpr std::string_view kProgram = "lifecycle";

static time_point at_time(Time t) {
  return time_point(std::chrono::duration_cast<time_point::duration>(std::chrono::nanoseconds(t)));
}

// A removal leaves no value in the cell. Its frame says who removed the instance, when and why.
static transition_event removal(const KernelAccess& kernel, Seq seq) {
  transition_event out;
  out.to = kDeleted;
  out.rev = seq;
  auto read = kernel.frames(seq, [&](const Frame& frame) -> Result<bool> {
    if (frame.seq != seq || frame.inputs.empty()) return false;
    out.at = at_time(frame.now());
    out.caller = frame.inputs[0].caller.user;
    if (auto command = decode_command(frame.inputs[0].body)) {
      out.triggered = command->triggered;
      out.note = command->note;
    }
    return false;
  });
  (void)read.has_value();  // When the journal is trimmed, the event has no time and no caller.
  return out;
}

// `from` of the first event is empty. After a removal it is kDeleted, when the id is created again.
Result<history_log> Reads::history(std::string_view tenant, const WorkflowType& type,
                                   std::string_view id_text) const {
  TRY_OK(check_id(id_text));
  std::vector<Cell> versions;
  TRY_OK(kernel_.snapshot().history(instance_key(tenant, type.def.name, id_text),
                                    [&](BytesView, const Cell& cell) {
                                      versions.push_back(cell);
                                      return true;
                                    }));
  if (versions.empty())
    return refuse(errc::entity_not_found, fmt::format("{} '{}'", type.def.name, id_text));
  history_log out;
  std::string last;
  // The kernel gives the newest version first.
  for (auto cell = versions.rbegin(); cell != versions.rend(); ++cell) {
    transition_event event;
    if (!cell->stored) {
      event = removal(kernel_, cell->version);
    } else {
      auto stored = decode_instance(cell->value());
      if (!stored) continue;
      // An update of fields is no event. An update that changed the phase is.
      if (!stored->event && stored->phase == last) continue;
      event = {{},
               std::string(stored->phase),
               at_time(stored->updated),
               stored->triggered,
               std::string(stored->note),
               std::string(stored->caller),
               cell->version};
    }
    event.from = last;
    last = event.to;
    out.events.push_back(std::move(event));
  }
  return out;
}

Result<TypedInstance> Reads::linked(std::string_view tenant, std::string_view type_name,
                                    std::string_view id_text) const {
  TypedInstance out;
  TRY(out.type, type(tenant, type_name));
  TRY(out.found, get(tenant, type_name, id_text));
  return out;
}

// Most instances have no parent, so an index would hardly be smaller than a scan of all.
Result<std::vector<TypedInstance>> Reads::roots(std::string_view tenant, size_t& skipped) const {
  TRY(std::vector<WorkflowTypePtr> all, types(tenant));
  std::vector<TypedInstance> out;
  for (const WorkflowTypePtr& type : all) {
    TRY(InstanceList listed, list(tenant, *type, {}));
    skipped += listed.skipped;
    for (FoundInstance& found : listed.items)
      if (found.stored.parent.empty()) out.push_back({type, std::move(found)});
  }
  return out;
}

Result<std::vector<TypedInstance>> Reads::children(std::string_view tenant,
                                                   std::string_view parent_id,
                                                   size_t& skipped) const {
  if (parent_id.empty()) return roots(tenant, skipped);
  std::vector<std::pair<std::string, std::string>> names;
  Bytes below = children_prefix(tenant, parent_id);
  TRY_OK(kernel_.snapshot().rows(kProgram, below, [&](BytesView key, BytesView) {
    std::string_view rest = key.substr(below.size());
    size_t zero_byte = rest.find('\0');
    names.emplace_back(unescaped(rest.substr(0, zero_byte)), unescaped(rest.substr(zero_byte + 1)));
    return true;
  }));
  std::vector<TypedInstance> out;
  for (const auto& [type_name, id_text] : names) {
    auto one = linked(tenant, type_name, id_text);
    errc why = one ? errc{} : errc_of(one.error());
    skipped += why == errc::corrupt_value;
    // Skips instances that cannot be decoded, were removed since the rows were read, or have moved
    // to another parent.
    if (why == errc::corrupt_value || why == errc::entity_not_found ||
        (one && one->found.stored.parent != parent_id))
      continue;
    if (!one) return fail(std::move(one.error()));
    out.push_back(std::move(*one));
  }
  return out;
}

Result<TypedInstance> Reads::lookup(std::string_view tenant, std::string_view id_text) const {
  TRY_OK(check_id(id_text));
  std::vector<std::string> types;
  Bytes below = lookup_prefix(tenant, id_text);
  TRY_OK(kernel_.snapshot().rows(kProgram, below, [&](BytesView key, BytesView) {
    types.push_back(unescaped(key.substr(below.size())));
    return true;
  }));
  if (types.empty())
    return refuse(errc::entity_not_found, fmt::format("'{}' is in no workflow", id_text));
  if (types.size() > 1)
    return refuse(errc::ambiguous_id, fmt::format("'{}' is a {} and a {}: name the workflow",
                                                  id_text, types[0], types[1]));
  return linked(tenant, types[0], id_text);
}

Result<std::vector<TypedInstance>> Reads::ancestors(std::string_view tenant,
                                                    std::string_view id_text,
                                                    std::string& warning) const {
  TRY(TypedInstance at, lookup(tenant, id_text));
  std::vector<TypedInstance> out;
  std::set<std::string, std::less<>> seen{std::string(id_text)};
  while (!at.found.stored.parent.empty()) {
    std::string up(at.found.stored.parent);
    if (!seen.insert(up).second)
      return refuse(errc::parent_cycle,
                    fmt::format("'{}' is among its own ancestors: change the parent of '{}'", up,
                                at.found.id));
    if (out.size() >= limits::kAncestors)
      return refuse(errc::parent_cycle,
                    fmt::format("'{}' has more than {} ancestors", id_text, limits::kAncestors));
    auto parent_found = lookup(tenant, up);
    if (!parent_found && errc_of(parent_found.error()) == errc::entity_not_found) {
      warning = fmt::format("ancestors of '{}' end at '{}': its parent '{}' does not exist",
                            id_text, at.found.id, up);
      return out;
    }
    if (!parent_found) return fail(std::move(parent_found.error()));
    at = *parent_found;
    out.push_back(std::move(*parent_found));
  }
  return out;
}

Result<std::string> Reads::substitute(std::string_view tenant, std::string_view id_text,
                                      std::string_view text, Variables variables) const {
  variables.entity_id = id_text;
  variables.now = kernel_.now();
  variables.lookup = [&]() -> std::shared_ptr<const ManagedEntity> {
    auto found = lookup(tenant, id_text);
    if (!found) return nullptr;
    return std::make_shared<const ManagedEntity>(
        ManagedEntity{found->type, std::string(found->found.stored.phase)});
  };
  return lifecycle::substitute(text, variables).text;
}

}  // namespace pawl::lifecycle
