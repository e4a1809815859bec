// Turns the authoring form into a manifest: nodes are hashed, references are filled in, and modules
// get the hash of their built bytes.

#include <algorithm>

#include "faces/worlds/air/manifest.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "manifest.error", std::move(why));
}

// Map keys are not visited: they are int, nat, text, uuid or hash, never a ref (type.cc).
void collect_refs(const Type& type, std::vector<std::string>& out) {
  if (type.form == Form::ref) out.push_back(type.ref);
  for (const Field& f : type.fields)
    collect_refs(*f.type, out);
  if (type.item) collect_refs(*type.item, out);
}

// Schema names that a definition refers to directly. Empty names (options not given) match no
// definition in close() and fall out there.
struct Mentioned {
  std::vector<std::string> operator()(const SchemaDef& d) const {
    std::vector<std::string> out;
    collect_refs(*d.type, out);
    return out;
  }
  std::vector<std::string> operator()(const WorkflowDef& d) const {
    return {d.state, d.event, d.context, d.annotations, d.key_schema};
  }
  std::vector<std::string> operator()(const EffectDef& d) const { return {d.params, d.receipt}; }
  template <class Other>
  std::vector<std::string> operator()(const Other&) const {
    return {};
  }
};

// One call of author(). Unlike Loader it checks no definition against another: its result goes
// through load(), which does.
class Author {
 public:
  Author(const Builtins& builtins, const AuthorOptions& options)
      : builtins_(builtins), options_(options) {}

  Result<Authored> run(const json::Value& nodes) {
    if (!nodes.is_array()) return bad("AIR is a list of nodes, one of them the manifest");
    bool has_manifest = false;
    for (const json::Value& item : nodes.array()) {
      TRY(Node node, parse_node(item));
      if (auto* manifest = std::get_if<Manifest>(&node)) {
        if (has_manifest) return bad("AIR holds one manifest, found two");
        has_manifest = true;
        out_.manifest = std::move(*manifest);
        continue;
      }
      TRY_OK(keep(std::move(node)));
    }
    if (!has_manifest) return bad("AIR holds no manifest: add a node with \"$kind\": \"manifest\"");
    if (options_.close_over_schemas) close();
    fill_hashes(out_.manifest, out_.nodes, builtins_);
    return std::move(out_);
  }

 private:
  // Repeating a built-in definition is allowed when it is the same one: tools print them along.
  Result<void> keep(Node node) {
    std::string name(node_name(node));
    if (is_system(name)) {
      const Builtin* own = builtins_.find(name);
      if (own && own->node_hash == node_hash(node)) return {};
      return bad("reserved sys/* name '" + name + "' is not allowed for " +
                 std::string(kind_of(node)));
    }
    // `body` is what is hashed, so it is rebuilt together with the artifact.
    if (auto* module = std::get_if<ModuleDef>(&node); module && module->artifact == kNoHash) {
      auto built = options_.artifacts.find(name);
      if (built != options_.artifacts.end()) {
        module->artifact = built->second;
        module->body = cbor::Map{
            {"kind", "wasm"},
            {"artifact", cbor::Value(cbor::Map{{"kind", "wasm_module"}, {"hash", built->second}})}};
      }
    }
    const std::string hash = node_hash(node);
    auto [known, fresh] = hashes_.try_emplace({std::string(kind_of(node)), name}, hash);
    if (!fresh && known->second != hash)
      return bad("duplicate " + std::string(kind_of(node)) + " '" + name +
                 "' has conflicting definitions (" + known->second + ", " + hash + ")");
    if (fresh) out_.nodes.push_back(std::move(node));
    return {};
  }

  // Visits every node of the document, listed or not, so one pass closes over all references.
  // Built-in schemas are not listed: every world has them. The order is by name, because the hash
  // of the manifest depends on it.
  void close() {
    std::vector<std::string> wanted;
    for (const Node& node : out_.nodes)
      for (std::string& name : std::visit(Mentioned{}, node))
        wanted.push_back(std::move(name));
    std::sort(wanted.begin(), wanted.end());
    for (const std::string& name : wanted) {
      auto& listed = out_.manifest.schemas;
      if (!hashes_.contains({std::string(kSchema), name}) ||
          std::any_of(listed.begin(), listed.end(), [&](const Ref& r) { return r.name == name; }))
        continue;
      listed.push_back({name, {}});
    }
  }

  const Builtins& builtins_;
  const AuthorOptions& options_;
  Authored out_;
  // The `$kind` of schemas, which close() needs as a key of `hashes_`.
  static constexpr std::string_view kSchema = "defschema";
  std::map<std::pair<std::string, std::string>, std::string> hashes_;  // by kind and name
};

}  // namespace

// A hash that the author wrote is kept. A name that is not found stays without a hash, and load()
// reports it.
void fill_hashes(Manifest& m, const std::vector<Node>& nodes, const Builtins& builtins) {
  std::map<std::pair<std::string_view, std::string_view>, const Node*> by_name;
  for (const Node& node : nodes)
    by_name.try_emplace({kind_of(node), node_name(node)}, &node);
  const std::pair<std::string_view, std::vector<Ref>*> lists[] = {{"defschema", &m.schemas},
                                                                  {"defmodule", &m.modules},
                                                                  {"defworkflow", &m.workflows},
                                                                  {"defeffect", &m.effects},
                                                                  {"defsecret", &m.secrets}};
  for (const auto& [kind, refs] : lists)
    for (Ref& ref : *refs) {
      if (is_given_hash(ref.hash)) continue;
      if (const Builtin* builtin = builtins.find(ref.name))
        ref.hash = builtin->ref_hash;
      else if (auto it = by_name.find({kind, ref.name}); it != by_name.end())
        ref.hash = node_hash(*it->second);
    }
}

Result<Authored> author(const json::Value& nodes, const Builtins& builtins,
                        const AuthorOptions& options) {
  return Author(builtins, options).run(nodes);
}

}  // namespace pawl::worlds
