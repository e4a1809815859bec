#include "faces/worlds/govern/governance.h"

#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// The refusal counts all blockers and names the first of them.
constexpr size_t kMaxNamedBlockers = 20;

// The original's two texts word for word, with its fields that have no meaning here as 0 or false:
// tools match on them.
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

bool blocks(const Instance& instance, bool strict) {
  return !instance.inflight.empty() || instance.status == InstanceStatus::waiting ||
         (strict && instance.status == InstanceStatus::running);
}

std::unexpected<Error> changed_patch(const Proposal& p) {
  return fail(Code::conflict, "governance.shadow_mismatch",
              "the stored patch of proposal " + std::to_string(p.id) +
                  " is not the one whose hash was proposed");
}

}  // namespace

std::unexpected<Error> wrong_state(const Proposal& p, std::string_view expected) {
  if (p.state == ProposalState::applied)
    return fail(Code::conflict, "governance.proposal_applied",
                "proposal " + std::to_string(p.id) + " already applied");
  return fail(Code::conflict, "governance.proposal_state",
              "proposal " + std::to_string(p.id) + " is in state " + std::string(name_of(p.state)) +
                  ", expected " + std::string(expected));
}

Quiescence Governance::quiescence() const {
  return {turn_.head.running + turn_.head.waiting, turn_.head.waiting, turn_.head.inflight,
          turn_.mail.size(), turn_.head.timers};
}

Result<Proposal> Governance::proposal(uint64_t id) const {
  TRY(Cell cell, turn_.kernel.read(proposal_key(turn_.id, id)));
  if (!cell.exists())
    return fail(Code::not_found, "governance.proposal_missing",
                "proposal " + std::to_string(id) + " not found");
  return decode_proposal(cell.value());
}

void Governance::save(Proposal& p) {
  p.height = turn_.head.height;
  turn_.kernel.write(proposal_key(turn_.id, p.id), encode(p));
}

Result<Patch> Governance::compile(const json::Value& document) const {
  return read_patch(document, turn_.loaded().manifest, turn_.runtime.builtins);
}

Result<Proposal> Governance::propose(const Patch& patch, std::optional<std::string> description) {
  TRY(LoadedManifest next, turn_.load_manifest(patch.manifest, patch.nodes));
  const Bytes bytes = cbor::canonical(to_value(patch));
  TRY(Bytes digest, turn_.blobs.put(bytes));
  Proposal p;
  p.id = turn_.head.next_proposal++;
  p.patch_hash = hash_text(digest);
  p.described = description.has_value();
  p.description = description.value_or("");
  p.manifest_hash = next.hash;
  save(p);
  ++turn_.head.proposed;
  TRY_OK(turn_.record(governance_record(
      "Proposed", cbor::Map{{"proposal_id", p.id},
                            {"description", p.described ? Value(p.description) : Value()},
                            {"patch_hash", p.patch_hash}})));
  return p;
}

Result<Patch> Governance::stored_patch(const Proposal& p) const {
  TRY(Bytes digest, parse_hash(p.patch_hash));
  auto bytes = turn_.blobs.get(digest);
  if (!bytes && bytes.error().code == Code::corrupt) return changed_patch(p);
  if (!bytes) return fail(std::move(bytes.error()));
  TRY(Value value, cbor::decode(*bytes));
  TRY(Patch patch, parse_patch(plain_json(value)));
  if (patch_hash(patch) != p.patch_hash) return changed_patch(p);
  return patch;
}

// A rejected proposal stays rejected. An approved one may be decided again until it is applied.
Result<Proposal> Governance::decide(uint64_t id, std::string approver, bool approve) {
  TRY(Proposal p, proposal(id));
  if (p.state != ProposalState::shadowed && p.state != ProposalState::approved)
    return wrong_state(p, "shadowed");
  p.state = approve ? ProposalState::approved : ProposalState::rejected;
  p.approver = std::move(approver);
  save(p);
  if (approve) ++turn_.head.approved;
  TRY_OK(turn_.record(
      governance_record("Approved", cbor::Map{{"proposal_id", p.id},
                                              {"patch_hash", p.patch_hash},
                                              {"approver", p.approver},
                                              {"decision", approve ? "approve" : "reject"}})));
  return p;
}

Result<void> Governance::refuse_unless_quiescent(bool strict) const {
  const Quiescence q = quiescence();
  if (strict ? q.strict_ok() : q.relaxed_ok()) return {};
  json::Array blockers;
  TRY_OK(turn_.kernel.scan(cells_prefix(turn_.id), [&](BytesView at, const Cell& cell) {
    auto instance = decode_instance(cell.value());
    const CellAt where = cell_at(turn_.id, at);
    if (instance && blocks(*instance, strict))
      blockers.push_back(json::object({{"instance_id", instance_id(where.workflow, where.key)},
                                       {"status", name_of(instance->status)},
                                       {"inflight_intents", uint64_t{instance->inflight.size()}}}));
    return blockers.size() < kMaxNamedBlockers;
  }));
  const json::Value detail =
      json::object({{"non_terminal_workflow_instances", q.non_terminal},
                    {"inflight_workflow_intents", q.inflight},
                    {"pending_workflow_receipts", q.inflight},
                    {"workflow_queue_pending", q.queued > 0},
                    {"mailbox_len", q.queued},
                    {"scheduled_timers", q.timers},
                    {"blocking_instances", json::Value(std::move(blockers))}});
  return fail(Code::conflict, "governance.apply_inflight", blocked_text(turn_.id.world, q, strict),
              json::print(detail));
}

// Either everything happens in this turn, or nothing: the cells are migrated, the manifest is
// replaced, and both records are written.
Result<Proposal> Governance::apply(uint64_t id, bool strict) {
  TRY(Proposal p, proposal(id));
  if (p.state != ProposalState::approved) return wrong_state(p, "approved");
  // Before the patch is loaded: the cheap refusal first.
  TRY_OK(refuse_unless_quiescent(strict));
  TRY(Patch patch, stored_patch(p));
  TRY(LoadedManifest next, turn_.load_manifest(patch.manifest, patch.nodes));
  const WorldTurn::Savepoint before = turn_.savepoint();
  if (auto migrated = Migration(turn_, next, nullptr).run(); !migrated) {
    // Some cells may have been migrated. The workflow that asked for the apply goes on.
    turn_.rewind(before);
    return fail(std::move(migrated.error()));
  }
  TRY_OK(turn_.use_manifest(std::move(next)));
  // Events that expect the former epoch are refused from now on.
  ++turn_.edit_world().epoch;
  p.state = ProposalState::applied;
  p.manifest_hash = turn_.world().manifest_hash;
  save(p);
  ++turn_.head.applied;
  TRY_OK(turn_.record(manifest_record(turn_.world().manifest_hash)));
  TRY_OK(turn_.record(
      governance_record("Applied", cbor::Map{{"proposal_id", p.id},
                                             {"patch_hash", p.patch_hash},
                                             {"manifest_hash_new", p.manifest_hash}})));
  return p;
}

}  // namespace pawl::worlds
