#include "faces/worlds/step/internal_effects.h"

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/govern/governance.h"
#include "faces/worlds/govern/shadow.h"
#include "faces/worlds/store/reads.h"
#include "faces/worlds/store/workspace.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

// Cells that one listing may show: it must fit in a receipt.
constexpr size_t kMaxListedCells = 10'000;

uint64_t id_of(const Value& params) {
  const Value* id = params.find("proposal_id");
  return id ? id->as_uint64().value_or(0) : 0;
}

// One arm of sys/GovPatchInput@1, as a compiled patch.
Result<Patch> patch_of(const Governance& governance, Blobs& blobs, const Value& input) {
  TRY(PatchInput given, open_patch(input, [&](BytesView digest) { return blobs.get(digest); }));
  if (given.document) {
    TRY(json::Value text, json::parse(given.bytes));
    return governance.compile(text);
  }
  TRY(Value compiled, cbor::decode(given.bytes));
  return governance.compile(plain_json(compiled));
}

// Effects on workspace trees, which need only the store.
struct TreeEffect {
  std::string_view effect;
  Result<Value> (Workspace::*answer)(const Value& params) const;
};
constexpr TreeEffect kTreeEffects[] = {
    {"sys/workspace.list@1", &Workspace::list},
    {"sys/workspace.read_ref@1", &Workspace::read_ref},
    {"sys/workspace.read_bytes@1", &Workspace::read_bytes},
    {"sys/workspace.write_bytes@1", &Workspace::write_bytes},
    {"sys/workspace.write_ref@1", &Workspace::write_ref},
    {"sys/workspace.remove@1", &Workspace::remove},
    {"sys/workspace.diff@1", &Workspace::diff},
    {"sys/workspace.annotations_get@1", &Workspace::annotations_get},
    {"sys/workspace.annotations_set@1", &Workspace::annotations_set},
};

const TreeEffect* tree_effect(std::string_view effect) {
  for (const TreeEffect& row : kTreeEffects)
    if (row.effect == effect) return &row;
  return nullptr;
}

}  // namespace

Value InternalEffects::read_meta() const {
  return cbor::Map{
      {"journal_height", turn_.head.height},
      {"manifest_hash", turn_.world().manifest_hash},
      {"snapshot_hash",
       turn_.world().snapshot_ref.empty() ? Value() : Value(turn_.world().snapshot_ref)}};
}

Result<Value> InternalEffects::blob_put(const Value& params) {
  const Value* bytes = params.find("bytes");
  if (!bytes || !bytes->is_bytes())
    return fail(Code::invalid, "effect.manager", "blob.put without bytes");
  TRY(Bytes blob, turn_.blobs.put(bytes->bytes()));
  const Value* refs = params.find("refs");
  TRY(Bytes edge,
      turn_.blobs.put(cbor::canonical(cbor::Map{{"blob_ref", hash_text(blob)},
                                                {"refs", refs ? *refs : Value(cbor::Array{})}})));
  return Value(cbor::Map{{"blob_ref", hash_text(blob)},
                         {"edge_ref", hash_text(edge)},
                         {"size", uint64_t{bytes->bytes().size()}}});
}

Result<Value> InternalEffects::blob_get(const Value& params) {
  TRY(Bytes digest, parse_hash(params.text_or("blob_ref")));
  TRY(Bytes bytes, turn_.blobs.get(digest));
  const uint64_t size = bytes.size();
  return Value(cbor::Map{{"blob_ref", hash_text(digest)},
                         {"size", size},
                         {"bytes", Value(cbor::Octets{std::move(bytes)})}});
}

Result<Value> InternalEffects::introspect_head(const Value&) {
  return Value(cbor::Map{{"meta", read_meta()}});
}

