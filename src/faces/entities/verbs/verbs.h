#pragma once
// The short verbs of the program, and what they share.

#include "condition/condition.h"
#include "faces/entities/flow/workflow.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"
#include "json/value.h"
#include "kernel/turn.h"

namespace pawl::entities {

// The body of a short verb is a JSON object.
using Verb = Result<Bytes> (*)(Turn& turn, std::string_view tenant, const json::Value& body);

struct VerbRow {
  std::string_view name;
  Verb run;
};

Result<Bytes> import_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> lock_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> unlock_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> set_change_level(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> set_indexes(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> fill_indexes(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> set_unique_keys(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> import_flows(Turn& turn, std::string_view tenant, const json::Value& body);

Result<Bytes> get_entity(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> find_entities(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> list_transitions(Turn& turn, std::string_view tenant, const json::Value& body);
// By selection, as a new entity would get its workflow; a function criterion cannot be asked here
// and counts as no match. `flows` is null when there are none. An array of names.
Bytes transition_names(const Flows* flows, const EntityView& entity);
Result<Bytes> group_entities(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> own_trail(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> own_moves(Turn& turn, std::string_view tenant, const json::Value& body);
// The entities of a model as the transaction has them, those that the condition matches (null:
// all), by id until `visit` returns false. It stands on none of them by that.
using VisitCell = std::function<bool(BytesView key, const Cell& cell, const EntityView& entity)>;
Result<void> each_entity(Turn& turn, std::string_view tenant, const json::Value& body,
                         const condition::Condition* condition, const VisitCell& visit);
// That of a body; none when it has none.
Result<std::optional<condition::Condition>> condition_in(const json::Value& body);
Result<Bytes> remove_one(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> remove_some(Turn& turn, std::string_view tenant, const json::Value& body);
// Refuses a condition that only a member could answer.
Result<void> may_choose(const condition::Condition& condition);
Result<Bytes> remove_all(Turn& turn, std::string_view tenant, const json::Value& body);
Bytes removal_answer(const Model& model, uint64_t count,
                     const json::Array* ids);  // null: they are not listed

Result<Bytes> new_message(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_message(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_messages(Turn& turn, std::string_view tenant, const json::Value& body);
Error message_not_found(std::string_view id);
Result<Bytes> new_search_job(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> add_search_page(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> end_search_job(Turn& turn, std::string_view tenant, const json::Value& body);
// The timer that lets go of a search job, and what it does when it is due.
inline constexpr std::string_view kJobTimer = "job\x1f";
Result<Bytes> expire_search_job(Turn& turn, std::string_view timer);
Result<Bytes> put_client(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_client(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> put_trusted_key(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_trusted_key(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> put_key_pair(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_key_pair(Turn& turn, std::string_view tenant, const json::Value& body);

// "name" and "version" of the model that a body names.
std::string_view model_name(const json::Value& body);
int32_t model_version(const json::Value& body);

}  // namespace pawl::entities
