#pragma once
// An AIR node is one definition: a schema, a module, a workflow, an effect, a secret, or the
// manifest that lists them. Its hash is the hash of its canonical CBOR, without members that have
// their default value.

#include <optional>
#include <variant>

#include "faces/worlds/air/name.h"
#include "faces/worlds/air/type.h"

namespace pawl::worlds {

struct SchemaDef {
  std::string name;
  TypePtr type;
};
// A module runs where its runtime says. `python` parses and is hashed, but no world can run it.
struct ModuleDef {
  std::string name;
  std::string runtime;     // wasm, builtin, python
  cbor::Value body;        // the runtime, in the form that is hashed
  std::string artifact{};  // wasm: the hash of the module's bytes; kNoHash until it is built
};
// The export of a module that runs a workflow, or the executor's name for an effect.
struct Impl {
  std::string module, entrypoint;
};
struct WorkflowDef {
  std::string name, state, event;
  std::string context{}, annotations{}, key_schema{};  // empty: not given
  std::vector<std::string> effects_emitted{};
  // strict, checked or decision_log; only strict has a behaviour of its own.
  std::string determinism = "strict";
  Impl impl{};
  bool keyed() const { return !key_schema.empty(); }
};
struct EffectDef {
  std::string name, params, receipt;
  Impl impl;
};
// `binding_id` names a stored secret or env:NAME. `expected_digest` is empty when none is given.
struct SecretDef {
  std::string name, binding_id, expected_digest;
};
struct Ref {
  std::string name, hash;  // the hash may be empty in authoring form
};
struct Subscription {
  std::string event, workflow;
  std::optional<std::string> key_field{};
};
// The effect that this server carries out and that a manifest may give to executors outside.
inline constexpr std::string_view kHttpEffect = "sys/http.request@1";
struct Manifest {
  std::vector<Ref> schemas{}, modules{}, workflows{}, effects{}, secrets{};
  // `routing` was written, even if empty: it is then part of the hash.
  bool has_routing = false;
  std::vector<Subscription> subscriptions{};
  // Executors whose receipts must be signed: effect name -> Ed25519 public key. This is not part of
  // AIR v2, so it is left out of the hash when it is empty.
  std::vector<std::pair<std::string, std::string>> executor_keys{};
  // Effects that this server can carry out and executors outside carry out instead. Left out of the
  // hash when it is empty, like executor_keys.
  std::vector<std::string> external_effects{};
};
using Node = std::variant<SchemaDef, ModuleDef, WorkflowDef, EffectDef, SecretDef, Manifest>;

// The names of `$kind`, in the order of the variant.
std::string_view kind_of(const Node& node);
std::string_view node_name(const Node& node);  // empty for a manifest

// Error: manifest.error. Unknown members are ignored in definitions and refused in manifests.
Result<Node> parse_node(const json::Value& node);
Result<Manifest> parse_manifest(const json::Value& node);

// The form that is hashed and stored. Members are in any order: canonical encoding sorts them.
cbor::Value to_value(const Node& node, bool with_kind);
cbor::Value to_value(const Manifest& manifest, bool with_kind);
cbor::Value subscriptions_value(const Manifest& manifest);

std::string node_hash(const Node& node);  // with $kind
std::string bare_hash(const Node& node);  // without $kind: how manifests refer to sys/* definitions
std::string manifest_hash(const Manifest& manifest);  // without $kind

}  // namespace pawl::worlds
