// The outcomes of governance in the form of the receipts that sys/governance.* declare, for
// workflows that drive governance with effects. Field names and shapes are those of the
// sys/Gov*Receipt@1 schemas.

#include "faces/worlds/govern/governance.h"

namespace pawl::worlds {

using cbor::Value;

Value proposed_receipt(const Proposal& p, const std::string& base) {
  return cbor::Map{{"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_base", base}};
}

// The receipt's schema has fewer fields than the report: the fields that it has are handed on.
Value shadowed_receipt(uint64_t id, const Value& value) {
  cbor::Map out{{"proposal_id", id}, {"manifest_hash", value.text_or("manifest_hash")}};
  for (std::string_view name :
       {"module_effect_allowlists", "pending_workflow_receipts", "workflow_instances"}) {
    const Value* list = value.find(name);
    out.emplace_back(name, list ? *list : Value(cbor::Array{}));
  }
  // out[2] is module_effect_allowlists. The report leaves an empty list out; the schema wants it.
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

Value decided_receipt(const Proposal& p, bool approve, Value reason) {
  return cbor::Map{{"proposal_id", p.id},
                   {"patch_hash", p.patch_hash},
                   {"approver", p.approver},
                   {"decision", cbor::Map{{"$tag", approve ? "approve" : "reject"}}},
                   {"reason", std::move(reason)}};
}

Value applied_receipt(const Proposal& p) {
  return cbor::Map{
      {"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_hash_new", p.manifest_hash}};
}

}  // namespace pawl::worlds
