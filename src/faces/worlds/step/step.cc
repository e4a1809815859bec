// One step: a cell's state and one event go into its module; state, events and effects come out,
// are checked as a whole, and only then written. What does not pass is a `step_failed` record.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"

namespace pawl::worlds {

struct Engine::Staged {
  std::optional<Bytes> state;
  bool completed = false;
  std::vector<Prepared> events{};
  std::vector<Pending> effects{};
};

Result<void> Engine::drain() {
  while (!mail_.empty() && steps_ < kStepsPerTurn && fuel_ <= 4 * world_->limits.fuel &&
         bytes_ < kBytesPerTurn) {
    ++steps_;
    ++head_.chain;
    TRY_OK(step(mail_.pop()));
  }
  return {};
}

Result<void> Engine::go_on() { return drain(); }

Result<void> Engine::finish() {
  while (!mail_.empty()) {
    steps_ = 0, fuel_ = 0, bytes_ = 0;
    TRY_OK(drain());
  }
  next_input();
  return {};
}

Result<void> Engine::step(Delivery item) {
  const Workflow& w = *item.workflow;
  TRY(Cells cells, read_cell(w, item.key()));
  ++head_.steps;
  auto output = call(item, cells);
  if (!output && is_ours(output.error())) return fail(std::move(output.error()));
  if (!output) return fail_step(item, std::move(cells), output.error());
  auto decoded = decode_output(*output);
  if (!decoded) return fail_step(item, std::move(cells), decoded.error());
  auto staged = stage(item, *decoded);
  if (!staged && is_ours(staged.error())) return fail(std::move(staged.error()));
  if (!staged) return fail_step(item, std::move(cells), staged.error());
  return commit(item, std::move(cells), std::move(*staged));
}

// A module compiled before, for another world, would run without its bytes here; a rerun elsewhere
// could not. So the bytes must be in this store.
Result<void> Engine::check_artifact(const Module& module) const {
  if (module.def.runtime != "wasm" || module.def.artifact == kNoHash ||
      runtime_.modules.version_of(module) != module.def.artifact)
    return {};
  TRY(Bytes digest, parse_hash(module.def.artifact));
  TRY(bool there, blobs_.has(digest));
  if (there) return {};
  return fail(Code::unprocessable, "store.error",
              "missing_cas_dependency: module '" + module.def.name + "' is " + module.def.artifact +
                  ", which is not in the store: PUT it to /v1/cas/blobs");
}

Result<Bytes> Engine::call(const Delivery& item, const Cells& cells) {
  const Workflow& w = *item.workflow;
  TRY_OK(check_artifact(*w.module));
  std::optional<Bytes> context;
  if (!w.def.context.empty()) {
    context =
        encode_context({item.moment, event_hash(item.event), w.def.name, w.hash, item.event.key});
  }
  auto ran = runtime_.modules.run(*w.module, w.def.impl.entrypoint,
                                  encode_input(cells.now.state, item.event, context),
                                  world_->limits, [&] { return fetch(*w.module); });
  if (!ran) {
    Error error = std::move(ran.error());
    if (is_ours(error)) return fail(std::move(error));
    error.message = "workflow '" + w.def.name + "' failed while handling schema '" +
                    item.event.schema + "' journal_height=" + std::to_string(item.moment.height) +
                    " state_present=" + (cells.now.state ? "true" : "false") + ": " + error.message;
    return fail(std::move(error));
  }
  fuel_ += ran->fuel;
  bytes_ += ran->output.size();
  return std::move(ran->output);
}

Result<Engine::Staged> Engine::stage(const Delivery& item, const StepOutput& output) const {
  TRY_OK(check_limits(output));
  const Workflow& w = *item.workflow;
  Staged out;
  out.completed = output.completed;
  out.state = output.state;
  if (output.state && world_->check_state) {
    auto state = normalize_bytes(*output.state, *w.state, loaded_->schemas);
    if (!state)
      return fail(Code::unprocessable, "workflow.output_invalid",
                  "invalid workflow output: state of workflow '" + w.def.name +
                      "' does not fit schema '" + w.def.state + "': " + state.error().message);
    out.state = std::move(*state);
  }
  if (!output.events.empty() && head_.chain > kStepsPerInput)
    return fail(Code::unprocessable, "workflow.output_invalid",
                "invalid workflow output: more than " + std::to_string(kStepsPerInput) +
                    " steps follow from one input: the workflows wake each other without end");
  size_t waits = mail_.bytes();
  for (const Event& event : output.events) {
    auto prepared = prepare(event);
    if (!prepared && prepared.error().reason == "invalid_request")
      return fail(Code::unprocessable, "workflow.output_invalid",
                  "invalid workflow output: " + prepared.error().message);
    if (!prepared) return fail(std::move(prepared.error()));
    for (const auto& [workflow, delivered] : prepared->deliveries)
      waits += waiting_bytes(*workflow, delivered);
    if (waits > kWaitingBytes)
      return fail(Code::unprocessable, "workflow.output_invalid",
                  "invalid workflow output: more than " + std::to_string(kWaitingBytes) +
                      " bytes of events would wait for their steps");
    out.events.push_back(std::move(*prepared));
  }
  for (size_t i = 0; i < output.effects.size(); ++i) {
    TRY(Pending intent, admit_effect(item, output.effects[i], i));
    out.effects.push_back(std::move(intent));
  }
  return out;
}

Result<void> Engine::commit(const Delivery& item, Cells cells, Staged staged) {
  const auto keep = loaded_;  // an effect of this step may apply another manifest
  const Workflow& w = *item.workflow;
  Instance& now = cells.now;
  const bool ends = !staged.state || staged.completed;
  now.state = std::move(staged.state);
  now.last_seq = item.moment.height;
  now.module_version = runtime_.modules.version_of(*w.module);
  if (ends) TRY_OK(drop_pending(cells));  // and not what this step asks for
  for (Prepared& event : staged.events) {
    TRY(Accepted unused, admit(std::move(event)));
    (void)unused;
  }
  std::vector<const Pending*> own;
  for (const Pending& intent : staged.effects) {
    TRY_OK(open_effect(intent, cells));
    if (internal(intent.identity.effect)) own.push_back(&intent);
  }
  if (!now.inflight.empty())
    now.status = Status::waiting;
  else if (ends)
    now.status = Status::completed;
  else if (now.status != Status::failed)
    now.status = Status::running;
  save(w.def.name, item.key(), std::move(cells));
  for (const Pending* intent : own)
    TRY_OK(answer_internal(*intent));
  return {};
}

Result<void> Engine::fail_step(const Delivery& item, Cells cells, const Error& why) {
  const Workflow& w = *item.workflow;
  ++head_.steps_failed;
  StepFailure failure{w.def.name,
                      why.reason,
                      why.message,
                      event_hash(item.event),
                      item.event.key,
                      item.moment.height,
                      cells.now.state.has_value()};
  cells.now.status = Status::failed;
  cells.now.last_seq = item.moment.height;
  cells.now.failure = why.reason + ": " + why.message;
  save(w.def.name, item.key(), std::move(cells));
  return record(step_failed_record(failure), {{"c", cell_name(w.def.name, item.key())}});
}

}  // namespace pawl::worlds
