#include "faces/worlds/air/manifest.h"

#include <algorithm>

#include "cbor/cbor.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> not_loaded(std::string why) {
  return fail(Code::invalid, "manifest.error",
              "manifest loader error: load manifest: " + std::move(why));
}
std::unexpected<Error> not_valid(std::string why) {
  return fail(Code::invalid, "manifest.validation", "manifest validation error: " + std::move(why));
}

// One call of load(). The order matters: all definitions are collected first, then each is checked
// against the others, and routes come last because they need the arms that check_family() finds.
class Loader {
 public:
  Loader(Manifest manifest, const FindNode& find, const Builtins& builtins)
      : find_(find), builtins_(builtins), out_(builtins) {
    out_.manifest = std::move(manifest);
    out_.hash = manifest_hash(out_.manifest);
  }

  Result<LoadedManifest> run(const LoadOptions& options) {
    TRY_OK(load_all<SchemaDef>(out_.manifest.schemas, [&](SchemaDef d, std::string) {
      out_.schemas.add(d.name, d.type);
    }));
    TRY_OK(load_all<ModuleDef>(out_.manifest.modules, [&](ModuleDef d, std::string h) {
      std::string name = d.name;
      out_.modules[name] = {std::move(d), std::move(h)};
    }));
    TRY_OK(load_all<WorkflowDef>(out_.manifest.workflows, [&](WorkflowDef d, std::string h) {
      std::string name = d.name;
      out_.workflows[name] = Workflow{std::move(d), std::move(h), {}, {}, {}, {}};
    }));
    TRY_OK(load_all<EffectDef>(out_.manifest.effects, [&](EffectDef d, std::string h) {
      std::string name = d.name;
      out_.effects[name] = {std::move(d), std::move(h)};
    }));
    TRY_OK(load_all<SecretDef>(out_.manifest.secrets, [&](SecretDef d, std::string) {
      std::string name = d.name;
      out_.secrets[name] = std::move(d);
    }));
    // After the manifest's own: no definition of it can have a sys/* name (load_all, check_system).
    add_builtins();
    Schemas::Depths known;
    for (const Ref& ref : out_.manifest.schemas)
      TRY_OK(out_.schemas.refuse_recursion(ref.name, known));
    out_.schemas.find_hashes();
    for (auto& [name, workflow] : out_.workflows)
      TRY_OK(check(workflow));
    for (const auto& [name, effect] : out_.effects)
      TRY_OK(check(effect.def));
    for (const Subscription& s : out_.manifest.subscriptions)
      TRY_OK(route(s));
    // Last, so that a manifest with other defects says those first.
    if (!out_.secrets.empty() && !options.secrets_can_be_resolved)
      return fail(Code::invalid, "secret.resolver_missing",
                  "secret resolver missing for manifest containing secrets");
    return std::move(out_);
  }

 private:
  template <class Def, class Keep>
  // The node under the hash must be of the listed kind and name: a hash alone could name anything.
  Result<void> load_all(const std::vector<Ref>& refs, Keep keep) {
    for (const Ref& ref : refs) {
      if (is_system(ref.name)) {
        TRY_OK(check_system<Def>(ref));
        continue;
      }
      if (ref.hash.empty())
        return not_loaded("'" + ref.name +
                          "' is listed, but neither its definition nor its hash is given");
      TRY(Node node, find_(ref.hash));
      const Def* def = std::get_if<Def>(&node);
      if (!def)
        return not_loaded("'" + ref.name + "' is listed as another kind than the " +
                          std::string(kind_of(node)) + " that its hash names");
      if (def->name != ref.name)
        return not_loaded("the hash of '" + ref.name + "' names '" + def->name + "'");
      keep(*def, ref.hash);
      out_.nodes.push_back(std::move(node));
    }
    return {};
  }

  // A sys/* reference has exactly the hash of the built-in definition. There are no sys/* secrets.
  template <class Def>
  Result<void> check_system(const Ref& ref) {
    const Builtin* builtin = builtins_.find(ref.name);
    if (!builtin || !std::holds_alternative<Def>(builtin->node)) {
      return not_loaded("reserved sys/* name '" + ref.name + "' is not allowed for " +
                        std::string(kind_of(Node(Def{}))));
    }
    if (!ref.hash.empty() && ref.hash != builtin->ref_hash)
      return not_loaded("hash mismatch for Node: expected " + builtin->ref_hash + ", got " +
                        ref.hash);
    return {};
  }

