#include <fmt/format.h>

#include "condition/condition.h"
#include "faces/entities/machine.h"
#include "faces/entities/search.h"
#include "faces/entities/store.h"
#include "faces/entities/verbs.h"
#include "json/text.h"

namespace pawl::entities {

// Reads inside an open transaction: they see what it has written.
Result<Bytes> get_entity(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(Found found, find_entity(turn, tenant, id));
  if (!found.exists()) return fail(entity_not_found(id));
  Bytes out;
  append_envelope(out, found.view, true);
  return out;
}

Result<Bytes> find_entities(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::optional<condition::Condition> condition;
  if (const json::Value* c = body.find("condition"); c && !c->is_null()) {
    TRY(condition, condition::Condition::compile(*c));
  }
  std::vector<std::string> given;
  if (const json::Value* list = body.find("sort"); list && list->is_array())
    for (const json::Value& key : list->array()) given.push_back(key.string());
  TRY(ModelPtr model, find_model(turn, tenant, model_name(body), model_version(body)));
  TRY(std::vector<SortKey> sort, parse_sort(given, model.get()));
  auto number = [&](std::string_view name, int64_t otherwise) {
    const json::Value* given = body.find(name);
    return given ? given->as_int64().value_or(otherwise) : otherwise;
  };
  int64_t skip = number("skip", 0), limit = number("limit", 1000);
  std::vector<Entity> found;
  size_t enough = sort.empty() ? static_cast<size_t>(skip + limit) : ~size_t{0};
  TRY_OK(turn.scan(entity_prefix(tenant, model_name(body), model_version(body)), [&](BytesView, const Cell& cell) {
    EntityView e;
    if (!view_entity(cell.value(), e) || e.model != model_name(body) || e.version != model_version(body)) return true;
    if (!condition || condition->matches({e.data, e.state, e.created, e.transition})) found.push_back(copy_of(e));
    return found.size() < enough;
  }));
  if (!sort.empty()) sort_entities(found, sort);
  Bytes out;
  bool with_model = body.find("withModel") != nullptr;
  for (size_t i = static_cast<size_t>(skip); i < found.size() && i < static_cast<size_t>(skip + limit); ++i) {
    const Entity& e = found[i];
    append_envelope(out, {e.id, e.model, e.state, e.tx, e.transition, e.data, e.version, e.created, e.updated, {}}, with_model);
    out += '\n';
  }
  return out;
}

std::vector<std::string> transition_names(const Flows* flows, const EntityView& e) {
  const Workflow* chosen = &default_workflow();
  if (flows) {
    for (const Workflow& w : flows->workflows) {
      if (!w.active || (w.criterion && !w.criterion->matches({e.data, e.state, e.created, e.transition}))) continue;
      chosen = &w;
      break;
    }
  }
  std::vector<std::string> out;
  for (const Transition& t : chosen->transitions(e.state)) out.push_back(t.name);
  return out;
}

Result<Bytes> list_transitions(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(Found found, find_entity(turn, tenant, id));
  if (!found.exists()) return fail(entity_not_found(id));
  TRY(auto flows, turn.read_as<Flows>(flows_key(tenant, found.view.model, found.view.version), decode_flows));
  json::Array names;
  for (std::string& name : transition_names(flows.get(), found.view)) names.emplace_back(std::move(name));
  return json::print(names);
}

// Of the transaction that it joined, or one of its own.
static std::string tx_of(Turn& turn, const json::Value& body) {
  std::string tx(body.string_or("tx"));
  return tx.empty() ? turn.dice().uuid1(turn.now()) : tx;
}

static Result<ModelPtr> model_of(Turn& turn, std::string_view tenant, std::string_view name, int32_t version) {
  TRY(ModelPtr model, find_model(turn, tenant, name, version));
  if (!model) return fail(model_not_found(name, version));
  return model;
}

Result<Bytes> remove_one(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(Found found, find_entity(turn, tenant, id));
  if (!found.exists()) return fail(entity_not_found(id));
  const EntityView& e = found.view;
  TRY(ModelPtr model, model_of(turn, tenant, e.model, e.version));
  std::string tx = tx_of(turn, body);
  TRY_OK(remove_entity(turn, tenant, *model, e, tx));
  return json::print(json::object({{"id", id}, {"modelKey", json::object({{"name", e.model}, {"version", e.version}})}, {"transactionId", tx}}));
}

// Those of a list that are still there.
Result<Bytes> remove_some(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string tx = tx_of(turn, body);
  const json::Value* ids = body.find("ids");
  for (const json::Value& id : ids ? ids->array() : json::Array()) {
    TRY(Found found, find_entity(turn, tenant, id.string()));
    if (!found.exists()) continue;
    TRY(ModelPtr model, model_of(turn, tenant, found.view.model, found.view.version));
    TRY_OK(remove_entity(turn, tenant, *model, found.view, tx));
  }
  return Bytes("{}");
}

Bytes removal_answer(const Model& model, uint64_t count, const json::Array* ids) {
  json::Value out = json::object({
      {"entityModelClassId", model.id()},
      {"deleteResult", json::object({{"numberOfEntitites", count}, {"numberOfEntititesRemoved", count}, {"idToError", json::Object()}})},
  });
  if (ids) out.object().add("ids", *ids);
  return json::print(out);
}

Result<void> may_choose(const condition::Condition& condition) {
  if (!condition.function()) return {};
  return fail(Code::invalid, "BAD_REQUEST", "a function condition cannot choose what to delete");
}

Result<Bytes> remove_all(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(ModelPtr model, model_of(turn, tenant, model_name(body), model_version(body)));
  std::optional<condition::Condition> condition;
  if (const json::Value* c = body.find("condition"); c && !c->is_null()) {
    TRY(condition, condition::Condition::compile(*c));
    TRY_OK(may_choose(*condition));
  }
  std::vector<Found> all;
  TRY_OK(turn.scan(entity_prefix(tenant, model->name, model->version), [&](BytesView, const Cell& cell) {
    EntityView e;
    if (!view_entity(cell.value(), e) || e.model != model->name || e.version != model->version) return true;
    if (!condition || condition->matches({e.data, e.state, e.created, e.transition})) all.push_back({cell, e});
    return true;
  }));
  std::string tx = tx_of(turn, body);
  for (const Found& found : all) TRY_OK(remove_entity(turn, tenant, *model, found.view, tx));
  const json::Value* verbose = body.find("verbose");
  bool listed = verbose && verbose->is_bool() && verbose->boolean();
  json::Array ids;
  for (const Found& found : all)
    if (listed) ids.emplace_back(found.view.id);
  return removal_answer(*model, all.size(), listed ? &ids : nullptr);
}

}  // namespace pawl::entities
