#include "sim/outside/world_parts.h"

#include <fmt/format.h>

#include "faces/worlds/step/intents.h"
#include "sim/outside/stage.h"

namespace pawl::sim {
namespace {

json::Value typed(const char* type) { return json::object({{"type", type}}); }

json::Value fixed(json::Value value) { return json::object({{"const", std::move(value)}}); }

// An object of the JSON Schema in which every member is required.
json::Value object_schema(json::Object properties) {
  json::Array required;
  for (const auto& [name, schema] : properties)
    required.emplace_back(name);
  return json::object({{"type", "object"},
                       {"properties", std::move(properties)},
                       {"required", std::move(required)}});
}

// Values of forms that have no shape in JSON Schema.
json::Value plain_schema(worlds::Form form) {
  using worlds::Form;
  switch (form) {
    case Form::boolean: return typed("boolean");
    case Form::integer: return typed("integer");
    case Form::nat:
    case Form::time:
    case Form::duration: return json::object({{"type", "integer"}, {"minimum", 0}});
    case Form::dec128: return json::object({{"type", "number"}, {"minimum", 0}});
    case Form::bytes: return fixed("c2ltdWxhdGVk");
    case Form::hash: return fixed("sha256:" + std::string(64, '0'));
    case Form::uuid: return fixed("00000000-0000-4000-8000-000000000000");
    case Form::text: return typed("string");
    case Form::map: return fixed(json::Value(json::Object{}));
    default: return typed("null");
  }
}

}  // namespace

WorldParts::WorldParts(const WorldSource& source) : document_(source.document) {
  json::Object& manifest = document_.object().find("manifest")->object();
  manifest.erase("executor_keys");
  for (const json::Value& node : document_.find("nodes")->array()) {
    auto parsed = worlds::parse_node(node);
    CHECK(parsed);
    nodes_.push_back(std::move(*parsed));
  }
  auto load = [&] {
    auto parsed = worlds::parse_manifest(*document_.find("manifest"));
    CHECK(parsed);
    auto loaded = worlds::load(std::move(*parsed), worlds::finder(nodes_), builtins_);
    CHECK(loaded);
    loaded_ = std::make_unique<worlds::LoadedManifest>(std::move(*loaded));
  };
  load();
  const std::vector<std::string> asked = asked_effects();
  if (std::find(asked.begin(), asked.end(), worlds::kHttpEffect) == asked.end()) return;
  manifest.set("external_effects", json::Array{json::Value(worlds::kHttpEffect)});
  load();
}

std::vector<std::string> WorldParts::asked_effects() const {
  std::set<std::string> out;
  for (const auto& [name, workflow] : loaded_->workflows)
    for (const std::string& effect : workflow.def.effects_emitted)
      if (effect == worlds::kHttpEffect || !worlds::is_done_here(effect, loaded_->manifest))
        out.insert(effect);
  return {out.begin(), out.end()};
}

std::vector<WorldParts::Variant> WorldParts::variants_of(const worlds::Type& state) const {
  std::vector<Variant> out;
  auto add = [&](const std::string& name, const worlds::Type& type) {
    auto found = loaded_->schemas.resolve(type);
    if (!found || (*found)->form != worlds::Form::variant) return;
    Variant one{name, {}};
    for (const worlds::Field& arm : (*found)->fields)
      one.arms.push_back(arm.name);
    out.push_back(std::move(one));
  };
  add("", state);
  auto record = loaded_->schemas.resolve(state);
  if (!record || (*record)->form != worlds::Form::record) return out;
  for (const worlds::Field& field : (*record)->fields)
    add(field.name, *field.type);
  return out;
}

static std::string label(const std::string& member, std::string_view arm) {
  return fmt::format("{}={}", member.empty() ? "state" : member, arm);
}

std::vector<std::string> WorldParts::labels(const std::string& workflow,
                                            const json::Value& state) const {
  std::vector<std::string> out;
  const worlds::Workflow* found = loaded_->workflow(workflow);
  if (!found) return out;
  for (const Variant& one : variants_of(*found->state)) {
    const json::Value* value = one.member.empty() ? &state : state.find(one.member);
    if (!value) continue;
    out.push_back(
        label(one.member, value->is_string() ? value->string() : value->string_or("tag")));
  }
  return out;
}

json::Value WorldParts::schema_of(const worlds::Type& type) const {
  using worlds::Form;
  auto found = loaded_->schemas.resolve(type);
  if (!found) return {};
  const worlds::Type& t = **found;
  if (t.form == Form::record) {
    json::Object properties;
    for (const worlds::Field& field : t.fields)
      properties.set(field.name, schema_of(*field.type));
    return object_schema(std::move(properties));
  }
  if (t.form == Form::variant) {
    json::Array arms;
    for (const worlds::Field& arm : t.fields) {
      json::Object one;
      one.set(arm.name, schema_of(*arm.type));
      arms.push_back(object_schema(std::move(one)));
    }
    return json::object({{"oneOf", std::move(arms)}});
  }
  if (t.form == Form::option)
    return json::object({{"oneOf", json::Array{schema_of(*t.item), typed("null")}}});
  if (t.form == Form::list || t.form == Form::set)
    return json::object({{"type", "array"}, {"items", schema_of(*t.item)}});
  return plain_schema(t.form);
}

json::Value WorldParts::named_schema(const std::string& name) const {
  const worlds::TypePtr type = loaded_->schemas.find(name);
  return type ? schema_of(*type) : json::Value();
}

json::Value WorldParts::event_schema(const std::string& event) const { return named_schema(event); }

json::Value WorldParts::receipt_schema(const std::string& effect) const {
  const worlds::DeclaredEffect* found = loaded_->effect(effect);
  return found ? named_schema(found->def.receipt) : json::Value();
}

Part WorldParts::state(const std::string& workflow, const std::string& label) {
  return {"state", fmt::format("{} {}", workflow, label)};
}

Part WorldParts::effect(const std::string& workflow, const std::string& effect) {
  return {"effect", fmt::format("{} -> {}", workflow, effect)};
}

Part WorldParts::route(const std::string& event, const std::string& workflow) {
  return {"route", fmt::format("{} -> {}", event, workflow)};
}

void WorldParts::add(AllParts& parts) const {
  for (const auto& [name, flow] : loaded_->workflows) {
    if (name.starts_with("sys/")) continue;  // every world has these
    parts[workflow(name)] = {};
    for (const std::string& one : flow.def.effects_emitted)
      parts[effect(name, one)] = workflow(name);
    for (const Variant& one : variants_of(*flow.state))
      for (const std::string& arm : one.arms)
        parts[state(name, label(one.member, arm))] = workflow(name);
  }
  for (const worlds::Subscription& one : loaded_->manifest.subscriptions)
    if (!one.workflow.starts_with("sys/"))
      parts[route(one.event, one.workflow)] = workflow(one.workflow);
}

std::vector<std::string> asked_effects(const WorldSource& source) {
  return WorldParts(source).asked_effects();
}

void add_world_parts(const Script& script, AllParts& parts) {
  WorldParts(*script.world).add(parts);
}

json::Value plain_variants(const json::Value& value) {
  if (value.is_array()) {
    json::Array out;
    for (const json::Value& one : value.array())
      out.push_back(plain_variants(one));
    return out;
  }
  if (!value.is_object()) return value;
  if (const json::Value* tag = value.find("$tag"); tag && tag->is_string()) {
    const json::Value* inner = value.find("$value");
    if (!inner || inner->is_null()) return *tag;
    return json::object({{"tag", *tag}, {"value", plain_variants(*inner)}});
  }
  json::Object out;
  for (const auto& [name, member] : value.object())
    out.set(name, plain_variants(member));
  return out;
}

}  // namespace pawl::sim
