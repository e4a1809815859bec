// Retention: an instance that has ended is forgotten after a time, or by command. Its cell and all
// its rows are erased; the frames of the journal stay.

#include "faces/processes/definition/policies.h"
#include "faces/processes/run/program.h"
#include "faces/processes/state/job.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

std::optional<Duration> kept_for(const Retention& retention, Status status) {
  switch (status) {
    case Status::completed: return retention.completed;
    case Status::failed: return retention.failed;
    case Status::cancelled: return retention.cancelled;
    default: return std::nullopt;
  }
}

Result<Retention> decode_retention(BytesView bytes) {
  TRY(json::Value value, json::parse(bytes));
  Problems ignored;  // there are none: the value was accepted
  return read_retention(value, "", ignored, ignored);
}

}  // namespace

Result<void> TurnContext::update_retention(const Instance& instance, const Definition& definition,
                                           uint8_t status_before) {
  const Status before = static_cast<Status>(status_before);
  if (before == instance.status) return {};
  if (is_final(before)) turn.withdraw(retention_timer_id(tenant, instance.id, status_before));
  if (!is_final(instance.status)) return {};
  auto duration = kept_for(definition.retention, instance.status);
  if (!duration) {
    TRY(auto common, turn.read_as<Retention>(retention_key(tenant), decode_retention));
    if (common) duration = kept_for(*common, instance.status);
  }
  if (!duration) return {};
  turn.open({.id = retention_timer_id(tenant, instance.id, static_cast<uint8_t>(instance.status)),
             .to = To::clock,
             .program = std::string(kProgram),
             .tenant = tenant,
             .due = add(turn.now(), *duration)});
  return {};
}

Result<void> forget_instance(TurnContext& context, const Instance& instance) {
  const uint8_t status = static_cast<uint8_t>(instance.status);
  context.turn.withdraw(retention_timer_id(context.tenant, instance.id, status));
  TRY_OK(context.release_key(instance));
  TRY(auto definition, context.definition(instance.definition_id, instance.version));
  // The chain of the instance may wait for a definition that was not uploaded.
  if (Key awaited = awaited_key(context.tenant, definition->next_workflow, instance.id);
      !definition->next_workflow.empty()) {
    TRY(Cell cell, context.turn.read(awaited));
    if (cell.exists()) context.turn.erase(awaited);
  }
  Note note{.tenant = context.tenant,
            .instance_id = instance.id,
            .definition_id = instance.definition_id,
            .version = instance.version,
            .business_key = instance.business_key,
            .started = instance.started,
            .before = status,
            .after = kForgotten,
            .cause = context.input.verb,
            .user = context.input.caller.user,
            .reason = context.reason,
            .facts = {}};
  context.turn.note(encode(note));
  context.turn.erase(instance_key(context.tenant, instance.id));
  return {};
}

Result<Bytes> forget(TurnContext& context) {
  const std::string& id = context.input.body;
  TRY(auto instance, context.instance(id));
  if (!is_final(instance->status))
    return fail(Code::conflict, "INSTANCE_RUNS",
                "instance \"" + id + "\" is " + std::string(status_name(instance->status)) +
                    ": only an instance that has ended can be deleted; cancel it first");
  TRY_OK(forget_instance(context, *instance));
  return Bytes();
}

Result<Bytes> set_retention(TurnContext& context) {
  const Bytes& text = context.input.body;
  if (text == "{}")
    context.turn.erase(retention_key(context.tenant));
  else
    context.turn.write(retention_key(context.tenant), text);
  return text;
}

}  // namespace pawl::processes
