#include "faces/worlds/air/patch.h"

#include <algorithm>
#include <array>

#include "cbor/cbor.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "validation_failed", "patch document: " + std::move(why));
}

struct ListOf {
  std::string_view kind;
  std::vector<Ref> Manifest::*list;
};
constexpr std::array<ListOf, 5> kLists{{
    {"defschema", &Manifest::schemas},
    {"defmodule", &Manifest::modules},
    {"defworkflow", &Manifest::workflows},
    {"defeffect", &Manifest::effects},
    {"defsecret", &Manifest::secrets},
}};

// Applies the changes of one document to a copy of the base manifest, in the order of the document.
// Changes see those before them: a pre_hash is that of the definition as it stands then.
class Compiler {
 public:
  explicit Compiler(const Manifest& base) { out_.manifest = base; }

  Result<Patch> run(const json::Value& document) {
    if (!document.is_object()) return bad("is an object with base_manifest_hash and patches");
    if (const json::Value* version = document.find("version");
        version && !(version->is_string() && version->string() == "2"))
      return bad("unsupported patch document version: " +
                 (version->is_string() ? version->string() : json::print(*version)) +
                 " (supported: \"2\")");
    // A document made for another manifest would undo what changed in between.
    const std::string base(document.string_or("base_manifest_hash"));
    const std::string now = manifest_hash(out_.manifest);
    if (base != now)
      return bad("base_manifest_hash mismatch: expected " + now + ", got '" + base +
                 "'; read the manifest again and rebuild the patch");
    const json::Value* patches = document.find("patches");
    if (!patches || !patches->is_array()) return bad("patches must be a list");
    for (const json::Value& item : patches->array())
      TRY_OK(one(item));
    return std::move(out_);
  }

 private:
  using Step = Result<void> (Compiler::*)(const json::Value&);
  struct Row {
    std::string_view name;
    Step step;
  };

  Result<void> one(const json::Value& item) {
    static constexpr std::array<Row, 5> kSteps{{
        {"add_def", &Compiler::add_def},
        {"replace_def", &Compiler::replace_def},
        {"remove_def", &Compiler::remove_def},
        {"set_manifest_refs", &Compiler::set_refs},
        {"set_routing_subscriptions", &Compiler::set_routing},
    }};
    if (!item.is_object() || item.object().size() != 1)
      return bad(
          "each patch is an object with one of add_def, replace_def, remove_def, "
          "set_manifest_refs, set_routing_subscriptions");
    const json::Member& m = *item.object().begin();
    for (const Row& row : kSteps) {
      if (row.name != m.name) continue;
      if (!m.value.is_object()) return bad(m.name + " takes an object");
      return (this->*row.step)(m.value);
    }
    return bad(
        "unknown patch '" + m.name +
        "': add_def, replace_def, remove_def, set_manifest_refs or set_routing_subscriptions");
  }

  Result<std::vector<Ref>*> list(std::string_view kind) {
    for (const ListOf& row : kLists)
      if (row.kind == kind) return &(out_.manifest.*row.list);
    return bad("unknown kind '" + std::string(kind) + "'");
  }

  static Result<void> refuse_system(std::string_view name) {
    if (is_system(name))
      return bad("reserved sys/* name '" + std::string(name) + "' cannot be changed");
    return {};
  }

  static Ref* find(std::vector<Ref>& refs, std::string_view name) {
    auto it = std::find_if(refs.begin(), refs.end(), [&](const Ref& r) { return r.name == name; });
    return it == refs.end() ? nullptr : &*it;
  }

  // The kind is said twice, beside the node and inside it; they must agree.
  Result<Node> node_of(const json::Value& body, std::string_view field) {
    const json::Value* value = body.find(field);
    if (!value) return bad("missing field `" + std::string(field) + "`");
    TRY(Node node, parse_node(*value));
    if (kind_of(node) != body.string_or("kind"))
      return bad("kind mismatch: patch declared " + std::string(body.string_or("kind")) +
                 " but node is " + std::string(kind_of(node)));
    TRY_OK(refuse_system(node_name(node)));
    return node;
  }