Result<Value> InternalEffects::introspect_manifest(const Value& params) {
  TRY(Consistency wanted, parse_consistency(params.text_or("consistency")));
  TRY(bool at_head, head_serves(wanted, turn_.id.world, turn_.head.height));
  if (!at_head) return no_such_height(wanted.height);
  return Value(
      cbor::Map{{"manifest", octets(cbor::canonical(to_value(turn_.loaded().manifest, false)))},
                {"meta", read_meta()}});
}

Result<Value> InternalEffects::introspect_state(const Value& params) {
  const Value* key = params.find("key");
  const BytesView bytes = key && key->is_bytes() ? BytesView(key->bytes()) : BytesView();
  TRY(Consistency wanted, parse_consistency(params.text_or("consistency")));
  TRY(bool at_head, head_serves(wanted, turn_.id.world, turn_.head.height));
  if (!at_head) {  // a turn knows the newest snapshot only
    if (wanted.height != turn_.world().snapshot_height) return no_such_height(wanted.height);
    TRY(std::optional<Bytes> state,
        state_in_snapshot(turn_.blobs.index_store(), turn_.world().snapshot_ref,
                          params.text_or("workflow"), bytes));
    return Value(cbor::Map{{"state", state ? octets(*state) : Value()}, {"meta", read_meta()}});
  }
  TRY(auto cell, turn_.kernel.read_as<Instance>(
                     cell_key(turn_.id, params.text_or("workflow"), bytes), decode_instance));
  return Value(cbor::Map{{"state", cell && cell->state ? octets(*cell->state) : Value()},
                         {"meta", read_meta()}});
}

Result<Value> InternalEffects::introspect_cells(const Value& params) {
  cbor::Array cells;
  const Key lead = cells_prefix(turn_.id, params.text_or("workflow"));
  TRY_OK(turn_.kernel.scan(lead, [&](BytesView at, const Cell& cell) {
    auto instance = decode_instance(cell.value());
    if (instance && instance->state)
      cells.push_back(cbor::Map{{"key", octets(at.substr(lead.size()))},
                                {"state_hash", hash_text(sha256(*instance->state))},
                                {"size", uint64_t{instance->state->size()}},
                                {"last_active_ns", instance->last_seq}});
    return cells.size() < kMaxListedCells;
  }));
  return Value(cbor::Map{{"cells", Value(std::move(cells))}, {"meta", read_meta()}});
}

Result<Value> InternalEffects::propose(const Value& params) {
  const Value* input = params.find("patch");
  TRY(Patch patch, patch_of(governance_, turn_.blobs, input ? *input : Value()));
  const Value* description = params.find("description");
  TRY(Proposal p, governance_.propose(patch, description && description->is_text()
                                                 ? std::optional<std::string>(description->text())
                                                 : std::nullopt));
  return proposed_receipt(p, turn_.world().manifest_hash);
}

Result<Value> InternalEffects::shadow(const Value& params) {
  TRY(Bytes report, shadow_.run(id_of(params), {}));
  TRY(Value value, cbor::decode(report));
  return shadowed_receipt(id_of(params), value);
}

Result<Value> InternalEffects::approve(const Value& params) {
  const Value* decision = params.find("decision");
  const bool approve = decision && decision->text_or("$tag") == "approve";
  const Value* reason = params.find("reason");
  TRY(Proposal p,
      governance_.decide(id_of(params), std::string(params.text_or("approver")), approve));
  return decided_receipt(p, approve, reason ? *reason : Value());
}

Result<Value> InternalEffects::apply(const Value& params) {
  TRY(Proposal p, governance_.apply(id_of(params), true));
  return applied_receipt(p);
}

Result<Value> InternalEffects::workspace_resolve(const Value& params) {
  TRY_OK(check_workspace_name(params.text_or("workspace")));
  TRY(auto cell,
      turn_.kernel.read_as<Instance>(cell_key(turn_.id, kWorkspaceWorkflow,
                                              cbor::canonical(Value(params.text_or("workspace")))),
                                     decode_instance));
  const Value* version = params.find("version");
  return resolve_workspace(cell ? cell->state : std::nullopt,
                           version ? version->as_uint64() : std::nullopt);
}

