#include "faces/worlds/air/node.h"

#include <algorithm>
#include <array>

#include "cbor/cbor.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// In the order of the variant Node, because kind_of() indexes it.
constexpr std::array<std::string_view, 6> kKinds{"defschema", "defmodule", "defworkflow",
                                                 "defeffect", "defsecret", "manifest"};

// Readers of JSON nodes, one per `$kind`, and the way back to the CBOR that is hashed. Each reader
// takes the whole node and ignores members that it does not know.
std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "manifest.error", std::move(why));
}

Result<std::string> text_of(const json::Value& node, std::string_view field) {
  const json::Value* v = node.find(field);
  if (!v) return bad("missing field `" + std::string(field) + "`");
  if (!v->is_string()) return bad("field `" + std::string(field) + "` must be a string");
  return v->string();
}

Result<std::string> name_field(const json::Value& node, std::string_view field) {
  TRY(std::string name, text_of(node, field));
  if (!is_name(name)) return bad("'" + name + "' is no name: write ns/name@1");
  return name;
}

Result<std::string> module_field(const json::Value& node, std::string_view field) {
  TRY(std::string name, text_of(node, field));
  if (!is_module_name(name)) return bad("'" + name + "' is no name of a module: write ns/name@1");
  return name;
}

// Empty when the member is absent or null: no name is empty.
Result<std::string> optional_name(const json::Value& node, std::string_view field) {
  const json::Value* v = node.find(field);
  if (!v || v->is_null()) return std::string();
  return name_field(node, field);
}

Result<Impl> impl_of(const json::Value& node) {
  const json::Value* impl = node.find("impl");
  if (!impl) return bad("missing field `impl`");
  Impl out;
  TRY(out.module, module_field(*impl, "module"));
  TRY(out.entrypoint, text_of(*impl, "entrypoint"));
  return out;
}

// {"name": "shop/Order@1", "type": {"record": {"id": {"text": {}}}}}
Result<Node> schema(const json::Value& node) {
  SchemaDef out;
  TRY(out.name, name_field(node, "name"));
  const json::Value* type = node.find("type");
  if (!type) return bad("missing field `type`");
  auto parsed = parse_type(*type);
  if (!parsed) return bad("schema '" + out.name + "': " + parsed.error().message);
  out.type = std::move(*parsed);
  return Node(std::move(out));
}

Result<std::string> hash_field(const json::Value& node, std::string_view field) {
  TRY(std::string hash, text_of(node, field));
  if (!is_hash(hash))
    return bad("'" + hash + "' is no hash: write sha256: and 64 lower-case hex digits");
  return hash;
}

// In authoring form a hash that is not known yet is null, empty, or "sha256:" alone.
bool is_given(const json::Value* hash) {
  if (!hash || hash->is_null()) return false;
  return !hash->is_string() ||
         !(hash->string().empty() || hash->string() == "sha256" || hash->string() == "sha256:");
}

// Parsed so that manifests of the original load and hash alike. Running such a module fails.
Result<Value> python_runtime(const json::Value& runtime) {
  TRY(std::string version, text_of(runtime, "python"));
  const json::Value* artifact = runtime.find("artifact");
  if (!artifact) return bad("missing field `artifact`");
  TRY(std::string kind, text_of(*artifact, "kind"));
  if (kind != "python_bundle" && kind != "workspace_root")
    return bad("unknown artifact kind '" + kind +
               "': python takes python_bundle or workspace_root");
  TRY(std::string root, hash_field(*artifact, "root_hash"));
  cbor::Map body{{"kind", kind}, {"root_hash", root}};
  if (const json::Value* path = artifact->find("path"); path && path->is_string())
    body.emplace_back("path", path->string());
  return Value(
      cbor::Map{{"kind", "python"}, {"python", version}, {"artifact", Value(std::move(body))}});
}

// {"name": "shop/m@1",
// "runtime": {"kind": "wasm", "artifact": {"kind": "wasm_module", "hash": "sha256:..."}}}
// `body` is rebuilt from what was read, so that ignored members of the document are not hashed.
Result<Node> module(const json::Value& node) {
  ModuleDef out;
  TRY(out.name, module_field(node, "name"));
  const json::Value* runtime = node.find("runtime");
  if (!runtime) return bad("missing field `runtime`");
  TRY(out.runtime, text_of(*runtime, "kind"));
  if (out.runtime == "builtin") {
    out.body = cbor::Map{{"kind", "builtin"}};
  } else if (out.runtime == "python") {
    TRY(out.body, python_runtime(*runtime));
  } else if (out.runtime == "wasm") {
    const json::Value* artifact = runtime->find("artifact");
    if (!artifact) return bad("missing field `artifact`");
    TRY(std::string kind, text_of(*artifact, "kind"));
    if (kind != "wasm_module")
      return bad("unknown artifact kind '" + kind + "': wasm takes wasm_module");
    out.artifact = kNoHash;
    if (is_given(artifact->find("hash"))) {
      TRY(out.artifact, hash_field(*artifact, "hash"));
    }
    out.body = cbor::Map{{"kind", "wasm"},
                         {"artifact", Value(cbor::Map{{"kind", kind}, {"hash", out.artifact}})}};
  } else {
    return bad("unknown runtime '" + out.runtime + "' of module '" + out.name +
               "': wasm, builtin or python");
  }
  return Node(std::move(out));
}

