#pragma once
// The short verbs of the program: functions from a JSON body to a JSON answer. A body names a model
// by "name" and "version", an entity or a record by "id", and a joined transaction by "tx".

#include "condition/condition.h"
#include "faces/entities/flow/workflow.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"
#include "json/value.h"
#include "kernel/turn.h"

namespace pawl::entities {

using Verb = Result<Bytes> (*)(Turn& turn, std::string_view tenant, const json::Value& body);

struct VerbRow {
  std::string_view name;
  Verb run;
};

// Models. import_model merges "sample" into the schema of an unlocked model, or makes a new model;
// the answer is the model's id.
Result<Bytes> import_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> lock_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> unlock_model(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> set_change_level(Turn& turn, std::string_view tenant, const json::Value& body);
// unlock_model and delete_model refuse a model with entities. "count" is their number, for the
// message.
Result<Bytes> delete_model(Turn& turn, std::string_view tenant, const json::Value& body);
// Replaces the indexes by "fields". "fill" in the answer is true when entities must be indexed
// again: the service then calls fill_indexes with "ids" in batches, and at last with "filled".
Result<Bytes> set_indexes(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> fill_indexes(Turn& turn, std::string_view tenant, const json::Value& body);
// Replaces the unique keys by "keys" and claims the values of all entities of the model.
Result<Bytes> set_unique_keys(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> import_flows(Turn& turn, std::string_view tenant, const json::Value& body);

// Reads inside an open transaction.
Result<Bytes> get_entity(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> find_entities(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> list_transitions(Turn& turn, std::string_view tenant, const json::Value& body);
// The names of the transitions in the workflow that would be selected for the entity, as a JSON
// array. A function criterion cannot be asked here and counts as no match. `flows` may be null.
Bytes transition_names(const WorkflowSet* flows, const EntityView& entity);
Result<Bytes> group_entities(Turn& turn, std::string_view tenant, const json::Value& body);
// The notes of the open transaction: trails of one entity, and state changes of all entities.
Result<Bytes> own_trail(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> own_state_changes(Turn& turn, std::string_view tenant, const json::Value& body);
// Visits the entities of a model as the transaction sees them, by id, until `visit` returns false.
// Only those that match the condition; null: all. `lookups` as for work_of(). The visit alone does
// not make a later write to an entity a conflict.
using VisitCell = std::function<bool(BytesView key, const Cell& cell, const EntityView& entity)>;
Result<void> for_each_entity(Turn& turn, std::string_view tenant, const json::Value& body,
                             const condition::Condition* condition, size_t lookups,
                             const VisitCell& visit);
// The condition of a body, if it has one.
Result<std::optional<condition::Condition>> condition_of(const json::Value& body);
// Removals: one entity, a list of "ids", or those of a model that match "condition".
Result<Bytes> remove_one(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> remove_some(Turn& turn, std::string_view tenant, const json::Value& body);
// Refuses a function condition: a removal cannot ask compute members.
Result<void> check_removal_condition(const condition::Condition& condition);
Result<Bytes> remove_all(Turn& turn, std::string_view tenant, const json::Value& body);
// `ids` may be null: the ids are not listed then.
Bytes removal_answer(const Model& model, uint64_t count, const json::Array* ids);

// Records: messages, search jobs, machine clients, trusted keys and key pairs.
Result<Bytes> new_message(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_message(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_messages(Turn& turn, std::string_view tenant, const json::Value& body);
Error message_not_found(std::string_view id);
Error search_job_not_found(std::string_view id);
Result<Bytes> new_search_job(Turn& turn, std::string_view tenant, const json::Value& body);
// Stores the next page of "ids" that a search job found.
Result<Bytes> add_search_page(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> end_search_job(Turn& turn, std::string_view tenant, const json::Value& body);
// The timer that deletes a search job at the end of its lifetime.
inline constexpr std::string_view kSearchJobTimer = "job\x1f";
Result<Bytes> expire_search_job(Turn& turn, std::string_view timer);
Result<Bytes> put_client(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_client(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> put_trusted_key(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_trusted_key(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> put_key_pair(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_key_pair(Turn& turn, std::string_view tenant, const json::Value& body);

// The model that a body names: its "name" and "version".
std::string_view model_name(const json::Value& body);
int32_t model_version(const json::Value& body);

}  // namespace pawl::entities
