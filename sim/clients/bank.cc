#include "sim/clients/bank.h"

#include "base/bytes.h"
#include "json/text.h"
#include "sim/account_wasm.h"

namespace pawl::sim {

static constexpr const char* kSchemas = R"([
 {"$kind":"defschema","name":"sim/Id@1","type":{"text":{}}},
 {"$kind":"defschema","name":"sim/Add@1","type":{"record":{"id":{"ref":"sim/Id@1"},
  "n":{"nat":{}},"pays":{"nat":{}},"wait_ns":{"nat":{}},"tell":{"text":{}},"how":{"text":{}}}}},
 {"$kind":"defschema","name":"sim/Told@1","type":{"record":{"id":{"ref":"sim/Id@1"},
  "n":{"nat":{}}}}},
 {"$kind":"defschema","name":"sim/Event@1","type":{"variant":{"Add":{"ref":"sim/Add@1"},
  "Told":{"ref":"sim/Told@1"},"Receipt":{"ref":"sys/EffectReceiptEnvelope@1"},
  "Rejected":{"ref":"sys/EffectReceiptRejected@1"},"Frame":{"ref":"sys/EffectStreamFrame@1"}}}},
 {"$kind":"defschema","name":"sim/State@1","type":{"record":{"balance":{"nat":{}},
  "adds":{"nat":{}},"told":{"nat":{}},"paid":{"nat":{}},"refused":{"nat":{}},"frames":{"nat":{}},
  "set":{"nat":{}},"fired":{"nat":{}},"early":{"nat":{}},"due":{"nat":{}},
  "version":{"nat":{}}}}},
 {"$kind":"defschema","name":"sim/Total@1","type":{"record":{"adds":{"nat":{}},"sum":{"nat":{}}}}},
 {"$kind":"defschema","name":"sim/Pay@1","type":{"record":{"id":{"text":{}},"n":{"nat":{}},
  "index":{"nat":{}}}}},
 {"$kind":"defschema","name":"sim/Paid@1","type":{"record":{"code":{"int":{}}}}},
 {"$kind":"defeffect","name":"sim/pay@1","params":"sim/Pay@1","receipt":"sim/Paid@1",
  "impl":{"module":"sys/builtin_effects@1","entrypoint":"pay"}},
 {"$kind":"defmodule","name":"sim/account_wasm@1",
  "runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}},
 {"$kind":"defworkflow","name":"sim/total@1","state":"sim/Total@1","event":"sim/Add@1",
  "effects_emitted":[],"context":"sys/WorkflowContext@1",
  "impl":{"module":"sim/account_wasm@1","entrypoint":"total"}},
 {"$kind":"manifest","air_version":"2","schemas":[{"name":"sim/Id@1"},{"name":"sim/Add@1"},
  {"name":"sim/Told@1"},{"name":"sim/Event@1"},{"name":"sim/State@1"},{"name":"sim/Total@1"},
  {"name":"sim/Pay@1"},{"name":"sim/Paid@1"}],"modules":[{"name":"sim/account_wasm@1"}],
  "workflows":[{"name":"sim/account@1"},{"name":"sim/total@1"}],"effects":[{"name":"sim/pay@1"}],
  "routing":{"subscriptions":[
  {"event":"sim/Add@1","workflow":"sim/account@1","key_field":"id"},
  {"event":"sim/Told@1","workflow":"sim/account@1","key_field":"id"},
  {"event":"sim/Add@1","workflow":"sim/total@1"}]}}])";

json::Value account_workflow(std::string_view entrypoint) {
  return json::object(
      {{"$kind", "defworkflow"},
       {"name", kAccountWorkflow},
       {"state", "sim/State@1"},
       {"event", "sim/Event@1"},
       {"key_schema", "sim/Id@1"},
       {"context", "sys/WorkflowContext@1"},
       {"effects_emitted", json::Array{std::string(kPayEffect), "sys/timer.set@1"}},
       {"impl", json::object({{"module", "sim/account_wasm@1"}, {"entrypoint", entrypoint}})}});
}

json::Value bank_air() {
  json::Value air = json::parse(kSchemas).value_or(json::Value());
  air.array().insert(air.array().begin(), account_workflow("step"));
  return air;
}

std::string account_module() {
  return base64(BytesView(reinterpret_cast<const char*>(kAccountWasm), sizeof kAccountWasm));
}

// Canonical CBOR: the tag that every value begins with, then a short text.
std::string key_b64(std::string_view id) {
  CHECK(id.size() < 24);
  Bytes key = "\xd9\xd9\xf7";
  key += static_cast<char>(0x60 + id.size());
  return wire::percent_encode(base64(key + Bytes(id)));
}

uint64_t number_in(const json::Value& value, std::string_view name) {
  const json::Value* found = value.find(name);
  return found && found->is_number() ? found->as_uint64().value_or(0) : 0;
}

}  // namespace pawl::sim