  void add_builtins() {
    for (const auto& [name, row] : builtins_.all()) {
      if (const auto* e = std::get_if<EffectDef>(&row.node))
        out_.effects[name] = {*e, row.node_hash};
      if (const auto* m = std::get_if<ModuleDef>(&row.node))
        out_.modules[name] = {*m, row.node_hash};
      if (const auto* w = std::get_if<WorkflowDef>(&row.node))
        out_.workflows[name] = Workflow{*w, row.node_hash, {}, {}, {}, {}};
    }
  }

  Result<TypePtr> schema(const std::string& name) const {
    TypePtr type = out_.schemas.find(name);
    if (!type) return not_valid("schema '" + name + "' not found");
    return type;
  }

  // Resolves the names of a workflow and keeps what steps need: its module, its types, the effects
  // that it may emit.
  Result<void> check(Workflow& w) {
    const WorkflowDef& d = w.def;
    auto module = out_.modules.find(d.impl.module);
    if (module == out_.modules.end())
      return not_valid("definition '" + d.name + "' implementation references inactive module '" +
                       d.impl.module + "'");
    if (module->second.def.runtime == "builtin" && !is_system(d.name))
      return not_valid("module '" + d.impl.module + "' runtime '" + module->second.def.runtime +
                       "' does not support workflow definition '" + d.name + "'");
    w.module = &module->second;
    TRY(w.state, schema(d.state));
    TRY(w.event, schema(d.event));
    for (const std::string* name : {&d.context, &d.annotations}) {
      if (name->empty()) continue;
      TRY(TypePtr unused, schema(*name));
      (void)unused;
    }
    if (d.keyed()) {
      TRY(w.key, schema(d.key_schema));
    }
    TRY_OK(check_family(w));
    for (const std::string& effect : d.effects_emitted) {
      if (!out_.effects.contains(effect))
        return not_valid("effect '" + effect + "' not found or not active");
      w.may_emit.insert(effect);
    }
    return {};
  }

  // The event schema is a record, a ref, or a variant whose arms are all refs to different schemas.
  Result<void> check_family(Workflow& w) const {
    auto bad = [&](std::string_view why) {
      return not_valid("workflow '" + w.def.name + "' event family schema '" + w.def.event +
                       "' is invalid: " + std::string(why));
    };
    if (w.event->form == Form::record) return {};
    auto resolved = out_.schemas.resolve(*w.event);
    if (w.event->form == Form::ref && (!resolved || (*resolved)->form != Form::variant)) return {};
    if (!resolved || (*resolved)->form != Form::variant)
      return bad("event family must be a ref, variant of refs, or record");
    for (const Field& arm : (*resolved)->fields) {
      if (arm.type->form != Form::ref) return bad("variant arm is not a ref");
      if (!w.arms.emplace(arm.type->ref, arm.name).second)
        return bad("duplicate event schema in variant");
    }
    return {};
  }

  // Whether an executor does this effect is not known here: executors poll for it by name.
  Result<void> check(const EffectDef& d) const {
    if (!out_.modules.contains(d.impl.module))
      return not_valid("definition '" + d.name + "' implementation references inactive module '" +
                       d.impl.module + "'");
    for (const std::string* name : {&d.params, &d.receipt}) {
      TRY(TypePtr unused, schema(*name));
      (void)unused;
    }
    return {};
  }

  // The subscribed schema is the workflow's own event schema, the schema that it is an alias of, or
  // one arm of its variant.
  Result<void> route(const Subscription& s) {
    TRY(TypePtr event, schema(s.event));
    auto it = out_.workflows.find(s.workflow);
    if (it == out_.workflows.end())
      return not_valid("workflow '" + s.workflow + "' not found or not active");
    const Workflow& w = it->second;
    const bool own = s.event == w.def.event;
    const bool alias = w.event->form == Form::ref && w.event->ref == s.event;
    const auto arm = w.arms.find(s.event);
    if (!own && !alias && arm == w.arms.end())
      return not_valid("route to workflow '" + s.workflow + "' uses schema '" + s.event +
                       "' but workflow event schema is '" + w.def.event + "'");
    // Keyed workflows need a key_field and others must not have one.
    std::vector<std::string> path;
    if (w.def.keyed()) {
      if (!s.key_field)
        return not_valid("route to keyed workflow '" + s.workflow + "' must specify key_field");
      path = key_path(*s.key_field);
      TRY_OK(check_key(s, w, *event, path));
    } else if (s.key_field) {
      return not_valid("route to non-keyed workflow '" + s.workflow +
                       "' must not specify key_field");
    }
    bind(s, w, own, path);
    return {};
  }

