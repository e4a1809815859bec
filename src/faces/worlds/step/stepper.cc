#include "faces/worlds/step/stepper.h"

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/internal_effects.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> bad_output(const std::string& why) {
  return fail(Code::unprocessable, "workflow.output_invalid", "invalid workflow output: " + why);
}

}  // namespace

struct Stepper::StagedStep {
  std::optional<Bytes> state;
  bool completed = false;
  std::vector<PreparedEvent> events{};
  std::vector<PendingIntent> intents{};
};

Result<void> Stepper::drain() {
  TurnBudget& used = turn_.budget;
  while (!turn_.mail.empty() && turn_.has_fuel() && used.steps < kMaxStepsPerTurn &&
         used.fuel <= 4 * turn_.world().limits.fuel && used.bytes < kMaxBytesPerTurn) {
    ++used.steps;
    ++turn_.head.chain;
    TRY_OK(step(turn_.mail.pop()));
  }
  return {};
}

Result<void> Stepper::drain_fully() {
  while (!turn_.mail.empty()) {
    TRY_OK(turn_.check_fuel());
    turn_.budget = {};
    TRY_OK(drain());
  }
  turn_.next_input();
  return {};
}

Result<void> Stepper::step(Delivery item) {
  TRY(CellEdit cell, turn_.read_cell(*item.workflow, item.key()));
  ++turn_.head.steps;
  auto output = call(item, cell);
  if (!output && is_server_error(output.error())) return fail(std::move(output.error()));
  if (!output) return fail_step(item, std::move(cell), output.error());
  auto decoded = decode_output(*output);
  if (!decoded) return fail_step(item, std::move(cell), decoded.error());
  auto staged = stage(item, *decoded);
  if (!staged && is_server_error(staged.error())) return fail(std::move(staged.error()));
  if (!staged) return fail_step(item, std::move(cell), staged.error());
  return commit(item, std::move(cell), std::move(*staged));
}

// The module's bytes must be in this store. A module that was compiled for another world would run
// here without them, and a rerun on another server could not.
Result<void> Stepper::check_artifact(const Module& module) const {
  if (module.def.runtime != "wasm" || module.def.artifact == kNoHash ||
      turn_.runtime.modules.version_of(module) != module.def.artifact)
    return {};
  TRY(Bytes digest, parse_hash(module.def.artifact));
  TRY(bool there, turn_.blobs.has(digest));
  if (there) return {};
  return fail(Code::unprocessable, "store.error",
              "missing_cas_dependency: module '" + module.def.name + "' is " + module.def.artifact +
                  ", which is not in the store: PUT it to /v1/cas/blobs");
}

Result<Bytes> Stepper::call(const Delivery& item, const CellEdit& cell) {
  const Workflow& w = *item.workflow;
  TRY_OK(check_artifact(*w.module));
  std::optional<Bytes> context;
  if (!w.def.context.empty()) {
    context =
        encode_context({item.moment, event_hash(item.event), w.def.name, w.hash, item.event.key});
  }
  wasm::UsedFuel used;
  auto ran = turn_.runtime.modules.run(
      *w.module, w.def.impl.entrypoint, encode_input(cell.now.state, item.event, context),
      turn_.step_limits(), [&] { return turn_.fetch(*w.module); }, used);
  turn_.use_fuel(used.fuel);
  if (!ran) {
    Error error = std::move(ran.error());
    if (is_server_error(error)) return fail(std::move(error));
    error.message = "workflow '" + w.def.name + "' failed while handling schema '" +
                    item.event.schema + "' journal_height=" + std::to_string(item.moment.height) +
                    " state_present=" + (cell.now.state ? "true" : "false") + ": " + error.message;
    return fail(std::move(error));
  }
  // Only steps that succeed count here: journals record how many steps a turn has taken.
  turn_.budget.fuel += used.fuel;
  turn_.budget.bytes += ran->size();
  return ran;
}