Result<Value> InternalEffects::workspace_root(const Value& params) {
  TRY_OK(check_workspace_name(params.text_or("workspace")));
  const IndexStore store = turn_.blobs.index_store();
  TRY(Bytes root, Workspace(store).empty_root());
  return Value(cbor::Map{{"root_hash", hash_text(root)}});
}

const InternalEffects::Row InternalEffects::kRows[] = {
    {"sys/blob.put@1", &InternalEffects::blob_put},
    {"sys/blob.get@1", &InternalEffects::blob_get},
    {"sys/introspect.manifest@1", &InternalEffects::introspect_manifest},
    {"sys/introspect.workflow_state@1", &InternalEffects::introspect_state},
    {"sys/introspect.journal_head@1", &InternalEffects::introspect_head},
    {"sys/introspect.list_cells@1", &InternalEffects::introspect_cells},
    {"sys/governance.propose@1", &InternalEffects::propose},
    {"sys/governance.shadow@1", &InternalEffects::shadow},
    {"sys/governance.approve@1", &InternalEffects::approve},
    {"sys/governance.apply@1", &InternalEffects::apply},
    {"sys/workspace.resolve@1", &InternalEffects::workspace_resolve},
    {"sys/workspace.empty_root@1", &InternalEffects::workspace_root},
};

bool is_internal_effect(std::string_view effect) {
  return InternalEffects::answers(effect) || tree_effect(effect);
}

bool InternalEffects::answers(std::string_view effect) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const Row& row) { return row.effect == effect; });
}

Result<Value> InternalEffects::run(std::string_view effect, const Value& params) {
  if (const TreeEffect* row = tree_effect(effect)) {
    const IndexStore store = turn_.blobs.index_store();
    return (Workspace(store).*row->answer)(params);
  }
  for (const Row& row : kRows)
    if (row.effect == effect) return (this->*row.answer)(params);
  return fail(Code::internal, "effect.manager",
              "effect '" + std::string(effect) + "' is not answered by the server");
}

// The message of a refusal may name the world, and a fork has another name. So a replay gives the
// refusal that was recorded.
std::optional<Bytes> InternalEffects::recorded_refusal(BytesView intent) const {
  auto receipt = receipt_of(turn_.recorded_here());
  if (!receipt || receipt->intent != intent || receipt->status != "error") return {};
  return std::move(receipt->payload);
}

// A replay that cannot give the answer that was recorded lacks a blob: nothing else can be missing.
bool InternalEffects::was_answered(BytesView intent) const {
  auto receipt = receipt_of(turn_.recorded_here());
  return receipt && receipt->intent == intent && receipt->status == "ok";
}

Result<void> InternalEffects::answer(const PendingIntent& intent) {
  TRY(Value params, cbor::decode(intent.params));
  auto answer = run(intent.identity.effect, params);
  if (!answer && is_server_error(answer.error())) return fail(std::move(answer.error()));
  IntentReceipt receipt{intent.intent, "ok", {}, {}, no_signature()};
  if (answer) {
    receipt.payload = cbor::canonical(*answer);
    turn_.budget.bytes += receipt.payload.size();
    if (turn_.mail.bytes() + receipt.payload.size() > kMaxWaitingBytes)
      answer = fail(Code::too_large, "effect.manager",
                    "effect manager error: more than " + std::to_string(kMaxWaitingBytes) +
                        " bytes of answers would wait for their steps");
  }
  if (!answer && was_answered(intent.intent))
    return fail(Code::corrupt, "journal.error", "journal.error: " + answer.error().message);
  if (!answer) {
    receipt.status = "error";
    receipt.payload =
        recorded_refusal(intent.intent)
            .value_or(cbor::canonical(
                cbor::Map{{"code", answer.error().reason}, {"message", answer.error().message}}));
  }
  return settlement_.settle(intent, std::move(receipt));
}

}  // namespace pawl::worlds
