#pragma once
// The short verbs of the program: functions from a JSON body to a JSON answer.

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
// The names of the transitions in the workflow that would be selected for the entity, as a JSON
// array. A function criterion cannot be asked here and counts as no match. `flows` may be null.
Bytes transition_names(const WorkflowSet* flows, const EntityView& entity);
Result<Bytes> group_entities(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> own_trail(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> own_state_changes(Turn& turn, std::string_view tenant, const json::Value& body);
// Visits the entities of a model as the transaction sees them, by id, until `visit` returns false.
// Only those that match the condition; null: all. The visit alone does not make a later write to an
// entity a conflict.
using VisitCell = std::function<bool(BytesView key, const Cell& cell, const EntityView& entity)>;
Result<void> for_each_entity(Turn& turn, std::string_view tenant, const json::Value& body,
                             const condition::Condition* condition, const VisitCell& visit);
// The condition of a body, if it has one.
Result<std::optional<condition::Condition>> condition_of(const json::Value& body);
Result<Bytes> remove_one(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> remove_some(Turn& turn, std::string_view tenant, const json::Value& body);
// Refuses a function condition: a removal cannot ask compute members.
Result<void> check_removal_condition(const condition::Condition& condition);
Result<Bytes> remove_all(Turn& turn, std::string_view tenant, const json::Value& body);
// `ids` may be null: the ids are not listed then.
Bytes removal_answer(const Model& model, uint64_t count, const json::Array* ids);

Result<Bytes> new_message(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_message(Turn& turn, std::string_view tenant, const json::Value& body);
Result<Bytes> delete_messages(Turn& turn, std::string_view tenant, const json::Value& body);
Error message_not_found(std::string_view id);
Error search_job_not_found(std::string_view id);
Result<Bytes> new_search_job(Turn& turn, std::string_view tenant, const json::Value& body);
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