// {"name", "state", "event", "context"?, "annotations"?, "key_schema"?, "effects_emitted": [names],
// "determinism"?, "impl": {"module", "entrypoint"}}. Names only: load() looks them up.
Result<Node> workflow(const json::Value& node) {
  WorkflowDef out;
  TRY(out.name, name_field(node, "name"));
  TRY(out.state, name_field(node, "state"));
  TRY(out.event, name_field(node, "event"));
  TRY(out.context, optional_name(node, "context"));
  TRY(out.annotations, optional_name(node, "annotations"));
  TRY(out.key_schema, optional_name(node, "key_schema"));
  const json::Value* effects = node.find("effects_emitted");
  if (!effects) return bad("missing field `effects_emitted`");
  if (!effects->is_array()) return bad("field `effects_emitted` must be a list of names");
  for (const json::Value& e : effects->array()) {
    if (!e.is_string() || !is_name(e.string()))
      return bad("field `effects_emitted` lists effects by name, as ns/name@1");
    out.effects_emitted.push_back(e.string());
  }
  if (const json::Value* d = node.find("determinism")) {
    if (!d->is_string() ||
        (d->string() != "strict" && d->string() != "checked" && d->string() != "decision_log"))
      return bad("field `determinism` is strict, checked or decision_log");
    out.determinism = d->string();
  }
  TRY(out.impl, impl_of(node));
  return Node(std::move(out));
}

// {"name", "params": schema, "receipt": schema, "impl": {"module", "entrypoint"}}
Result<Node> effect(const json::Value& node) {
  EffectDef out;
  TRY(out.name, name_field(node, "name"));
  TRY(out.params, name_field(node, "params"));
  TRY(out.receipt, name_field(node, "receipt"));
  TRY(out.impl, impl_of(node));
  return Node(std::move(out));
}

// {"name": "llm/openai_api@1", "binding_id": "env:OPENAI_API_KEY",
// "expected_digest"?: "sha256:..."}
Result<Node> secret(const json::Value& node) {
  SecretDef out;
  TRY(out.name, name_field(node, "name"));
  TRY(out.binding_id, text_of(node, "binding_id"));
  if (const json::Value* d = node.find("expected_digest"); d && !d->is_null()) {
    TRY(out.expected_digest, hash_field(node, "expected_digest"));
  }
  return Node(std::move(out));
}

// [{"name": "shop/Order@1", "hash"?: "sha256:..."}]
Result<std::vector<Ref>> refs(const json::Value& list, std::string_view field) {
  if (!list.is_array()) return bad("field `" + std::string(field) + "` must be a list of refs");
  std::vector<Ref> out;
  for (const json::Value& item : list.array()) {
    Ref ref;
    TRY(ref.name, (field == "modules" ? module_field : name_field)(item, "name"));
    if (is_given(item.find("hash"))) {
      TRY(ref.hash, hash_field(item, "hash"));
    }
    out.push_back(std::move(ref));
  }
  return out;
}

// {"subscriptions": [{"event": schema, "workflow": name, "key_field"?: "order.id"}]}
Result<void> routing(Manifest& out, const json::Value& value) {
  if (value.is_null()) return {};
  if (!value.is_object()) return bad("field `routing` is {\"subscriptions\": [...]}");
  out.has_routing = true;
  const json::Value* list = value.find("subscriptions");
  if (!list) return {};
  if (!list->is_array()) return bad("field `routing.subscriptions` must be a list");
  for (const json::Value& item : list->array()) {
    Subscription s;
    TRY(s.event, name_field(item, "event"));
    if (!item.find("workflow") && item.find("op")) {  // the document's older word
      TRY(s.workflow, name_field(item, "op"));
    } else {
      TRY(s.workflow, name_field(item, "workflow"));
    }
    if (const json::Value* k = item.find("key_field"); k && !k->is_null()) {
      if (!k->is_string()) return bad("field `key_field` must be a string");
      s.key_field = k->string();
    }
    out.subscriptions.push_back(std::move(s));
  }
  return {};
}

