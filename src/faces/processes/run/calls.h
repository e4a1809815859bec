#pragma once
// The effects between a CALL and its child, and their bodies.

#include "faces/processes/state/instance.h"
#include "kernel/effect.h"

namespace pawl::processes {

// Starts the child of a CALL.
struct CallCommand {
  std::string parent_id;
  uint32_t execution = 0;  // of the CALL
  bool waits = true;
  std::string definition_id;
  uint32_t version = 0;
  std::string business_key{};
  std::string variables{};  // JSON text
  uint32_t depth = 0;       // of the child; see Instance
  int32_t priority = 0;
  std::string fairness_key{};
};
Result<CallCommand> decode_call(BytesView bytes);
std::string call_effect_id(std::string_view execution_id);
Effect call_effect(const std::string& tenant, std::string_view execution_id,
                   const CallCommand& command);

// Tells the parent that its child may have ended.
struct ChildCommand {
  std::string parent_id;
  uint32_t execution = 0;  // of the CALL
  std::string child_id;
};
Result<ChildCommand> decode_child(BytesView bytes);
Effect child_ended_effect(const std::string& tenant, const ChildCommand& command);
// The same from the parent, which was suspended at `now`.
Effect recheck_effect(const std::string& tenant, std::string_view execution_id, Time now,
                      const ChildCommand& command);

// Cancels a child whose CALL was left.
struct CancelChildCommand {
  std::string child_id, parent_id;
};
Result<CancelChildCommand> decode_cancel_child(BytesView bytes);
Effect cancel_child_effect(const std::string& tenant, const std::string& child_id,
                           const std::string& parent_id);

}  // namespace pawl::processes
