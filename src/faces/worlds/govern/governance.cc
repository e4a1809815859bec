// How a world changes its own rules: propose, shadow, approve or reject, apply. Each is a record,
// and nothing is applied while work is in flight.

#include "base/utf8.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// Cells that one apply may migrate: it is one turn.
constexpr size_t kMigratedCells = 200'000;
constexpr size_t kNamedBlockers = 20;

std::unexpected<Error> wrong_state(const Proposal& p, std::string_view expected) {
  if (p.state == ProposalState::applied)
    return fail(Code::conflict, "governance.proposal_applied",
                "proposal " + std::to_string(p.id) + " already applied");
  return fail(Code::conflict, "governance.proposal_state",
              "proposal " + std::to_string(p.id) + " is in state " + std::string(name_of(p.state)) +
                  ", expected " + std::string(expected));
}

std::string blocked_text(const std::string& world, const Quiescence& q, bool strict) {
  auto n = [](uint64_t v) { return std::to_string(v); };
  const std::string pending = q.queued ? "true" : "false";
  if (!strict)
    return "manifest apply blocked: in-flight runtime state exists (plans=" + n(q.waiting) +
           ", waiting_events=" + n(q.inflight) +
           ", pending_plan_receipts=0, pending_workflow_receipts=" + n(q.inflight) +
           ", queued_effects=0, workflow_queue_pending=" + pending + ")";
  return "world " + world +
         " is not strictly quiescent for manifest apply (non_terminal_workflow_instances=" +
         n(q.non_terminal) + ", inflight_workflow_intents=" + n(q.inflight) +
         ", pending_workflow_receipts=" + n(q.inflight) +
         ", queued_effects=0, workflow_queue_pending=" + pending + ", mailbox_len=" + n(q.queued) +
         ", running=" + n(q.non_terminal - q.waiting) +
         ", commit_blocked=false, pending_slice=false, scheduled_timers=" + n(q.timers) + ")";
}

}  // namespace

Quiescence Engine::quiescence() const {
  return {head_.running + head_.waiting, head_.waiting, head_.inflight, mail_.size(), head_.timers};
}

Result<Proposal> Engine::proposal(uint64_t id) const {
  TRY(Cell cell, turn_.read(proposal_key(place_, id)));
  if (!cell.exists())
    return fail(Code::not_found, "governance.proposal_missing",
                "proposal " + std::to_string(id) + " not found");
  return decode_proposal(cell.value());
}

void Engine::save(Proposal& p) {
  p.height = head_.height;
  turn_.write(proposal_key(place_, p.id), encode(p));
}

Result<Patch> Engine::compile(const json::Value& document) const {
  return compile_patch(document, loaded_->manifest);
}

Result<Proposal> Engine::propose(const Patch& patch, std::optional<std::string> description) {
  TRY(Loaded next, load_manifest(patch.manifest, patch.nodes));
  const Bytes bytes = cbor::canonical(to_value(patch));
  TRY(Bytes digest, blobs_.put(bytes));
  Proposal p;
  p.id = head_.next_proposal++;
  p.patch_hash = hash_text(digest);
  p.described = description.has_value();
  p.description = description.value_or("");
  p.manifest_hash = next.hash;
  save(p);
  ++head_.proposed;
  TRY_OK(record(governance_record(
      "Proposed", cbor::Map{{"proposal_id", p.id},
                            {"description", p.described ? Value(p.description) : Value()},
                            {"patch_hash", p.patch_hash}})));
  return p;
}

Result<Patch> Engine::stored_patch(const Proposal& p) const {
  TRY(Bytes digest, parse_hash(p.patch_hash));
  auto bytes = blobs_.get(digest);
  if (!bytes && bytes.error().code == Code::corrupt)
    return fail(Code::conflict, "governance.shadow_mismatch",
                "the stored patch of proposal " + std::to_string(p.id) +
                    " is not the one whose hash was proposed");
  if (!bytes) return fail(std::move(bytes.error()));
  TRY(Value value, cbor::decode(*bytes));
  TRY(Patch patch, parse_patch(plain_json(value)));
  if (patch_hash(patch) != p.patch_hash)
    return fail(Code::conflict, "governance.shadow_mismatch",
                "the stored patch of proposal " + std::to_string(p.id) +
                    " is not the one whose hash was proposed");
  return patch;
}