Result<Stepper::StagedStep> Stepper::stage(const Delivery& item, const StepOutput& output) const {
  TRY_OK(check_limits(output));
  StagedStep out;
  out.completed = output.completed;
  TRY_OK(stage_state(*item.workflow, output, out));
  TRY_OK(stage_events(output, out));
  for (size_t i = 0; i < output.effects.size(); ++i) {
    TRY(PendingIntent intent, intents_.prepare(item, output.effects[i], i));
    out.intents.push_back(std::move(intent));
  }
  return out;
}

Result<void> Stepper::stage_state(const Workflow& w, const StepOutput& output,
                                  StagedStep& out) const {
  out.state = output.state;
  if (!output.state || !turn_.world().check_state) return {};
  auto state = normalize_bytes(*output.state, *w.state, turn_.loaded().schemas);
  if (!state)
    return bad_output("state of workflow '" + w.def.name + "' does not fit schema '" + w.def.state +
                      "': " + state.error().message);
  out.state = std::move(*state);
  return {};
}

Result<void> Stepper::stage_events(const StepOutput& output, StagedStep& out) const {
  if (!output.events.empty() && turn_.head.chain > kMaxStepsPerInput)
    return bad_output("more than " + std::to_string(kMaxStepsPerInput) +
                      " steps follow from one input: the workflows wake each other without end");
  size_t waiting = turn_.mail.bytes();
  for (const Event& event : output.events) {
    auto prepared = router_.prepare(event);
    if (!prepared && prepared.error().is(kForgedEvent)) return bad_output(prepared.error().message);
    if (!prepared) return fail(std::move(prepared.error()));
    for (const auto& [workflow, delivered] : prepared->deliveries)
      waiting += waiting_bytes(*workflow, delivered);
    if (waiting > kMaxWaitingBytes)
      return bad_output("more than " + std::to_string(kMaxWaitingBytes) +
                        " bytes of events would wait for their steps");
    out.events.push_back(std::move(*prepared));
  }
  return {};
}

static InstanceStatus status_after(const Instance& instance, bool ends) {
  if (!instance.inflight.empty()) return InstanceStatus::waiting;
  if (ends) return InstanceStatus::completed;
  return instance.status == InstanceStatus::failed ? InstanceStatus::failed
                                                   : InstanceStatus::running;
}

Result<void> Stepper::commit(const Delivery& item, CellEdit cell, StagedStep staged) {
  // An internal effect of this step may apply another manifest; the workflow must outlive it.
  const auto keep = turn_.shared_manifest();
  const Workflow& w = *item.workflow;
  Instance& now = cell.now;
  const bool ends = !staged.state || staged.completed;
  now.state = std::move(staged.state);
  now.last_seq = item.moment.height;
  now.module_version = turn_.runtime.modules.version_of(*w.module);
  if (ends) intents_.drop_all(cell);  // before this step's own intents, which stay
  for (PreparedEvent& event : staged.events)
    TRY_OK(router_.admit(std::move(event)));
  std::vector<const PendingIntent*> internal;
  for (const PendingIntent& intent : staged.intents) {
    if (!is_internal_effect(intent.identity.effect)) {
      TRY_OK(intents_.open(intent, cell));
      continue;
    }
    TRY_OK(intents_.record(intent));
    internal.push_back(&intent);
  }
  now.status = status_after(now, ends);
  turn_.save(w.def.name, item.key(), std::move(cell));
  for (const PendingIntent* intent : internal)
    TRY_OK(internal_.answer(*intent));
  return {};
}

Result<void> Stepper::fail_step(const Delivery& item, CellEdit cell, const Error& why) {
  const Workflow& w = *item.workflow;
  ++turn_.head.steps_failed;
  StepFailure failure{w.def.name,
                      why.reason,
                      why.message,
                      event_hash(item.event),
                      item.event.key,
                      item.moment.height,
                      cell.now.state.has_value()};
  cell.now.status = InstanceStatus::failed;
  cell.now.last_seq = item.moment.height;
  cell.now.failure = why.reason + ": " + why.message;
  turn_.save(w.def.name, item.key(), std::move(cell));
  return turn_.record(step_failed_record(failure), {{"c", cell_name(w.def.name, item.key())}});
}

}  // namespace pawl::worlds
