// Effects that need nothing from outside: the engine answers them in the same turn, with a receipt
// like any other.

#include <array>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"
#include "faces/worlds/store/reads.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

// A workflow's listing stays a value that fits in a receipt.
constexpr size_t kListedCells = 10'000;

uint64_t id_of(const Value& params) {
  const Value* id = params.find("proposal_id");
  return id ? id->as_uint64().value_or(0) : 0;
}

// One arm of sys/GovPatchInput@1, as a compiled patch.
Result<Patch> patch_of(const Engine& engine, Blobs& blobs, const Value& input) {
  TRY(PatchInput given, open_patch(input, [&](BytesView digest) { return blobs.get(digest); }));
  if (given.document) {
    TRY(json::Value text, json::parse(given.bytes));
    return engine.compile(text);
  }
  TRY(Value compiled, cbor::decode(given.bytes));
  return parse_patch(plain_json(compiled));
}

}  // namespace

Value Engine::read_meta() const {
  return cbor::Map{
      {"journal_height", head_.height},
      {"manifest_hash", world_->manifest_hash},
      {"snapshot_hash", world_->snapshot_ref.empty() ? Value() : Value(world_->snapshot_ref)}};
}

Result<Value> Engine::do_blob_put(const Value& params) {
  const Value* bytes = params.find("bytes");
  if (!bytes || !bytes->is_bytes())
    return fail(Code::invalid, "effect.manager", "blob.put without bytes");
  TRY(Bytes blob, blobs_.put(bytes->bytes()));
  const Value* refs = params.find("refs");
  TRY(Bytes edge,
      blobs_.put(cbor::canonical(cbor::Map{{"blob_ref", hash_text(blob)},
                                           {"refs", refs ? *refs : Value(cbor::Array{})}})));
  return Value(cbor::Map{{"blob_ref", hash_text(blob)},
                         {"edge_ref", hash_text(edge)},
                         {"size", uint64_t{bytes->bytes().size()}}});
}

Result<Value> Engine::do_blob_get(const Value& params) {
  TRY(Bytes digest, parse_hash(params.text_or("blob_ref")));
  TRY(Bytes bytes, blobs_.get(digest));
  const uint64_t size = bytes.size();
  return Value(cbor::Map{{"blob_ref", hash_text(digest)},
                         {"size", size},
                         {"bytes", Value(cbor::Octets{std::move(bytes)})}});
}

Result<Value> Engine::do_introspect_head(const Value&) {
  return Value(cbor::Map{{"meta", read_meta()}});
}

Result<Value> Engine::do_introspect_manifest(const Value& params) {
  TRY(Consistency wanted, parse_consistency(params.text_or("consistency")));
  TRY(bool at_head, head_serves(wanted, place_.world, head_.height));
  if (!at_head) return no_such_height(wanted.height);
  return Value(cbor::Map{{"manifest", octets(cbor::canonical(to_value(loaded_->manifest, false)))},
                         {"meta", read_meta()}});
}

Result<Value> Engine::do_introspect_state(const Value& params) {
  const Value* key = params.find("key");
  const BytesView bytes = key && key->is_bytes() ? BytesView(key->bytes()) : BytesView();
  TRY(Consistency wanted, parse_consistency(params.text_or("consistency")));
  TRY(bool at_head, head_serves(wanted, place_.world, head_.height));
  if (!at_head) {  // a turn knows the newest snapshot only
    if (wanted.height != world_->snapshot_height) return no_such_height(wanted.height);
    TRY(std::optional<Bytes> state,
        state_in_snapshot(index_store(), world_->snapshot_ref, params.text_or("workflow"), bytes));
    return Value(cbor::Map{{"state", state ? octets(*state) : Value()}, {"meta", read_meta()}});
  }
  TRY(auto cell, turn_.read_as<Instance>(cell_key(place_, params.text_or("workflow"), bytes),
                                         decode_instance));
  return Value(cbor::Map{{"state", cell && cell->state ? octets(*cell->state) : Value()},
                         {"meta", read_meta()}});
}