// An entry without a valid key is refused. If it counted as "no key", receipts would go unchecked.
Result<void> executor_keys(Manifest& out, const json::Value& keys) {
  auto wrong = [] {
    return bad("executor_keys maps effect names to Ed25519 public keys, 32 bytes in base64");
  };
  if (!keys.is_object()) return wrong();
  for (const auto& [effect, key] : keys.object()) {
    auto bytes = key.is_string() ? unbase64(key.string()) : Result<Bytes>(wrong());
    if (!is_name(effect) || !bytes || bytes->size() != 32) return wrong();
    out.executor_keys.emplace_back(effect, key.string());
  }
  return {};
}

// Effects of a world's own are carried out by executors anyway, and the kernel answers the others.
Result<void> external_effects(Manifest& out, const json::Value& effects) {
  auto wrong = [](const std::string& got) {
    return bad("external_effects lists effects that executors take over from this server: only " +
               std::string(kHttpEffect) + " can be listed, not " + got);
  };
  if (!effects.is_array()) return wrong(json::print(effects));
  for (const json::Value& effect : effects.array()) {
    if (!effect.is_string() || effect.string() != kHttpEffect) return wrong(json::print(effect));
    if (out.external_effects.empty()) out.external_effects.push_back(effect.string());
  }
  return {};
}

// The lists of references in a manifest. `secrets` is optional and not hashed when it is empty.
struct ListField {
  std::string_view name;
  std::vector<Ref> Manifest::*list;
  bool required;
};
constexpr std::array<ListField, 5> kLists{{
    {"schemas", &Manifest::schemas, true},
    {"modules", &Manifest::modules, true},
    {"workflows", &Manifest::workflows, true},
    {"effects", &Manifest::effects, true},
    {"secrets", &Manifest::secrets, false},
}};

using Parse = Result<Node> (*)(const json::Value&);
// In the order of kKinds; the manifest, which is last there, has its own function.
constexpr std::array<Parse, 5> kParsers{schema, module, workflow, effect, secret};

Value refs_value(const std::vector<Ref>& refs) {
  cbor::Array out;
  for (const Ref& r : refs)
    out.push_back(cbor::Map{{"name", r.name}, {"hash", r.hash}});
  return Value(std::move(out));
}

Value impl_value(const Impl& impl) {
  return cbor::Map{{"module", impl.module}, {"entrypoint", impl.entrypoint}};
}

// Members with their default value are left out: a node that says it and one that does not have the
// same hash, which is the original's.
struct ToMap {
  cbor::Map operator()(const SchemaDef& d) const {
    return {{"name", d.name}, {"type", to_value(*d.type)}};
  }
  cbor::Map operator()(const ModuleDef& d) const { return {{"name", d.name}, {"runtime", d.body}}; }
  cbor::Map operator()(const WorkflowDef& d) const {
    cbor::Array effects(d.effects_emitted.begin(), d.effects_emitted.end());
    cbor::Map out{{"name", d.name},
                  {"state", d.state},
                  {"event", d.event},
                  {"effects_emitted", Value(std::move(effects))},
                  {"impl", impl_value(d.impl)}};
    if (!d.context.empty()) out.emplace_back("context", d.context);
    if (!d.annotations.empty()) out.emplace_back("annotations", d.annotations);
    if (!d.key_schema.empty()) out.emplace_back("key_schema", d.key_schema);
    if (d.determinism != "strict") out.emplace_back("determinism", d.determinism);
    return out;
  }
  cbor::Map operator()(const EffectDef& d) const {
    return {{"name", d.name},
            {"params", d.params},
            {"receipt", d.receipt},
            {"impl", impl_value(d.impl)}};
  }
  cbor::Map operator()(const SecretDef& d) const {
    cbor::Map out{{"name", d.name}, {"binding_id", d.binding_id}};
    if (!d.expected_digest.empty()) out.emplace_back("expected_digest", d.expected_digest);
    return out;
  }
  cbor::Map operator()(const Manifest& m) const {
    cbor::Map out{{"air_version", "2"}};
    for (const ListField& f : kLists)
      // An empty optional list is left out. An empty required list is written.
      if (f.required || !(m.*f.list).empty()) out.emplace_back(f.name, refs_value(m.*f.list));
    if (m.has_routing) {
      cbor::Map routing;
      if (!m.subscriptions.empty()) routing.emplace_back("subscriptions", subscriptions_value(m));
      out.emplace_back("routing", Value(std::move(routing)));
    }
    if (!m.executor_keys.empty()) {
      cbor::Map keys;
      for (const auto& [effect, key] : m.executor_keys)
        keys.emplace_back(effect, key);
      out.emplace_back("executor_keys", Value(std::move(keys)));
    }
    if (!m.external_effects.empty())
      out.emplace_back("external_effects",
                       Value(cbor::Array(m.external_effects.begin(), m.external_effects.end())));
    return out;
  }
};

}  // namespace