  // {"kind": "defschema", "node": {...}}. A definition of the same kind and name is replaced, as in
  // the original; replace_def also says which one it replaces.
  Result<void> add_def(const json::Value& body) {
    TRY(Node node, node_of(body, "node"));
    TRY(std::vector<Ref> * refs, list(body.string_or("kind")));
    const std::string name(node_name(node));
    if (Ref* ref = find(*refs, name))
      ref->hash = node_hash(node);
    else
      refs->push_back({name, node_hash(node)});
    out_.nodes.push_back(std::move(node));
    return {};
  }

  // The hash of the definition that the author saw: it guards against changes by others in between.
  Result<void> check_pre_hash(const Ref* ref, const json::Value& body, std::string_view name) {
    if (!ref) return bad("'" + std::string(name) + "' is not in the manifest");
    if (ref->hash != body.string_or("pre_hash"))
      return bad("pre_hash mismatch for " + std::string(name) + ": expected " + ref->hash);
    return {};
  }

  // {"kind", "name", "new_node": {...}, "pre_hash"}. The name stays the same.
  Result<void> replace_def(const json::Value& body) {
    TRY(Node node, node_of(body, "new_node"));
    TRY(std::vector<Ref> * refs, list(body.string_or("kind")));
    const std::string name(body.string_or("name"));
    if (name != node_name(node))
      return bad("replace_def of '" + name + "' carries a node named '" +
                 std::string(node_name(node)) + "'");
    Ref* ref = find(*refs, name);
    TRY_OK(check_pre_hash(ref, body, name));
    ref->hash = node_hash(node);
    out_.nodes.push_back(std::move(node));
    return {};
  }

  // {"kind", "name", "pre_hash"}. Removing what is not there succeeds, as in the original.
  Result<void> remove_def(const json::Value& body) {
    const std::string name(body.string_or("name"));
    TRY_OK(refuse_system(name));
    TRY(std::vector<Ref> * refs, list(body.string_or("kind")));
    Ref* ref = find(*refs, name);
    if (!ref && is_module_name(name)) return {};  // already absent
    TRY_OK(check_pre_hash(ref, body, name));
    refs->erase(refs->begin() + (ref - refs->data()));
    return {};
  }

  // {"add": [{"kind", "name", "hash"}], "remove": [{"kind", "name"}]}: references to definitions
  // that the store has already.
  Result<void> set_refs(const json::Value& body) {
    static const json::Value none{json::Array{}};
    const json::Value* add = body.find("add");
    const json::Value* remove = body.find("remove");
    for (const json::Value* list : {add, remove})
      if (list && !list->is_array())
        return bad(
            "set_manifest_refs takes {\"add\": [{kind, name, hash}], \"remove\": [{kind, name}]}");
    // Removals first, so that one step may replace a ref. Removing an absent ref is no error, as in
    // the original.
    for (const json::Value& item : (remove ? *remove : none).array()) {
      const std::string_view name = item.string_or("name");
      TRY_OK(refuse_system(name));
      TRY(std::vector<Ref> * refs, list(item.string_or("kind")));
      if (Ref* ref = find(*refs, name)) refs->erase(refs->begin() + (ref - refs->data()));
    }
    for (const json::Value& item : (add ? *add : none).array()) {
      const std::string name(item.string_or("name")), hash(item.string_or("hash"));
      TRY_OK(refuse_system(name));
      const bool is_module = item.string_or("kind") == "defmodule";
      if (!(is_module ? is_module_name(name) : is_name(name)) || !is_hash(hash))
        return bad("set_manifest_refs adds refs as {kind, name, hash}");
      TRY(std::vector<Ref> * refs, list(item.string_or("kind")));
      if (Ref* ref = find(*refs, name))
        ref->hash = hash;
      else
        refs->push_back({name, hash});
    }
    return {};
  }