Result<Value> Engine::do_introspect_cells(const Value& params) {
  cbor::Array cells;
  const Key lead = cells_prefix(place_, params.text_or("workflow"));
  TRY_OK(turn_.scan(lead, [&](BytesView at, const Cell& cell) {
    auto instance = decode_instance(cell.value());
    if (instance && instance->state)
      cells.push_back(cbor::Map{{"key", octets(at.substr(lead.size()))},
                                {"state_hash", hash_text(sha256(*instance->state))},
                                {"size", uint64_t{instance->state->size()}},
                                {"last_active_ns", instance->last_seq}});
    return cells.size() < kListedCells;
  }));
  return Value(cbor::Map{{"cells", Value(std::move(cells))}, {"meta", read_meta()}});
}

Result<Value> Engine::do_propose(const Value& params) {
  const Value* input = params.find("patch");
  TRY(Patch patch, patch_of(*this, blobs_, input ? *input : Value()));
  const Value* description = params.find("description");
  TRY(Proposal p, propose(patch, description && description->is_text()
                                     ? std::optional<std::string>(description->text())
                                     : std::nullopt));
  return proposed_receipt(p, world_->manifest_hash);
}

Value proposed_receipt(const Proposal& p, const std::string& base) {
  return cbor::Map{{"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_base", base}};
}

// The receipt's schema knows fewer words than the report: what it knows is handed on.
Value shadowed_receipt(uint64_t id, const Value& value) {
  cbor::Map out{{"proposal_id", id}, {"manifest_hash", value.text_or("manifest_hash")}};
  for (std::string_view name :
       {"module_effect_allowlists", "pending_workflow_receipts", "workflow_instances"}) {
    const Value* list = value.find(name);
    out.emplace_back(name, list ? *list : Value(cbor::Array{}));
  }
  for (Value& item : out[2].second.array())
    if (!item.find("effects_emitted"))
      item.map().emplace_back("effects_emitted", Value(cbor::Array{}));
  cbor::Array predicted;
  if (const Value* seen = value.find("effects_predicted"))
    for (const Value& item : seen->array())
      predicted.push_back(
          cbor::Map{{"kind", item.text_or("op")},
                    {"intent_hash", "sha256:" + std::string(item.text_or("intent_hash"))},
                    {"params_json", Value()}});
  out.emplace_back("predicted_effects", Value(std::move(predicted)));
  return Value(std::move(out));
}

Result<Value> Engine::do_shadow(const Value& params) {
  TRY(Bytes report, shadow(id_of(params), {}));
  TRY(Value value, cbor::decode(report));
  return shadowed_receipt(id_of(params), value);
}

Value decided_receipt(const Proposal& p, bool approve, Value reason) {
  return cbor::Map{{"proposal_id", p.id},
                   {"patch_hash", p.patch_hash},
                   {"approver", p.approver},
                   {"decision", cbor::Map{{"$tag", approve ? "approve" : "reject"}}},
                   {"reason", std::move(reason)}};
}

Result<Value> Engine::do_approve(const Value& params) {
  const Value* decision = params.find("decision");
  const bool approve = decision && decision->text_or("$tag") == "approve";
  const Value* reason = params.find("reason");
  TRY(Proposal p, decide(id_of(params), std::string(params.text_or("approver")), approve));
  return decided_receipt(p, approve, reason ? *reason : Value());
}

Value applied_receipt(const Proposal& p) {
  return cbor::Map{
      {"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_hash_new", p.manifest_hash}};
}

Result<Value> Engine::do_apply(const Value& params) {
  TRY(Proposal p, apply(id_of(params), true));
  return applied_receipt(p);
}

Result<Value> Engine::do_workspace_resolve(const Value& params) {
  TRY_OK(check_workspace_name(params.text_or("workspace")));
  TRY(auto cell,
      turn_.read_as<Instance>(
          cell_key(place_, kWorkspaceWorkflow, cbor::canonical(Value(params.text_or("workspace")))),
          decode_instance));
  const Value* version = params.find("version");
  return resolve_workspace(cell ? cell->state : std::nullopt,
                           version ? version->as_uint64() : std::nullopt);
}