  // A subscription to the workflow's own event schema also subscribes to each arm of the variant,
  // so that a caller may send the arm's schema directly. The event is then wrapped as that arm.
  void bind(const Subscription& s, const Workflow& w, bool own,
            const std::vector<std::string>& path) {
    auto arm = w.arms.find(s.event);
    if (!own) {
      out_.routes[s.event].push_back(
          {&w, arm == w.arms.end() ? std::string() : arm->second, s.event, path});
      return;
    }
    out_.routes[s.event].push_back({&w, {}, s.event, path});
    if (w.event->form == Form::ref) out_.routes[w.event->ref].push_back({&w, {}, s.event, path});
    // Typed receipts of older modules. They lack the workflow's key, so a keyed workflow gets no
    // such route; a receipt reaches its cell by the key of the intent instead.
    static constexpr std::string_view kTyped[] = {"sys/TimerFired@1", "sys/BlobPutResult@1",
                                                  "sys/BlobGetResult@1"};
    for (const auto& [schema, tag] : w.arms) {
      if (w.def.keyed() &&
          std::find(std::begin(kTyped), std::end(kTyped), schema) != std::end(kTyped))
        continue;
      out_.routes[schema].push_back({&w, tag, s.event, path});
    }
  }

  Result<void> check_key(const Subscription& s, const Workflow& w, const Type& event,
                         const std::vector<std::string>& path) const {
    std::string found = "missing";
    if (path_fits(event, path, 0, *w.key, found)) return {};
    return not_valid("route to workflow '" + s.workflow + "' uses key_field '" + *s.key_field +
                     "' with schema '" + s.event + "', but key schema '" + w.def.key_schema +
                     "' does not match '" + found + "'");
  }

  // The path goes through records by field and through a variant by `$value`. It must exist in
  // every arm that callers may send.
  bool path_fits(const Type& type, const std::vector<std::string>& path, size_t at, const Type& key,
                 std::string& found) const {
    auto resolved = out_.schemas.resolve(type);
    if (!resolved) return false;
    const Type& t = **resolved;
    if (at == path.size()) {
      if (path.empty()) return false;
      if (same_type(t, key, out_.schemas)) return true;
      found = type.form == Form::ref ? type.ref : std::string(name_of(t.form));
      return false;
    }
    if (t.form == Form::record) {
      const Field* f = t.find(path[at]);
      return f && path_fits(*f->type, path, at + 1, key, found);
    }
    if (t.form != Form::variant || path[at] != "$value") return false;
    // Arms of sys/* schemas (receipts) are not sent by callers and need no key.
    bool any = false;
    for (const Field& arm : t.fields) {
      if (arm.type->form == Form::ref && is_system(arm.type->ref)) continue;
      if (!path_fits(*arm.type, path, at + 1, key, found)) return false;
      any = true;
    }
    return any;
  }

  const FindNode& find_;
  const Builtins& builtins_;
  LoadedManifest out_;
};

}  // namespace

const Workflow* LoadedManifest::workflow(std::string_view name) const {
  auto it = workflows.find(name);
  return it == workflows.end() ? nullptr : &it->second;
}
const Module* LoadedManifest::module(std::string_view name) const {
  auto it = modules.find(name);
  return it == modules.end() ? nullptr : &it->second;
}
const DeclaredEffect* LoadedManifest::effect(std::string_view name) const {
  auto it = effects.find(name);
  return it == effects.end() ? nullptr : &it->second;
}

Result<LoadedManifest> load(Manifest manifest, const FindNode& find, const Builtins& builtins,
                            const LoadOptions& options) {
  return Loader(std::move(manifest), find, builtins).run(options);
}

FindNode finder(const std::vector<Node>& nodes) {
  std::map<std::string, const Node*> by_hash;
  for (const Node& node : nodes)
    by_hash[node_hash(node)] = &node;
  return [by_hash](const std::string& hash) -> Result<Node> {
    auto it = by_hash.find(hash);
    if (it == by_hash.end())
      return not_loaded(
          "node " + hash +
          ": entry not found; put the definition beside the manifest or into the store first");
    return *it->second;
  };
}

std::vector<std::string> key_path(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    if (dot > 0) out.emplace_back(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return out;
}

}  // namespace pawl::worlds
