// Effects that need nothing from outside: the engine answers them in the same turn, with a receipt
// like any other.

#include <array>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/engine.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

constexpr std::array<std::string_view, 10> kInternal{
    "sys/blob.put@1", "sys/blob.get@1", "sys/introspect.manifest@1", "sys/introspect.workflow_state@1", "sys/introspect.journal_head@1",
    "sys/introspect.list_cells@1", "sys/governance.propose@1", "sys/governance.shadow@1", "sys/governance.approve@1", "sys/governance.apply@1"};

// A workflow's listing stays a value that fits in a receipt.
constexpr size_t kListedCells = 10'000;

uint64_t id_of(const Value& params) {
  const Value* id = params.find("proposal_id");
  return id ? id->as_uint64().value_or(0) : 0;
}

// One arm of sys/GovPatchInput@1, as a compiled patch.
Result<Patch> patch_of(const Engine& engine, Blobs& blobs, const Value& input) {
  const std::string_view arm = input.text_or("$tag");
  const Value* value = input.find("$value");
  Bytes bytes;
  bool document = false;
  if (value && (arm == "hash" || arm == "patch_blob_ref")) {
    const std::string ref = arm == "hash" && value->is_text() ? value->text() : std::string(value->text_or("blob_ref"));
    TRY(Bytes digest, parse_hash(ref));
    TRY(bytes, blobs.get(digest));
    document = arm == "patch_blob_ref" && value->text_or("format").find("json") != std::string_view::npos;
  } else if (value && value->is_bytes()) {
    bytes = value->bytes();
    document = arm == "patch_doc_json";
  } else {
    return fail(Code::invalid, "effect.manager", "effect manager error: the patch has no value");
  }
  if (document) {
    TRY(json::Value text, json::parse(bytes));
    return engine.compile(text);
  }
  TRY(Value compiled, cbor::decode(bytes));
  return parse_patch(plain_json(compiled));
}

}  // namespace

bool Engine::is_internal(std::string_view effect) const {
  return std::find(kInternal.begin(), kInternal.end(), effect) != kInternal.end();
}

Result<void> Engine::answer_internal(const Pending& intent) {
  auto answer = run_internal(intent);
  if (!answer && (answer.error().code == Code::corrupt || answer.error().code == Code::internal || answer.error().code == Code::unavailable))
    return fail(std::move(answer.error()));
  Receipt receipt{intent.intent, "ok", {}, {}, Bytes(64, '\0')};
  if (answer) {
    receipt.payload = cbor::canonical(*answer);
  } else {
    receipt.status = "error";
    receipt.payload = cbor::canonical(cbor::Map{{"code", answer.error().reason}, {"message", answer.error().message}});
  }
  return settle_receipt(intent, std::move(receipt));
}

Result<Value> Engine::run_internal(const Pending& intent) {
  TRY(Value params, cbor::decode(intent.params));
  const std::string_view effect = intent.identity.effect;
  const Value meta = cbor::Map{{"journal_height", head_.height}, {"manifest_hash", world_->manifest_hash},
                               {"snapshot_hash", world_->snapshot_ref.empty() ? Value() : Value(world_->snapshot_ref)}};
  if (effect == "sys/blob.put@1") {
    const Value* bytes = params.find("bytes");
    if (!bytes || !bytes->is_bytes()) return fail(Code::invalid, "effect.manager", "blob.put without bytes");
    TRY(Bytes blob, blobs_.put(bytes->bytes()));
    const Value* refs = params.find("refs");
    TRY(Bytes edge, blobs_.put(cbor::canonical(cbor::Map{{"blob_ref", hash_text(blob)}, {"refs", refs ? *refs : Value(cbor::Array{})}})));
    return Value(cbor::Map{{"blob_ref", hash_text(blob)}, {"edge_ref", hash_text(edge)}, {"size", uint64_t{bytes->bytes().size()}}});
  }
  if (effect == "sys/blob.get@1") {
    TRY(Bytes digest, parse_hash(params.text_or("blob_ref")));
    TRY(Bytes bytes, blobs_.get(digest));
    const uint64_t size = bytes.size();
    return Value(cbor::Map{{"blob_ref", hash_text(digest)}, {"size", size}, {"bytes", Value(cbor::Octets{std::move(bytes)})}});
  }
  if (effect == "sys/introspect.journal_head@1") return Value(cbor::Map{{"meta", meta}});
  if (effect == "sys/introspect.manifest@1")
    return Value(cbor::Map{{"manifest", octets(cbor::canonical(to_value(loaded_->manifest, false)))}, {"meta", meta}});
  if (effect == "sys/introspect.workflow_state@1") {
    const Value* key = params.find("key");
    TRY(auto cell, turn_.read_as<Instance>(cell_key(place_, params.text_or("workflow"), key && key->is_bytes() ? BytesView(key->bytes()) : BytesView()), decode_instance));
    return Value(cbor::Map{{"state", cell && cell->state ? octets(*cell->state) : Value()}, {"meta", meta}});
  }
  if (effect == "sys/introspect.list_cells@1") {
    cbor::Array cells;
    const Key lead = cells_prefix(place_, params.text_or("workflow"));
    TRY_OK(turn_.scan(lead, [&](BytesView at, const Cell& cell) {
      auto instance = decode_instance(cell.value());
      if (instance && instance->state)
        cells.push_back(cbor::Map{{"key", octets(at.substr(lead.size()))}, {"state_hash", hash_text(sha256(*instance->state))},
                                  {"size", uint64_t{instance->state->size()}}, {"last_active_ns", instance->last_seq}});
      return cells.size() < kListedCells;
    }));
    return Value(cbor::Map{{"cells", Value(std::move(cells))}, {"meta", meta}});
  }
  if (effect == "sys/governance.propose@1") {
    const Value* input = params.find("patch");
    TRY(Patch patch, patch_of(*this, blobs_, input ? *input : Value()));
    const Value* description = params.find("description");
    TRY(Proposal p, propose(patch, description && description->is_text() ? std::optional<std::string>(description->text()) : std::nullopt));
    return Value(cbor::Map{{"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_base", world_->manifest_hash}});
  }
  if (effect == "sys/governance.shadow@1") {
    TRY(Bytes report, shadow(id_of(params), {}));
    TRY(Value value, cbor::decode(report));
    cbor::Map out;
    for (std::string_view name : {"proposal_id", "manifest_hash", "module_effect_allowlists", "pending_workflow_receipts", "workflow_instances"})
      if (const Value* v = value.find(name)) out.emplace_back(name, *v);
    out.emplace_back("predicted_effects", Value(cbor::Array{}));
    return Value(std::move(out));
  }
  if (effect == "sys/governance.approve@1") {
    const Value* decision = params.find("decision");
    const bool approve = decision && decision->text_or("$tag") == "approve";
    const Value* reason = params.find("reason");
    TRY(Proposal p, decide(id_of(params), std::string(params.text_or("approver")), approve));
    return Value(cbor::Map{{"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"approver", p.approver},
                           {"decision", cbor::Map{{"$tag", approve ? "approve" : "reject"}}}, {"reason", reason ? *reason : Value()}});
  }
  TRY(Proposal p, apply(id_of(params), true));
  return Value(cbor::Map{{"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_hash_new", p.manifest_hash}});
}

}  // namespace pawl::worlds
