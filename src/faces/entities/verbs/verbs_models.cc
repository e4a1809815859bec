#include <fmt/format.h>

#include "faces/entities/flow/machine.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

// Verbs about models and their workflows.

namespace pawl::entities {

namespace {

// A copy: the cached model is shared and must not change.
Result<Model> known(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(ModelPtr model, find_model(turn, tenant, model_name(body), model_version(body)));
  if (!model) return fail(model_not_found(model_name(body), model_version(body)));
  return *model;
}

std::unexpected<Error> wrong_state(const Model& model, std::string_view reason,
                                   std::string_view expected) {
  return fail(Code::conflict, std::string(reason),
              fmt::format("model {} version {} is {}; expected {}", model.name, model.version,
                          model.state(), expected),
              json::print(json::object({{"entityName", model.name},
                                        {"entityVersion", model.version},
                                        {"expectedState", expected},
                                        {"actualState", model.state()}})));
}

// Cells of another model with the same digits are skipped.
Result<void> visit_entities(Turn& turn, std::string_view tenant, const Model& model,
                            const std::function<Result<void>(const EntityView&)>& visit) {
  Result<void> good;
  TRY_OK(
      turn.scan(entity_prefix(tenant, model.name, model.version), [&](BytesView, const Cell& cell) {
        EntityView e;
        if (!view_entity(cell.value(), e) || e.model != model.name || e.version != model.version)
          return true;
        good = visit(e);
        return good.has_value();
      }));
  return good;
}

// Refuses when there is an entity. The caller passes the number of entities for the message: the
// scan stops at the first.
Result<void> no_entities(Turn& turn, std::string_view tenant, const Model& model,
                         const json::Value& body) {
  uint64_t count = 0;
  TRY_OK(
      turn.scan(entity_prefix(tenant, model.name, model.version), [&](BytesView, const Cell& cell) {
        EntityView e;
        count = view_entity(cell.value(), e) && e.model == model.name && e.version == model.version;
        return count == 0;
      }));
  if (count == 0) return {};
  if (const json::Value* counted = body.find("count"))
    count = std::max(count, counted->as_uint64().value_or(1));
  return fail(
      Code::conflict, "MODEL_HAS_ENTITIES",
      fmt::format("model {} version {} has {} entities; delete them first", model.name,
                  model.version, count),
      json::print(json::object(
          {{"entityName", model.name}, {"entityVersion", model.version}, {"entityCount", count}})));
}

// The answer of the verbs that change a model, as the contract has it.
Bytes acted(const Model& model, std::string message) {
  return json::print(json::object({
      {"success", true},
      {"message", std::move(message)},
      {"modelId", model.id()},
      {"modelKey", json::object({{"name", model.name}, {"version", model.version}})},
  }));
}

// Entities exist only under a locked model, so only unlocking has to look for them.
Result<Bytes> set_locked(Turn& turn, std::string_view tenant, const json::Value& body,
                         bool locked) {
  TRY(Model model, known(turn, tenant, body));
  if (model.locked == locked)
    return locked ? wrong_state(model, "MODEL_ALREADY_LOCKED", "UNLOCKED")
                  : wrong_state(model, "MODEL_ALREADY_UNLOCKED", "LOCKED");
  if (!locked) TRY_OK(no_entities(turn, tenant, model, body));
  model.locked = locked;
  Bytes answer = acted(model, fmt::format("Model {}:{} {}", model.name, model.version,
                                          locked ? "locked" : "unlocked"));
  write_model(turn, tenant, std::move(model));
  return answer;
}

// The path of a scalar field in the form "$.a.b". Paths into arrays are refused.
Result<std::string> scalar_path(const Model& model, const json::Value& given) {
  const json::Value* path = &given;
  if (given.is_object())
    // Clients write a field as "$.a" or as an object with one of these members.
    for (std::string_view name : {"path", "jsonPath", "field"})
      if (const json::Value* inner = given.find(name)) path = inner;
  if (!path->is_string())
    return fail(Code::invalid, "BAD_REQUEST", "each field must be a path such as \"$.name\"");
  condition::Path parsed(path->string());
  const Shape* shape = parsed.plain() ? shape_at(model.shape, parsed.name()) : nullptr;
  if (!shape || shape->is_object || shape->is_array())
    return fail(Code::invalid, "INVALID_FIELD_PATH",
                fmt::format("'{}' is not a scalar field of model {} version {}", path->string(),
                            model.name, model.version));
  return "$." + parsed.name();
}

std::unexpected<Error> bad_key(std::string message) {
  return fail(Code::unprocessable, "INVALID_UNIQUE_KEY_DEFINITION", std::move(message));
}

// Reads {"id":"by-email","fields":["$.email"]}. Without an id, the name is made of the paths.
Result<UniqueKey> unique_key_of(const Model& model, const json::Value& given) {
  UniqueKey key;
  const json::Value* fields = given.is_array() ? &given : given.find("fields");
  if (!fields) fields = given.find("paths");
  if (!fields || !fields->is_array() || fields->array().empty())
    return bad_key("each unique key needs an array of 'fields'");
  for (const json::Value& f : fields->array()) {
    auto path = scalar_path(model, f);
    if (!path) return bad_key(path.error().message);
    key.paths.push_back(*std::move(path));
  }
  key.name = given.string_or("id", given.string_or("name"));
  if (key.name.empty())
    for (const std::string& path : key.paths)
      key.name += path;
  if (std::any_of(model.unique_keys.begin(), model.unique_keys.end(),
                  [&](const UniqueKey& k) { return k.name == key.name; }))
    return bad_key(fmt::format("two unique keys are named '{}'", key.name));
  return key;
}

}  // namespace

std::string_view model_name(const json::Value& body) { return body.string_or("name"); }
int32_t model_version(const json::Value& body) {
  const json::Value* v = body.find("version");
  return v ? static_cast<int32_t>(v->as_int64().value_or(0)) : 0;
}

Result<Bytes> import_model(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(ModelPtr stored, find_model(turn, tenant, model_name(body), model_version(body)));
  Model model;
  if (stored) {
    if (stored->locked) return wrong_state(*stored, "MODEL_ALREADY_LOCKED", "UNLOCKED");
    model = *stored;
  }
  model.name = model_name(body);
  model.version = model_version(body);
  const json::Value* sample = body.find("sample");
  merge(model.shape, infer(sample ? *sample : json::Value()));
  Bytes answer = json::quote(model.id());
  write_model(turn, tenant, std::move(model));
  return answer;
}

Result<Bytes> lock_model(Turn& turn, std::string_view tenant, const json::Value& body) {
  return set_locked(turn, tenant, body, true);
}
Result<Bytes> unlock_model(Turn& turn, std::string_view tenant, const json::Value& body) {
  return set_locked(turn, tenant, body, false);
}

Result<Bytes> set_change_level(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(Model model, known(turn, tenant, body));
  auto level = level_named(body.string_or("level"));
  if (!level) {
    Error error = std::move(level.error());
    error.message =
        fmt::format("model {} version {}: {}", model.name, model.version, error.message);
    TRY(json::Value detail, json::parse(error.detail));
    detail.object().add("entityName", model.name);
    detail.object().add("entityVersion", model.version);
    error.detail = json::print(detail);
    return fail(std::move(error));
  }
  model.level = *level;
  Bytes answer = acted(model, fmt::format("Change level of model {}:{} set to {}", model.name,
                                          model.version, name_of(*level)));
  write_model(turn, tenant, std::move(model));
  return answer;
}

// Its workflows go with it.
Result<Bytes> delete_model(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(Model model, known(turn, tenant, body));
  TRY_OK(no_entities(turn, tenant, model, body));
  turn.erase(model_key(tenant, model.name, model.version));
  Key flows = flows_key(tenant, model.name, model.version);
  TRY(Cell stored, turn.read(flows));
  if (stored.exists()) turn.erase(flows);
  return acted(model, fmt::format("Model {}:{} deleted", model.name, model.version));
}

Result<Bytes> set_indexes(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(Model model, known(turn, tenant, body));
  const json::Value* fields = body.find("fields");
  if (!fields || !fields->is_array())
    return fail(Code::invalid, "BAD_REQUEST",
                "give an array of field paths, for example [\"$.name\"]");
  // Each index adds a row to every write of an entity.
  if (fields->array().size() > 64)
    return fail(Code::invalid, "BAD_REQUEST", "a model may have 64 indexes");
  std::vector<Index> wanted;
  bool fresh = false;
  for (const json::Value& f : fields->array()) {
    TRY(std::string path, scalar_path(model, f));
    if (std::any_of(wanted.begin(), wanted.end(), [&](const Index& i) { return i.path == path; }))
      continue;
    auto old = std::find_if(model.indexes.begin(), model.indexes.end(),
                            [&](const Index& i) { return i.path == path; });
    wanted.push_back(old != model.indexes.end() ? *old : Index{path, false, turn.now()});
    fresh = fresh || !wanted.back().ready;
  }
  // The entries of a dropped index are removed when the other indexes are filled again.
  bool dropped = std::any_of(model.indexes.begin(), model.indexes.end(), [&](const Index& old) {
    return std::none_of(wanted.begin(), wanted.end(),
                        [&](const Index& i) { return i.path == old.path; });
  });
  model.indexes = std::move(wanted);
  json::Array list;
  for (const Index& i : model.indexes)
    list.push_back(json::object({{"path", i.path}, {"state", i.ready ? "READY" : "BUILDING"}}));
  write_model(turn, tenant, std::move(model));
  return json::print(json::object({{"indexes", std::move(list)}, {"fill", fresh || dropped}}));
}

// One batch: entities that are gone or belong to another model by now are skipped.
Result<Bytes> fill_indexes(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(Model model, known(turn, tenant, body));
  const json::Value* ids = body.find("ids");
  for (const json::Value& id : ids && ids->is_array() ? ids->array() : json::Array()) {
    TRY(StoredEntity found, find_entity(turn, tenant, id.string()));
    const EntityView& e = found.view;
    if (!found.exists() || e.model != model.name || e.version != model.version) continue;
    write_index_cell(turn, tenant, model, e);
  }
  // Only the indexes that were declared when the filling began are ready. A newer one still misses
  // entries.
  const json::Value* filled = body.find("filled");
  if (filled && filled->is_array()) {
    for (Index& i : model.indexes)
      for (const json::Value& f : filled->array())
        if (f.string_or("path") == i.path && f.find("since") &&
            f.find("since")->as_int64() == i.since)
          i.ready = true;
    write_model(turn, tenant, std::move(model));
  }
  return Bytes("{}");
}

Result<Bytes> set_unique_keys(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(Model model, known(turn, tenant, body));
  const json::Value* keys = body.find("keys");
  if (!keys || !keys->is_array())
    return fail(Code::invalid, "BAD_REQUEST",
                "give an array of unique keys: [{\"id\":\"by-email\",\"fields\":[\"$.email\"]}]");
  // All claims are dropped and made anew in this turn: a model has few unique keys, and a conflict
  // takes the whole turn back.
  std::vector<Key> held;
  TRY_OK(
      turn.scan(unique_prefix(tenant, model.name, model.version), [&](BytesView key, const Cell&) {
        held.emplace_back(key);
        return true;
      }));
  for (const Key& key : held)
    turn.erase(key);
  model.unique_keys.clear();
  for (const json::Value& given : keys->array()) {
    TRY(UniqueKey key, unique_key_of(model, given));
    model.unique_keys.push_back(std::move(key));
  }
  // Collected first, because claim_unique() writes to the turn that is scanned.
  std::vector<Entity> all;
  TRY_OK(visit_entities(turn, tenant, model, [&](const EntityView& e) -> Result<void> {
    all.push_back(copy_of(e));
    return {};
  }));
  for (const Entity& e : all)
    TRY_OK(claim_unique(turn, tenant, model, e.id, e.data, {}));
  Bytes answer =
      acted(model, fmt::format("Unique keys of model {}:{} set", model.name, model.version));
  write_model(turn, tenant, std::move(model));
  return answer;
}

Result<Bytes> import_flows(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(Model model, known(turn, tenant, body));
  Key key = flows_key(tenant, model.name, model.version);
  TRY(auto stored, turn.read_as<WorkflowSet>(key, decode_workflows));
  const json::Value* request = body.find("request");
  TRY(WorkflowSet flows,
      import_workflows(stored ? *stored : WorkflowSet(), request ? *request : json::Value()));
  if (flows.workflows.empty()) {
    if (stored) turn.erase(key);
  } else {
    Bytes text = json::print(flows.definitions);
    turn.write(key, std::move(text), std::make_shared<const WorkflowSet>(std::move(flows)));
  }
  return Bytes(R"({"success":true})");
}

}  // namespace pawl::entities