// What a replay finds in place of a shadow run: it is not made again, because it saw seeds and a
// clock of its own.
std::optional<Bytes> Engine::recorded_report(uint64_t id) const {
  const Value rec = recorded_here();
  const Value* report = rec.find("ShadowReport");
  const Value* of = report ? report->find("proposal_id") : nullptr;
  if (!of || of->as_uint64() != id) return {};
  return cbor::canonical(*report);
}

Result<Bytes> Engine::shadow(uint64_t id, const ShadowOptions& options) {
  TRY_OK(refuse_while_busy());
  if (shadowing_)
    return fail(Code::conflict, "governance.proposal_state", "a shadow run cannot start another");
  TRY(Proposal p, proposal(id));
  if (p.state == ProposalState::rejected || p.state == ProposalState::applied)
    return wrong_state(p, "not rejected");
  std::optional<Bytes> recorded = recorded_report(id);
  if (!recorded) {
    TRY(Patch patch, stored_patch(p));
    TRY(Loaded next, load_manifest(patch.manifest, patch.nodes));
    TRY(recorded, run_shadow(p, std::move(next), options));
  }
  Bytes report = std::move(*recorded);
  TRY(Value body, cbor::decode(report));
  p.state = ProposalState::shadowed;
  p.report = report;
  save(p);
  ++head_.shadowed;
  TRY_OK(record(governance_record("ShadowReport", body)));
  return report;
}

Result<Proposal> Engine::decide(uint64_t id, std::string approver, bool approve) {
  TRY(Proposal p, proposal(id));
  if (p.state != ProposalState::shadowed && p.state != ProposalState::approved)
    return wrong_state(p, "shadowed");
  p.state = approve ? ProposalState::approved : ProposalState::rejected;
  p.approver = std::move(approver);
  save(p);
  if (approve) ++head_.approved;
  TRY_OK(record(
      governance_record("Approved", cbor::Map{{"proposal_id", p.id},
                                              {"patch_hash", p.patch_hash},
                                              {"approver", p.approver},
                                              {"decision", approve ? "approve" : "reject"}})));
  return p;
}

Result<Proposal> Engine::apply(uint64_t id, bool strict) {
  TRY(Proposal p, proposal(id));
  if (p.state != ProposalState::approved) return wrong_state(p, "approved");
  const Quiescence q = quiescence();
  if (strict ? !q.strict_ok() : !q.relaxed_ok()) {
    json::Array blockers;
    TRY_OK(turn_.scan(cells_prefix(place_), [&](BytesView at, const Cell& cell) {
      auto instance = decode_instance(cell.value());
      const bool blocks =
          instance && (!instance->inflight.empty() || instance->status == Status::waiting ||
                       (strict && instance->status == Status::running));
      const CellAt where = cell_at(place_, at);
      if (blocks)
        blockers.push_back(
            json::object({{"instance_id", instance_id(where.workflow, where.key)},
                          {"status", name_of(instance->status)},
                          {"inflight_intents", uint64_t{instance->inflight.size()}}}));
      return blockers.size() < kNamedBlockers;
    }));
    const json::Value detail =
        json::object({{"non_terminal_workflow_instances", q.non_terminal},
                      {"inflight_workflow_intents", q.inflight},
                      {"pending_workflow_receipts", q.inflight},
                      {"workflow_queue_pending", q.queued > 0},
                      {"mailbox_len", q.queued},
                      {"scheduled_timers", q.timers},
                      {"blocking_instances", json::Value(std::move(blockers))}});
    return fail(Code::conflict, "governance.apply_inflight", blocked_text(place_.world, q, strict),
                json::print(detail));
  }
  TRY(Patch patch, stored_patch(p));
  TRY(Loaded next, load_manifest(patch.manifest, patch.nodes));
  const Turn::Mark mark = turn_.mark();
  const Head head = head_;
  if (auto brought = migrate(next, nullptr);
      !brought) {  // some may have been, and a workflow that asked goes on
    turn_.rewind(mark);
    head_ = head;
    return fail(std::move(brought.error()));
  }
  TRY_OK(use_manifest(std::move(next)));
  ++edit().epoch;
  p.state = ProposalState::applied;
  p.manifest_hash = world_->manifest_hash;
  save(p);
  ++head_.applied;
  TRY_OK(record(manifest_record(world_->manifest_hash)));
  TRY_OK(record(governance_record("Applied", cbor::Map{{"proposal_id", p.id},
                                                       {"patch_hash", p.patch_hash},
                                                       {"manifest_hash_new", p.manifest_hash}})));
  return p;
}