std::string_view kind_of(const Node& node) { return kKinds[node.index()]; }

std::string_view node_name(const Node& node) {
  return std::visit(
      [](const auto& d) -> std::string_view {
        if constexpr (requires { d.name; })
          return d.name;
        else
          return {};
      },
      node);
}

// Strict, unlike definitions: an unknown field would silently not be hashed.
Result<Manifest> parse_manifest(const json::Value& node) {
  if (!node.is_object()) return bad("a manifest is an object");
  if (node.find("ops")) return bad("manifest.ops is not part of AIR v2; use workflows/effects");
  for (const auto& [name, value] : node.object()) {
    if (name == "$kind" || name == "air_version" || name == "routing" || name == "executor_keys" ||
        name == "external_effects" || name == "$comment")
      continue;
    if (std::none_of(kLists.begin(), kLists.end(),
                     [&](const ListField& f) { return f.name == name; }))
      return bad("unknown field `" + name +
                 "`, expected one of `$kind`, `air_version`, `schemas`, `modules`, `workflows`, "
                 "`effects`, `secrets`, `routing`, `ops`");
  }
  const json::Value* version = node.find("air_version");
  if (!version)
    return bad(
        "manifest loader error: load manifest: manifest is missing air_version (supported: 2)");
  if (!version->is_string() || version->string() != "2")
    return bad("manifest loader error: load manifest: manifest declares unsupported air_version '" +
               std::string(node.string_or("air_version")) + "' (supported: 2)");
  Manifest out;
  for (const ListField& f : kLists) {
    const json::Value* list = node.find(f.name);
    if (!list && f.required) return bad("missing field `" + std::string(f.name) + "`");
    if (!list) continue;
    TRY(out.*f.list, refs(*list, f.name));
  }
  if (const json::Value* r = node.find("routing")) TRY_OK(routing(out, *r));
  if (const json::Value* keys = node.find("executor_keys"); keys && !keys->is_null())
    TRY_OK(executor_keys(out, *keys));
  if (const json::Value* effects = node.find("external_effects"); effects && !effects->is_null())
    TRY_OK(external_effects(out, *effects));
  return out;
}

Result<Node> parse_node(const json::Value& node) {
  if (!node.is_object()) return bad("an AIR node is an object with $kind");
  TRY(std::string kind, text_of(node, "$kind"));
  if (kind == "manifest") {
    TRY(Manifest m, parse_manifest(node));
    return Node(std::move(m));
  }
  for (size_t i = 0; i < kParsers.size(); ++i) {
    if (kKinds[i] != kind) continue;
    auto parsed = kParsers[i](node);
    // Name the definition: a manifest holds hundreds.
    if (!parsed && node.find("name"))
      return bad(kind + " '" + std::string(node.string_or("name")) +
                 "': " + parsed.error().message);
    return parsed;
  }
  return bad("unknown $kind '" + kind +
             "': defschema, defmodule, defworkflow, defeffect, defsecret or manifest");
}

Value to_value(const Node& node, bool with_kind) {
  cbor::Map out = std::visit(ToMap{}, node);
  if (with_kind) out.emplace_back("$kind", kind_of(node));
  return Value(std::move(out));
}

Value to_value(const Manifest& manifest, bool with_kind) {
  cbor::Map out = ToMap{}(manifest);
  if (with_kind) out.emplace_back("$kind", "manifest");
  return Value(std::move(out));
}

// Also hashed alone: a patch names this hash to say which routing it replaces.
Value subscriptions_value(const Manifest& manifest) {
  cbor::Array out;
  for (const Subscription& s : manifest.subscriptions) {
    cbor::Map item{{"event", s.event}, {"workflow", s.workflow}};
    if (s.key_field) item.emplace_back("key_field", *s.key_field);
    out.push_back(Value(std::move(item)));
  }
  return Value(std::move(out));
}

std::string node_hash(const Node& node) { return hash_text(cbor::hash_of(to_value(node, true))); }
std::string bare_hash(const Node& node) { return hash_text(cbor::hash_of(to_value(node, false))); }
std::string manifest_hash(const Manifest& manifest) {
  return hash_text(cbor::hash_of(to_value(manifest, false)));
}

}  // namespace pawl::worlds
