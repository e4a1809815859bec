#include <fmt/format.h>

#include "condition/condition.h"
#include "faces/entities/flow/machine.h"
#include "faces/entities/search/search.h"
#include "faces/entities/store/store.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

// Verbs that remove entities.

namespace pawl::entities {

// The id of the joined transaction, or a new one.
static std::string tx_of(Turn& turn, const json::Value& body) {
  std::string tx(body.string_or("tx"));
  return tx.empty() ? turn.dice().uuid1(turn.now()) : tx;
}

static Result<ModelPtr> model_of(Turn& turn, std::string_view tenant, std::string_view name,
                                 int32_t version) {
  TRY(ModelPtr model, find_model(turn, tenant, name, version));
  if (!model) return fail(model_not_found(name, version));
  return model;
}

Result<Bytes> remove_one(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(StoredEntity found, find_entity(turn, tenant, id));
  if (!found.exists()) return fail(entity_not_found(id));
  const EntityView& e = found.view;
  TRY(ModelPtr model, model_of(turn, tenant, e.model, e.version));
  std::string tx = tx_of(turn, body);
  TRY_OK(remove_entity(turn, tenant, *model, e, tx));
  return json::print(
      json::object({{"id", id},
                    {"modelKey", json::object({{"name", e.model}, {"version", e.version}})},
                    {"transactionId", tx}}));
}

// Removes the entities of a list that still exist.
Result<Bytes> remove_some(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string tx = tx_of(turn, body);
  const json::Value* ids = body.find("ids");
  for (const json::Value& id : ids ? ids->array() : json::Array()) {
    TRY(StoredEntity found, find_entity(turn, tenant, id.string()));
    if (!found.exists()) continue;
    TRY(ModelPtr model, model_of(turn, tenant, found.view.model, found.view.version));
    TRY_OK(remove_entity(turn, tenant, *model, found.view, tx));
  }
  return Bytes("{}");
}

Bytes removal_answer(const Model& model, uint64_t count, const json::Array* ids) {
  json::Value out = json::object({
      {"entityModelClassId", model.id()},
      // The spelling is the original's.
      {"deleteResult", json::object({{"numberOfEntitites", count},
                                     {"numberOfEntititesRemoved", count},
                                     {"idToError", json::Object()}})},
  });
  if (ids) out.object().add("ids", *ids);
  return json::print(out);
}

Result<void> check_removal_condition(const condition::Condition& condition) {
  if (!condition.function()) return {};
  return fail(Code::invalid, "BAD_REQUEST", "a function condition cannot choose what to delete");
}

Result<Bytes> remove_all(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(ModelPtr model, model_of(turn, tenant, model_name(body), model_version(body)));
  TRY(auto condition, condition_of(body));
  if (condition) TRY_OK(check_removal_condition(*condition));
  std::vector<StoredEntity> all;
  TRY_OK(for_each_entity(turn, tenant, body, condition ? &*condition : nullptr, 0,
                         [&](BytesView key, const Cell& cell, const EntityView& e) {
                           // A removed entity must still match the condition when the turn commits.
                           turn.validate_at_commit(key, cell);
                           all.push_back({cell, e});
                           return true;
                         }));
  std::string tx = tx_of(turn, body);
  for (const StoredEntity& found : all)
    TRY_OK(remove_entity(turn, tenant, *model, found.view, tx));
  const json::Value* verbose = body.find("verbose");
  bool listed = verbose && verbose->is_bool() && verbose->boolean();
  json::Array ids;
  for (const StoredEntity& found : all)
    if (listed) ids.emplace_back(found.view.id);
  return removal_answer(*model, all.size(), listed ? &ids : nullptr);
}

}  // namespace pawl::entities
