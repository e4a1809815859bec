#include "faces/processes/grpc/convert.h"

#include <cmath>

#include "faces/processes/definition/steps.h"
#include "json/text.h"
#include "wire/status.h"

namespace pawl::processes {

namespace pb = google::protobuf;
namespace wf = workflow::v1;

namespace {

json::Value from_value(const pb::Value& v) {
  switch (v.kind_case()) {
    case pb::Value::kBoolValue: return json::Value(v.bool_value());
    case pb::Value::kNumberValue: return json::Value(v.number_value());
    case pb::Value::kStringValue: return json::Value(v.string_value());
    case pb::Value::kStructValue: return json::Value(from_struct(v.struct_value()));
    case pb::Value::kListValue: {
      json::Array out;
      for (const pb::Value& item : v.list_value().values())
        out.push_back(from_value(item));
      return json::Value(std::move(out));
    }
    default: return json::Value();
  }
}

// Numbers become doubles: protobuf has no other number in a Value.
void to_value(const json::Value& in, pb::Value* out) {
  if (in.is_bool())
    out->set_bool_value(in.boolean());
  else if (in.is_number())
    out->set_number_value(in.as_double());
  else if (in.is_string())
    out->set_string_value(in.string());
  else if (in.is_object())
    to_struct(in.object(), out->mutable_struct_value());
  else if (in.is_array()) {
    pb::ListValue* list = out->mutable_list_value();  // also for an empty list
    for (const json::Value& item : in.array())
      to_value(item, list->add_values());
  } else
    out->set_null_value(pb::NULL_VALUE);
}

struct TypeRow {
  wf::StepType type;
  Kind kind;
};
constexpr TypeRow kTypes[] = {
    {wf::STEP_TYPE_SERVICE_TASK, Kind::service_task},
    {wf::STEP_TYPE_USER_TASK, Kind::user_task},
    {wf::STEP_TYPE_DECISION, Kind::decision},
    {wf::STEP_TYPE_TRANSFORMATION, Kind::transformation},
    {wf::STEP_TYPE_WAIT, Kind::wait},
    {wf::STEP_TYPE_PARALLEL_GATEWAY, Kind::parallel_gateway},
    {wf::STEP_TYPE_JOIN_GATEWAY, Kind::join_gateway},
    {wf::STEP_TYPE_END, Kind::end},
    {wf::STEP_TYPE_DECISION_TABLE, Kind::decision_table},
    {wf::STEP_TYPE_CALL, Kind::call},
};

// An unknown number gives "", which validation refuses as an unsupported type.
std::string_view name_of_type(wf::StepType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return type_of(row.kind).name;
  return "";
}

wf::StepType type_of_kind(Kind kind) {
  for (const TypeRow& row : kTypes)
    if (row.kind == kind) return row.type;
  return wf::STEP_TYPE_UNSPECIFIED;
}

// The keys of a map in order, so that the same message always gives the same bytes.
template <class M>
std::vector<std::string> sorted_keys(const M& map) {
  std::vector<std::string> out;
  for (const auto& [key, value] : map)
    out.push_back(key);
  std::sort(out.begin(), out.end());
  return out;
}

void add_text(json::Object& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out.add(std::string(name), json::Value(text));
}

json::Value table_document(const wf::DecisionTable& in) {
  json::Array rules;
  for (const wf::DecisionTableRule& r : in.rules()) {
    json::Object when, outputs, rule;
    for (const std::string& key : sorted_keys(r.when()))
      when.add(key, json::Value(r.when().at(key)));
    for (const std::string& key : sorted_keys(r.outputs()))
      outputs.add(key, from_value(r.outputs().at(key)));
    if (when.size() > 0) rule.add("when", json::Value(std::move(when)));
    rule.add("outputs", json::Value(std::move(outputs)));
    add_text(rule, "then", r.then());
    rules.push_back(json::Value(std::move(rule)));
  }
  json::Object out;
  out.add("rules", json::Value(std::move(rules)));
  add_text(out, "defaultNextStep", in.default_next_step());
  return json::Value(std::move(out));
}

// The cells of `when` are strings; null, which is the same as blank, is left out.
void fill_table(wf::DecisionTable* out, const json::Value& in) {
  const json::Value* rules = in.find("rules");
  if (!rules || !rules->is_array()) return;
  for (const json::Value& r : rules->array()) {
    wf::DecisionTableRule* rule = out->add_rules();
    if (const json::Value* when = r.find("when"); when && when->is_object())
      for (const json::Member& m : when->object())
        if (m.value.is_string()) (*rule->mutable_when())[m.name] = m.value.string();
    if (const json::Value* outputs = r.find("outputs"); outputs && outputs->is_object())
      for (const json::Member& m : outputs->object())
        to_value(m.value, &(*rule->mutable_outputs())[m.name]);
  }
}

// A Struct has doubles only; the version of a call and the count of a compensation are integers.
json::Value with_integer(const pb::Struct& in, std::string_view name) {
  json::Object out = from_struct(in);
  if (const json::Value* value = out.find(name); value && value->is_number())
    if (double number = value->as_double();
        number == std::floor(number) && number <= INT32_MAX && number >= 0)
      out.set(std::string(name), json::Value(static_cast<int64_t>(number)));
  return json::Value(std::move(out));
}

// Empty fields are left out, because protobuf cannot tell empty from absent.
json::Value step_document(const wf::WorkflowStep& in) {
  json::Object out;
  add_text(out, "id", in.id());
  add_text(out, "name", in.name());
  add_text(out, "type", std::string(name_of_type(in.type())));
  add_text(out, "description", in.description());
  add_text(out, "nextStep", in.next_step());
  json::Array parallel, events;
  for (const std::string& id : in.parallel_next_steps())
    parallel.push_back(json::Value(id));
  if (!parallel.empty()) out.add("parallelNextSteps", json::Value(std::move(parallel)));
  add_text(out, "joinStep", in.join_step());
  json::Object branches, outputs;
  for (const std::string& key : sorted_keys(in.conditional_next_steps()))
    branches.add(key, json::Value(in.conditional_next_steps().at(key)));
  if (!branches.empty()) out.add("conditionalNextSteps", json::Value(std::move(branches)));
  for (const std::string& key : sorted_keys(in.transformations()))
    outputs.add(key, from_value(in.transformations().at(key)));
  if (!outputs.empty()) out.add("transformations", json::Value(std::move(outputs)));
  add_text(out, "jobType", in.job_type());
  add_text(out, "delegateClass", in.delegate_class());
  if (in.retry_count()) out.add("retryCount", json::Value(static_cast<int64_t>(in.retry_count())));
  for (const wf::BoundaryEvent& e : in.boundary_events())
    events.push_back(
        json::object({{"type", e.type() == wf::BOUNDARY_EVENT_TYPE_TIMER ? "TIMER" : ""},
                      {"duration", e.duration()},
                      {"interrupting", e.interrupting()},
                      {"targetStepId", e.target_step_id()}}));
  if (!events.empty()) out.add("boundaryEvents", json::Value(std::move(events)));
  add_text(out, "hitPolicy", in.hit_policy());
  if (in.has_decision_table()) out.add("decisionTable", table_document(in.decision_table()));
  if (in.has_outputs_schema())
    out.add("outputsSchema", json::Value(from_struct(in.outputs_schema())));
  add_text(out, "attemptTimeout", in.attempt_timeout());
  add_text(out, "signal", in.signal());
  add_text(out, "correlationKey", in.correlation_key());
  if (in.has_compensation()) out.add("compensation", with_integer(in.compensation(), "retryCount"));
  if (in.has_call()) out.add("call", with_integer(in.call(), "version"));
  return json::Value(std::move(out));
}

// `in` is the step's document, for members that Step does not keep as they were written.
void fill_step(wf::WorkflowStep* out, const json::Value& in, const Step& step) {
  out->set_id(step.id);
  out->set_name(step.name);
  out->set_type(type_of_kind(step.kind));
  out->set_description(std::string(in.string_or("description")));
  out->set_next_step(step.next_id);
  for (const std::string& id : step.parallel_ids)
    out->add_parallel_next_steps(id);
  out->set_join_step(step.join_id);
  for (const Branch& b : step.branches)
    (*out->mutable_conditional_next_steps())[b.when.text()] = b.target_id;
  if (const json::Value* map = in.find("transformations"); map && map->is_object())
    for (const json::Member& m : map->object())
      to_value(m.value, &(*out->mutable_transformations())[m.name]);
  out->set_job_type(step.job_type);
  out->set_delegate_class(step.delegate_class);
  if (const json::Value* n = in.find("retryCount"); n && n->is_number())
    out->set_retry_count(
        static_cast<int32_t>(std::clamp<int64_t>(n->as_int64().value_or(0), INT32_MIN, INT32_MAX)));
  for (const Timer& t : step.timers) {
    wf::BoundaryEvent* e = out->add_boundary_events();
    e->set_type(wf::BOUNDARY_EVENT_TYPE_TIMER);
    e->set_duration(t.duration_text);
    e->set_interrupting(t.interrupting);
    e->set_target_step_id(t.target_id);
  }
  out->set_hit_policy(step.hit_policy_text);
  if (const json::Value* table = in.find("decisionTable"); table && table->is_object())
    fill_table(out->mutable_decision_table(), *table);
  if (const json::Value* schema = in.find("outputsSchema"); schema && schema->is_object())
    to_struct(schema->object(), out->mutable_outputs_schema());
  out->set_attempt_timeout(step.attempt_timeout_text);
  out->set_signal(step.signal);
  if (step.correlation_key) out->set_correlation_key(step.correlation_key->text());
  if (const json::Value* call = in.find("call"); call && call->is_object())
    to_struct(call->object(), out->mutable_call());
  if (const json::Value* undo = in.find("compensation"); undo && undo->is_object())
    to_struct(undo->object(), out->mutable_compensation());
}

}  // namespace

namespace {
bool has_json_form(const pb::Value& v) {
  if (v.kind_case() == pb::Value::kNumberValue) return std::isfinite(v.number_value());
  if (v.kind_case() == pb::Value::kStructValue) return is_json(v.struct_value());
  const auto& items = v.list_value().values();
  return std::all_of(items.begin(), items.end(), has_json_form);
}
}  // namespace

bool is_json(const pb::Struct& in) {
  return std::all_of(in.fields().begin(), in.fields().end(),
                     [](const auto& field) { return has_json_form(field.second); });
}

bool is_json(const wf::WorkflowDefinition& in) {
  auto values = [](const auto& map) {
    return std::all_of(map.begin(), map.end(),
                       [](const auto& m) { return has_json_form(m.second); });
  };
  auto step = [&](const wf::WorkflowStep& s) {
    const auto& rules = s.decision_table().rules();
    return is_json(s.outputs_schema()) && is_json(s.call()) && is_json(s.compensation()) &&
           values(s.transformations()) &&
           std::all_of(rules.begin(), rules.end(),
                       [&](const wf::DecisionTableRule& r) { return values(r.outputs()); });
  };
  return is_json(in.metadata()) && is_json(in.input_schema()) && is_json(in.business_key()) &&
         is_json(in.retention()) && std::all_of(in.steps().begin(), in.steps().end(), step);
}

json::Object from_struct(const pb::Struct& in) {
  json::Object out;
  for (const std::string& key : sorted_keys(in.fields()))
    out.add(key, from_value(in.fields().at(key)));
  return out;
}

void to_struct(const json::Object& in, pb::Struct* out) {
  for (const json::Member& m : in)
    to_value(m.value, &(*out->mutable_fields())[m.name]);
}

// Times before 1970 do not occur: they come from the server's clock.
void to_timestamp(Time t, pb::Timestamp* out) {
  out->set_seconds(t / kSecond);
  out->set_nanos(static_cast<int32_t>(t % kSecond));
}

grpc::Status status_of(const Error& error) {
  return {static_cast<grpc::StatusCode>(wire::code_status(error.code).grpc), error.message};
}

json::Value to_document(const wf::WorkflowDefinition& in) {
  json::Object out;
  add_text(out, "id", in.id());
  add_text(out, "name", in.name());
  add_text(out, "description", in.description());
  if (in.auto_start_next_workflow()) out.add("autoStartNextWorkflow", json::Value(true));
  add_text(out, "nextWorkflowId", in.next_workflow_id());
  json::Array steps;
  for (const wf::WorkflowStep& s : in.steps())
    steps.push_back(step_document(s));
  out.add("steps", json::Value(std::move(steps)));
  if (in.has_metadata()) out.add("metadata", json::Value(from_struct(in.metadata())));
  if (in.has_input_schema()) out.add("inputSchema", json::Value(from_struct(in.input_schema())));
  if (in.has_business_key()) out.add("businessKey", json::Value(from_struct(in.business_key())));
  json::Object queries;
  for (const std::string& key : sorted_keys(in.queries()))
    queries.add(key, json::Value(in.queries().at(key)));
  if (!queries.empty()) out.add("queries", json::Value(std::move(queries)));
  add_text(out, "onFailure", in.on_failure());
  if (in.has_retention()) out.add("retention", json::Value(from_struct(in.retention())));
  return json::Value(std::move(out));
}

// A map has no order, so a client cannot see the order of the branches here.
void fill(wf::WorkflowDefinition* out, const Definition& d) {
  out->set_id(d.id);
  out->set_version(static_cast<int32_t>(d.version));
  out->set_name(d.name);
  out->set_description(d.description);
  out->set_auto_start_next_workflow(d.chains);
  out->set_next_workflow_id(d.next_workflow);
  const json::Value* steps = d.document.find("steps");
  for (size_t i = 0; i < d.steps.size(); ++i)
    fill_step(out->add_steps(), steps->array()[i], d.steps[i]);
  if (const json::Value* metadata = d.document.find("metadata"); metadata && metadata->is_object())
    to_struct(metadata->object(), out->mutable_metadata());
  if (const json::Value* schema = d.document.find("inputSchema"); schema && schema->is_object())
    to_struct(schema->object(), out->mutable_input_schema());
  if (const json::Value* policy = d.document.find("businessKey"); policy && policy->is_object())
    to_struct(policy->object(), out->mutable_business_key());
  out->set_on_failure(std::string(d.document.string_or("onFailure")));
  if (const json::Value* kept = d.document.find("retention"); kept && kept->is_object())
    to_struct(kept->object(), out->mutable_retention());
  for (const Query& q : d.queries)
    (*out->mutable_queries())[q.name] = q.expression.text();
}

// Commands answer with this JSON, so that HTTP needs no second form; gRPC reads it back.
Result<void> fill(wf::WorkflowInstance* out, std::string_view text) {
  TRY(json::Value in, json::parse(text, {.max_bytes = text.size() + 1}));
  out->set_id(std::string(in.string_or("id")));
  out->set_definition_id(std::string(in.string_or("definitionId")));
  if (const json::Value* v = in.find("definitionVersion"))
    out->set_definition_version(static_cast<int32_t>(v->as_int64().value_or(0)));
  if (auto status = find_status(in.string_or("status")))
    // The numbers of Status and of the gRPC enum are the same.
    out->set_status(static_cast<wf::InstanceStatus>(*status));
  if (const json::Value* steps = in.find("currentStepIds"))
    for (const json::Value& s : steps->array())
      out->add_current_step_ids(s.string());
  if (const json::Value* variables = in.find("variables"))
    to_struct(variables->object(), out->mutable_variables());
  if (auto t = parse_rfc3339(in.string_or("startedAt")))
    to_timestamp(*t, out->mutable_started_at());
  if (auto t = parse_rfc3339(in.string_or("completedAt")))
    to_timestamp(*t, out->mutable_completed_at());
  out->set_failure_reason(std::string(in.string_or("failureReason")));
  out->set_business_key(std::string(in.string_or("businessKey")));
  if (const json::Value* v = in.find("priority"))
    out->set_priority(static_cast<int32_t>(v->as_int64().value_or(0)));
  out->set_fairness_key(std::string(in.string_or("fairnessKey")));
  out->set_parent_instance_id(std::string(in.string_or("parentInstanceId")));
  return {};
}

void fill(wf::StepExecution* out, std::string_view instance_id, const ExecutionRow& row) {
  out->set_id(ordinal_id(instance_id, row.ordinal));
  out->set_instance_id(std::string(instance_id));
  out->set_step_id(row.step);
  out->set_step_type(type_of_kind(row.kind));
  out->set_attempt_number(static_cast<int32_t>(row.attempt));
  out->set_status(static_cast<wf::StepExecutionStatus>(row.status));
  to_timestamp(row.started, out->mutable_started_at());
  if (row.ended) to_timestamp(row.ended, out->mutable_ended_at());
  out->set_failure_reason(row.reason);
}

void fill(wf::Job* out, const PolledJob& p) {
  out->set_id(p.job.id);
  out->set_job_type(p.type);
  out->set_instance_id(p.job.instance_id);
  out->set_step_id(p.job.step_id);
  out->set_step_execution_id(p.job.execution_id);
  out->set_retries_remaining(static_cast<int32_t>(p.job.retries_left));
  // Variables travel as a Struct, whose numbers are doubles: large integers lose digits here.
  if (auto variables = json::parse(p.job.variables, {.max_bytes = p.job.variables.size() + 1}))
    to_struct(variables->object(), out->mutable_variables());
  to_timestamp(p.until, out->mutable_lock_expires_at());
}

}  // namespace pawl::processes