  // {"pre_hash", "subscriptions": [...]}: replaces all subscriptions.
  Result<void> set_routing(const json::Value& body) {
    const std::string now = hash_text(cbor::hash_of(subscriptions_value(out_.manifest)));
    if (body.string_or("pre_hash") != now)
      return bad("pre_hash mismatch for routing.subscriptions: expected " + now);
    json::Object routing;
    const json::Value* list = body.find("subscriptions");
    routing.set("subscriptions", list ? *list : json::Value(json::Array{}));
    // An otherwise empty manifest around the list, so that parse_manifest() is the only parser of
    // routes.
    json::Object shell;
    shell.set("air_version", "2");
    for (std::string_view name : {"schemas", "modules", "workflows", "effects"})
      shell.set(std::string(name), json::Value(json::Array{}));
    shell.set("routing", json::Value(std::move(routing)));
    TRY(Manifest parsed, parse_manifest(json::Value(std::move(shell))));
    out_.manifest.has_routing = true;
    out_.manifest.subscriptions = std::move(parsed.subscriptions);
    return {};
  }

  Patch out_;
};

}  // namespace

cbor::Value to_value(const Patch& patch) {
  cbor::Map out{{"manifest", to_value(patch.manifest, false)}};
  if (!patch.nodes.empty()) {
    cbor::Array nodes;
    for (const Node& node : patch.nodes)
      nodes.push_back(to_value(node, true));
    out.emplace_back("nodes", cbor::Value(std::move(nodes)));
  }
  return cbor::Value(std::move(out));
}

std::string patch_hash(const Patch& patch) { return hash_text(cbor::hash_of(to_value(patch))); }

Result<Patch> parse_patch(const json::Value& value) {
  const json::Value* manifest = value.find("manifest");
  if (!manifest) return bad("missing field `manifest`");
  Patch out;
  TRY(out.manifest, parse_manifest(*manifest));
  if (const json::Value* nodes = value.find("nodes"); nodes && nodes->is_array()) {
    for (const json::Value& item : nodes->array()) {
      TRY(Node node, parse_node(item));
      if (is_system(node_name(node)) || std::holds_alternative<Manifest>(node))
        return bad("nodes are definitions of your own, not sys/* and not manifests");
      out.nodes.push_back(std::move(node));
    }
  }
  return out;
}

Result<Patch> complete_patch(Patch patch, const Manifest& base, const Builtins& builtins) {
  fill_hashes(patch.manifest, patch.nodes, builtins);
  for (const ListOf& row : kLists)
    for (Ref& ref : patch.manifest.*row.list) {
      if (is_given_hash(ref.hash)) continue;
      const auto& known = base.*row.list;
      auto it = std::find_if(known.begin(), known.end(),
                             [&](const Ref& r) { return r.name == ref.name; });
      if (it == known.end())
        return bad(std::string(row.kind) + " '" + ref.name +
                   "' has no hash, is not among the nodes and is not in the active manifest: add "
                   "its node");
      ref.hash = it->hash;
    }
  return patch;
}

Result<Patch> compile_patch(const json::Value& document, const Manifest& base) {
  return Compiler(base).run(document);
}

Result<Patch> read_patch(const json::Value& value, const Manifest& base, const Builtins& builtins) {
  if (value.find("patches")) return compile_patch(value, base);
  TRY(Patch patch, parse_patch(value));
  return complete_patch(std::move(patch), base, builtins);
}

Result<PatchInput> open_patch(const cbor::Value& input, const FindBlob& blob) {
  // hash: a compiled patch in the store. patch_cbor: the same inline. patch_doc_json: a document
  // inline. patch_blob_ref: either of them in the store, as its `format` says.
  const std::string arm = arm_of(input.text_or("$tag"));
  const cbor::Value* value = input.find("$value");
  if (value && (arm == "hash" || arm == "patch_blob_ref")) {
    TRY(Bytes digest,
        parse_hash(arm == "hash" && value->is_text() ? value->text()
                                                     : std::string(value->text_or("blob_ref"))));
    TRY(Bytes bytes, blob(digest));
    return PatchInput{
        std::move(bytes),
        arm == "patch_blob_ref" && value->text_or("format").find("json") != std::string_view::npos};
  }
  auto bytes = value ? octets_of(*value) : std::nullopt;
  if (!bytes || (arm != "patch_cbor" && arm != "patch_doc_json"))
    return fail(Code::invalid, "effect.manager", "effect manager error: the patch has no value");
  return PatchInput{*std::move(bytes), arm == "patch_doc_json"};
}

}  // namespace pawl::worlds