Result<Value> Engine::do_workspace_root(const Value& params) {
  TRY_OK(check_workspace_name(params.text_or("workspace")));
  const IndexStore store = index_store();
  TRY(Bytes root, Workspace(store).empty_root());
  return Value(cbor::Map{{"root_hash", hash_text(root)}});
}

const Engine::Internal* Engine::internal(std::string_view effect) {
  static constexpr std::array<Internal, 21> kInternal{{
      {"sys/blob.put@1", &Engine::do_blob_put},
      {"sys/blob.get@1", &Engine::do_blob_get},
      {"sys/introspect.manifest@1", &Engine::do_introspect_manifest},
      {"sys/introspect.workflow_state@1", &Engine::do_introspect_state},
      {"sys/introspect.journal_head@1", &Engine::do_introspect_head},
      {"sys/introspect.list_cells@1", &Engine::do_introspect_cells},
      {"sys/governance.propose@1", &Engine::do_propose},
      {"sys/governance.shadow@1", &Engine::do_shadow},
      {"sys/governance.approve@1", &Engine::do_approve},
      {"sys/governance.apply@1", &Engine::do_apply},
      {"sys/workspace.resolve@1", &Engine::do_workspace_resolve},
      {"sys/workspace.empty_root@1", &Engine::do_workspace_root},
      {"sys/workspace.list@1", nullptr, &Workspace::list},
      {"sys/workspace.read_ref@1", nullptr, &Workspace::read_ref},
      {"sys/workspace.read_bytes@1", nullptr, &Workspace::read_bytes},
      {"sys/workspace.write_bytes@1", nullptr, &Workspace::write_bytes},
      {"sys/workspace.write_ref@1", nullptr, &Workspace::write_ref},
      {"sys/workspace.remove@1", nullptr, &Workspace::remove},
      {"sys/workspace.diff@1", nullptr, &Workspace::diff},
      {"sys/workspace.annotations_get@1", nullptr, &Workspace::annotations_get},
      {"sys/workspace.annotations_set@1", nullptr, &Workspace::annotations_set},
  }};
  for (const Internal& row : kInternal)
    if (row.effect == effect) return &row;
  return nullptr;
}

// The words of a refusal may name the world, and a fork has another name: a replay says what was
// said then.
std::optional<Bytes> Engine::recorded_refusal(BytesView intent) const {
  auto receipt = receipt_of(recorded_here());
  if (!receipt || receipt->intent != intent || receipt->status != "error") return {};
  return std::move(receipt->payload);
}

Result<void> Engine::answer_internal(const Pending& intent) {
  TRY(Value params, cbor::decode(intent.params));
  const Internal& row = *internal(intent.identity.effect);
  const IndexStore store = index_store();
  auto answer = row.tree ? (Workspace(store).*row.tree)(params) : (this->*row.act)(params);
  if (!answer && is_ours(answer.error())) return fail(std::move(answer.error()));
  Receipt receipt{intent.intent, "ok", {}, {}, Bytes(64, '\0')};
  if (answer) {
    receipt.payload = cbor::canonical(*answer);
    bytes_ += receipt.payload.size();
    if (mail_.bytes() + receipt.payload.size() > kWaitingBytes)
      answer = fail(Code::too_large, "effect.manager",
                    "effect manager error: more than " + std::to_string(kWaitingBytes) +
                        " bytes of answers would wait for their steps");
  }
  if (!answer) {
    receipt.status = "error";
    receipt.payload =
        recorded_refusal(intent.intent)
            .value_or(cbor::canonical(
                cbor::Map{{"code", answer.error().reason}, {"message", answer.error().message}}));
  }
  return settle_receipt(intent, std::move(receipt));
}

}  // namespace pawl::worlds
