// Reads the document of a definition: what the members of definition/shapes.h become. Reading goes
// on after a problem, so that an upload reports all of them.

#include "base/bytes.h"
#include "base/hash.h"
#include "faces/processes/definition/call.h"
#include "faces/processes/definition/compensation.h"
#include "faces/processes/definition/decision_table.h"
#include "faces/processes/definition/definition.h"
#include "faces/processes/definition/durations.h"
#include "faces/processes/definition/fields.h"
#include "faces/processes/definition/policies.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/definition/steps.h"
#include "json/canonical.h"
#include "json/text.h"

namespace pawl::processes {

using json::Value;
using namespace document_fields;

namespace {

void read_duration(const Value& object, std::string_view name, const std::string& where,
                   Duration& out, Problems& problems) {
  std::string_view text = object.string_or(name);
  if (!text.empty()) set_duration(text, where + ": " + std::string(name), out, problems);
}

std::vector<Output> read_outputs(const Value* map) {
  std::vector<Output> out;
  if (!map) return out;
  for (const json::Member& m : map->object())
    out.push_back(make_output(m.name, m.value));
  return out;
}

// {"rules": [{"when": {"column": "expression"}, "outputs": {"name": value or "${expression}"}}]}.
// Blank cells of `when` match always and are dropped here.
void read_table(const Value& table, Step& step, const std::string& where, Problems& problems,
                Problems& broken) {
  if (!check(table, document::kTable, where + " decisionTable", problems, {"defaultNextStep"}))
    return;
  if (table.find("defaultNextStep"))
    broken.push_back(
        where +
        ": decisionTable.defaultNextStep was removed from the format (migration from 005): add a "
        "last rule with an empty \"when\" as the fallback, and give the step a nextStep");
  const Value* rules = member(table, "rules");
  if (!rules) return;
  for (size_t i = 0; i < rules->array().size(); ++i) {
    const Value& r = rules->array()[i];
    std::string at = where + " decisionTable.rules[" + std::to_string(i) + "]";
    if (!check(r, document::kRule, at, problems, {"then"})) continue;
    if (r.find("then"))
      broken.push_back(at +
                       ".then was removed from the format (migration from 005): let the rule set "
                       "an output variable and route on it with a DECISION after the table");
    Rule rule;
    if (const Value* when = member(r, "when"))
      for (const json::Member& m : when->object())
        if (m.value.is_string() &&
            m.value.string().find_first_not_of(" \t\r\n") != std::string::npos)
          rule.when.push_back({m.name, expr::Expression(m.value.string())});
    rule.outputs = read_outputs(member(r, "outputs"));
    step.rules.push_back(std::move(rule));
  }
}

// {"initial": "PT1S", "multiplier": 2, "max": "PT1M"}
void read_backoff(const Value& v, Step& step, const std::string& where, Problems& problems,
                  Problems& broken) {
  if (!check(v, document::kBackoff, where + " retryBackoff", problems)) return;
  Backoff b;
  if (v.string_or("initial").empty())
    broken.push_back(where + ": retryBackoff.initial is required, for example \"PT1S\"");
  read_duration(v, "initial", where + " retryBackoff", b.initial, broken);
  if (const Value* m = member(v, "multiplier")) {
    double times = m->as_double();
    if (!(times >= 1 && times <= 1000))
      broken.push_back(where + ": retryBackoff.multiplier must be from 1 to 1000");
    else
      b.multiplier_thousandths = static_cast<int64_t>(times * 1000 + 0.5);
  }
  if (!v.string_or("max").empty())
    read_duration(v, "max", where + " retryBackoff", b.max.emplace(), broken);
  step.backoff = b;
}

// A JSON Schema. `broken` names the place in the schema that cannot be used.
std::optional<schema::Schema> read_schema(const Value& object, std::string_view name,
                                          const std::string& where, Problems& broken) {
  const Value* v = member(object, name);
  if (!v || !v->is_object()) return std::nullopt;
  auto made = schema::Schema::compile(*v);
  if (made) return std::move(*made);
  broken.push_back(where + ": " + std::string(name) +
                   " is not a JSON Schema of draft 2020-12: " + made.error().message);
  return std::nullopt;
}

// [{"type": "TIMER", "duration": "PT30S", "interrupting": false, "targetStepId": "escalate"}].
// Durations are parsed in validate(), whose messages name the step.
void read_timers(const Value& events, Step& step, const std::string& where, Problems& problems) {
  for (size_t i = 0; i < events.array().size(); ++i) {
    const Value& e = events.array()[i];
    std::string at = where + " boundaryEvents[" + std::to_string(i) + "]";
    if (!check(e, document::kBoundary, at, problems)) continue;
    Timer t;
    t.type = e.string_or("type");
    t.duration_text = e.string_or("duration");
    t.target_id = e.string_or("targetStepId");
    if (const Value* interrupting = member(e, "interrupting"))
      t.interrupting = interrupting->boolean();
    step.timers.push_back(std::move(t));
  }
}

// A step that cannot be read keeps its place, so that the positions in later messages are right.
Step read_step(const Value& v, size_t index, Problems& problems, Problems& broken) {
  Step s;
  std::string where = "step[" + std::to_string(index) + "]";
  if (v.is_object() && !v.string_or("id").empty())
    where = "step \"" + std::string(v.string_or("id")) + "\"";
  if (!check(v, document::kStep, where, problems)) return s;
  s.id = v.string_or("id");
  s.name = v.string_or("name");
  s.type = v.string_or("type");
  s.next_id = v.string_or("nextStep");
  s.job_type = v.string_or("jobType");
  s.join_id = v.string_or("joinStep");
  s.delegate_class = v.string_or("delegateClass");
  if (const StepType* type = find_step_type(s.type)) s.kind = type->kind;
  if (const Value* n = member(v, "retryCount")) {
    // A negative count means none.
    s.retries = static_cast<uint32_t>(std::clamp<int64_t>(*n->as_int64(), 0, 1'000'000));
    s.names_retries = *n->as_int64() != 0;
  }
  if (const Value* list = member(v, "parallelNextSteps"))
    for (const Value& id : list->array())
      s.parallel_ids.push_back(id.string());
  if (const Value* map = member(v, "conditionalNextSteps"))
    for (const json::Member& m : map->object())
      s.branches.push_back({expr::Expression(m.name), m.value.string()});
  s.outputs = read_outputs(member(v, "transformations"));
  if (const Value* b = member(v, "retryBackoff")) read_backoff(*b, s, where, problems, broken);
  if (!v.string_or("attemptTimeout").empty())
    read_attempt_timeout(*v.find("attemptTimeout"), s, where, broken);
  read_signal(v, s, where, broken);
  if (const Value* call = member(v, "call")) {
    s.call = read_call(*call, where, problems, broken);
    if (s.kind != Kind::call) broken.push_back(where + ": call belongs to a CALL");
  }
  if (const Value* events = member(v, "boundaryEvents")) read_timers(*events, s, where, problems);
  if (const Value* limit = member(v, "limit")) {
    s.limit = read_limit(*limit, where, problems, broken);
    if (s.kind != Kind::service_task)
      broken.push_back(where + ": limit belongs to the definition or to a SERVICE_TASK");
  }
  if (const Value* undo = member(v, "compensation"))
    read_compensation(*undo, s, where, problems, broken);
  s.hit_policy_text = v.string_or("hitPolicy");
  if (const Value* table = member(v, "decisionTable"))
    read_table(*table, s, where, problems, broken);
  s.outputs_schema = read_schema(v, "outputsSchema", where, broken);
  if (const Value* chains = member(v, "autoStartNextWorkflow")) {
    s.chains = chains->boolean();
    if (s.kind != Kind::end)
      broken.push_back(where +
                       ": autoStartNextWorkflow belongs to the definition or to an END step");
  }
  return s;
}

// An expression over the variables of a start. Unlike in steps, a bad one is refused.
std::optional<expr::Expression> read_expression(const Value& document, std::string_view name,
                                                Problems& broken) {
  std::string_view text = document.string_or(name);
  if (text.empty()) return std::nullopt;
  expr::Expression out(text);
  if (const Error* problem = out.problem())
    broken.push_back("definition: " + std::string(name) +
                     " is not an expression: " + problem->message);
  return out;
}

// Gives each limit its scope, and the limit of the definition to the SERVICE_TASKs without their
// own.
void place_limits(Definition& d, const std::optional<Limit>& common) {
  auto scope = [&](const Limit& limit, const std::string& own) {
    return limit.name.empty() ? own : "~" + limit.name;
  };
  for (Step& s : d.steps) {
    if (s.kind != Kind::service_task) continue;
    if (s.limit)
      s.limit->scope = scope(*s.limit, d.id + "/" + s.id);
    else if (common) {
      s.limit = common;
      s.limit->scope = scope(*common, d.id);
    }
  }
}

// Values that the original leaves out when it shows a definition.
bool is_empty(const Value& v) {
  if (v.is_null()) return true;
  if (v.is_bool()) return !v.boolean();
  if (v.is_string()) return v.string().empty();
  if (v.is_array()) return v.array().empty();
  if (v.is_object()) return v.object().empty();
  return v.as_double() == 0;
}

}  // namespace

void set_duration(std::string_view text, const std::string& what, Duration& out,
                  Problems& problems) {
  auto duration = parse_duration(text);
  if (duration)
    out = *duration;
  else
    problems.push_back(what + " \"" + std::string(text) +
                       "\" is not an ISO 8601 duration such as PT30S, PT1H30M or P7D");
}

uint32_t Definition::find(std::string_view step_id) const {
  auto it = by_id.find(std::string(step_id));
  return it == by_id.end() ? kNoStep : it->second;
}

Definition read_definition(const Value& document, Problems& problems, Problems& broken) {
  Definition d;
  // With problems the reading goes on, unless there is no object to read.
  if (!check(document, document::kDefinition, "definition", problems) && !document.is_object())
    return d;
  d.id = document.string_or("id");
  d.name = document.string_or("name");
  d.description = document.string_or("description");
  d.next_workflow = document.string_or("nextWorkflowId");
  if (const Value* chains = member(document, "autoStartNextWorkflow"); chains && chains->is_bool())
    d.chains = chains->boolean();
  const Value* steps = member(document, "steps");
  if (steps && steps->is_array())
    for (const Value& s : steps->array())
      d.steps.push_back(read_step(s, d.steps.size(), problems, broken));
  for (uint32_t i = 0; i < d.steps.size(); ++i)
    d.by_id.emplace(d.steps[i].id, i);
  d.priority = read_expression(document, "priority", broken);
  d.fairness_key = read_expression(document, "fairnessKey", broken);
  d.input_schema = read_schema(document, "inputSchema", "definition", broken);
  if (const Value* v = member(document, "businessKey"); v && v->is_object())
    d.key_policy = read_key_policy(*v, problems, broken);
  d.compensates_failures = read_on_failure(document.string_or("onFailure"), broken);
  if (const Value* v = member(document, "retention"); v && v->is_object())
    d.retention = read_retention(*v, "definition: retention", problems, broken);
  if (const Value* v = member(document, "queries"); v && v->is_object())
    d.queries = read_queries(*v, broken);
  std::optional<Limit> limit;
  if (const Value* v = member(document, "limit"); v && v->is_object())
    limit = read_limit(*v, "definition", problems, broken);
  place_limits(d, limit);
  return d;
}

// Only the definition and its steps are tidied: values inside metadata, outputs and the like stay.
Value tidy_document(const Value& document) {
  json::Object out;
  for (const json::Member& m : document.object()) {
    if (m.name == "version" || is_empty(m.value)) continue;
    if (m.name != "steps") {
      out.add(m.name, m.value);
      continue;
    }
    json::Array steps;
    for (const Value& s : m.value.array()) {
      json::Object step;
      for (const json::Member& f : s.object()) {
        // `false` is not empty here: it overrides the definition's autoStartNextWorkflow.
        bool overrides = f.name == "autoStartNextWorkflow" && f.value.is_bool();
        if (overrides || !is_empty(f.value)) step.add(f.name, f.value);
      }
      steps.push_back(Value(std::move(step)));
    }
    out.add("steps", Value(std::move(steps)));
  }
  return Value(std::move(out));
}

std::string content_digest(const Value& document) {
  std::string text;
  // The order of branches is part of the meaning.
  json::append_canonical(text, tidy_document(document), "conditionalNextSteps");
  // 16 of 32 bytes: enough to compare the versions of one definition, whose heads keep them all.
  return std::string(view(sha256(text)).substr(0, 16));
}

// The cell is the document; everything else in Definition is compiled from it again.
Bytes encode_version(uint32_t version, Time uploaded, const Value& document) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.uint(version);
  w.sint(uploaded);
  w.str(json::print(document));
  return out;
}

Result<Definition> decode_version(BytesView bytes) {
  Reader r(bytes);
  uint8_t format = r.u8();
  uint32_t version = static_cast<uint32_t>(r.uint());
  Time uploaded = r.sint();
  BytesView text = r.str();
  if (!r.ok() || format != 1)
    return fail(Code::corrupt, "BAD_DEFINITION_CELL", "a stored definition cannot be read");
  // The limit of requests does not apply to what was accepted before.
  TRY(Value document, json::parse(text, {.max_bytes = text.size() + 1}));
  Problems ignored;  // there are none: the document was accepted
  Definition d = read_definition(document, ignored, ignored);
  validate(d, ignored);
  d.version = version;
  d.uploaded = uploaded;
  d.document = std::move(document);
  return d;
}

std::string document_text(const Definition& d) {
  std::string out = "{";
  bool first = true;
  for (const json::Member& m : d.document.object()) {
    if (!first) out += ',';
    json::append_string(out, m.name);
    json::append(out += ':', m.value);
    if (first) out += ",\"version\":" + std::to_string(d.version);
    first = false;
  }
  return out += "}";
}

}  // namespace pawl::processes
