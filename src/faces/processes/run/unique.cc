// Unique business keys: the policy of a definition lets one instance have a key at a time, or ever.
// A cell holds the instance that has the key, so that two starts of one moment cannot both succeed.

#include "faces/processes/run/program.h"

namespace pawl::processes {

namespace {

std::unexpected<Error> taken(const Instance& holder) {
  return fail(Code::conflict, kKeyTaken,
              "business key \"" + holder.business_key + "\" of definition \"" +
                  holder.definition_id + "\" is taken by instance \"" + holder.id +
                  "\", which is " + std::string(status_name(holder.status)) +
                  ": use that instance or another key");
}

}  // namespace

Result<InstancePtr> TurnContext::key_holder(const Definition& definition,
                                            std::string_view business_key,
                                            std::string_view successor_of) {
  if (!definition.key_policy || business_key.empty()) return InstancePtr();
  TRY(Cell cell, turn.read(unique_key(tenant, definition.id, business_key)));
  if (!cell.exists()) return InstancePtr();
  TRY(auto holder, turn.read_as<Instance>(instance_key(tenant, cell.value()), decode_instance));
  if (!holder) return InstancePtr();
  const bool ended = is_final(holder->status);
  // A restart continues an instance that has ended, and takes over its key.
  if (ended && holder->id == successor_of) return InstancePtr();
  if (ended && definition.key_policy->unique == KeyPolicy::Unique::running) return InstancePtr();
  return holder;
}

Result<void> TurnContext::take_key(const Instance& instance, const Definition& definition) {
  TRY(InstancePtr holder, key_holder(definition, instance.business_key, instance.previous_id));
  if (holder && holder->id != instance.id) return taken(*holder);
  if (!holder && !instance.business_key.empty())
    turn.write(unique_key(tenant, definition.id, instance.business_key), instance.id);
  return {};
}

Result<void> TurnContext::release_key(const Instance& instance) {
  if (instance.business_key.empty()) return {};
  Key key = unique_key(tenant, instance.definition_id, instance.business_key);
  TRY(Cell cell, turn.read(key));
  if (cell.exists() && cell.value() == instance.id) turn.erase(key);
  return {};
}

Result<void> TurnContext::update_key(const Instance& instance, const Definition& definition,
                                     uint8_t status_before) {
  if (!definition.key_policy || instance.business_key.empty()) return {};
  const bool always = definition.key_policy->unique == KeyPolicy::Unique::always;
  const bool is_new = status_before == 0;
  const bool ran = !is_new && !is_final(static_cast<Status>(status_before));
  const bool runs = !is_final(instance.status);
  // A failed instance that goes on needs its key again.
  if ((runs && !ran) || (is_new && always)) return take_key(instance, definition);
  if (ran && !runs && !always) return release_key(instance);
  return {};
}

}  // namespace pawl::processes