// Whether a cell's key is one of the workflow's: another would be reached by no event.
static Result<void> check_key(const Workflow& w, const Schemas& schemas, BytesView key) {
  if (!w.key && key.empty()) return {};
  if (!w.key)
    return fail(Code::invalid, "manifest.error",
                "the workflow is unkeyed now, and the cell has a key");
  if (key.empty())
    return fail(Code::invalid, "manifest.error",
                "the workflow is keyed now, and the cell has no key");
  TRY(Bytes normal, normalize_bytes(key, *w.key, schemas));
  if (normal != key)
    return fail(Code::invalid, "manifest.error",
                "its key is written otherwise under schema '" + w.def.key_schema + "'");
  return {};
}

// A cell's state as the next manifest has it; the error says why there is none.
Result<Bytes> Engine::migrated(const Workflow& next, const Schemas& schemas,
                               const Instance& instance, bool migrates) const {
  Bytes state = *instance.state;
  if (migrates) {
    TRY(Ran ran,
        runtime_.modules.run(
            *next.module, "migrate",
            encode_input({instance.state, {next.def.state, cbor::canonical(Value()), {}}, {}}),
            world_->limits, [&] { return fetch(*next.module); }));
    TRY(StepOutput output, decode_output(ran.output));
    TRY_OK(check_limits(output));
    if (!output.state)
      return fail(Code::unprocessable, "workflow.output_invalid", "migrate gave no state");
    if (!output.events.empty() || !output.effects.empty())
      return fail(Code::unprocessable, "workflow.output_invalid",
                  "migrate may give a state and neither events nor effects");
    state = std::move(*output.state);
  }
  if (!world_->check_state) return state;
  return normalize_bytes(state, *next.state, schemas);
}

// Cells of a workflow whose module exports `migrate`, or whose state or key is of another type now,
// are brought over. So are those that a workflow left behind which comes again. With a report every
// failure is listed; without one the first ends the apply.
Result<void> Engine::migrate(const Loaded& next, std::vector<Value>* report) {
  size_t seen = 0;
  for (const auto& [name, now] : next.workflows) {
    const Workflow* old = loaded_->workflow(name);
    const bool moved = !old || now.hash != old->hash || now.module->hash != old->module->hash;
    const bool same_key =
        old && now.def.keyed() == old->def.keyed() &&
        (!now.key || same_type(*old->key, loaded_->schemas, *now.key, next.schemas));
    const bool same =
        same_key && same_type(*old->state, loaded_->schemas, *now.state, next.schemas);
    if (!moved && same) continue;
    bool any = false;
    TRY_OK(turn_.scan(cells_prefix(place_, name),
                      [&](BytesView, const Cell&) { return any = true, false; }));
    if (!any) continue;
    bool migrates = false;
    if (moved) {
      TRY(migrates, runtime_.modules.migrates(*now.module, [&] { return fetch(*now.module); }));
    }
    if (!migrates && same) continue;
    std::vector<std::pair<Bytes, Instance>> cells;
    TRY_OK(turn_.scan(cells_prefix(place_, name), [&](BytesView at, const Cell& cell) {
      auto instance = decode_instance(cell.value());
      if (instance && instance->state)
        cells.emplace_back(cell_at(place_, at).key, std::move(*instance));
      return ++seen <= kMigratedCells;
    }));
    if (seen > kMigratedCells)
      return fail(Code::too_large, "governance.migrate",
                  "workflow '" + name + "' has more than " + std::to_string(kMigratedCells) +
                      " cells to migrate in one apply");
    for (auto& [key, instance] : cells) {
      auto fits = same_key ? Result<void>() : check_key(now, next.schemas, key);
      Result<Bytes> state = fits ? migrated(now, next.schemas, instance, migrates)
                                 : Result<Bytes>(fail(fits.error()));
      if (!state && is_ours(state.error())) return fail(std::move(state.error()));
      if (!state && report) {
        report->push_back(
            cbor::Map{{"instance_id", instance_id(name, key)},
                      {"error", as_utf8(state.error().message.substr(0, kReportedError))}});
        continue;
      }
      if (!state)
        return fail(Code::conflict, "governance.migrate",
                    "cell " + instance_id(name, key) + " cannot be migrated: " +
                        state.error().message + "; run shadow for the whole list");
      Cells pair{cell_key(place_, name, key), {}, {}};
      pair.before = std::make_shared<const Instance>(instance);
      pair.now = instance;
      pair.now.state = std::move(*state);
      save(name, key, std::move(pair));
    }
  }
  return {};
}

}  // namespace pawl::worlds
