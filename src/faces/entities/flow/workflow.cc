#include "faces/entities/flow/workflow.h"

#include <fmt/format.h>

#include <algorithm>

#include "faces/entities/flow/shapes.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

template <class... Args>
std::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::invalid, "BAD_REQUEST", fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
std::unexpected<Error> impossible(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::invalid, "VALIDATION_FAILED", fmt::format(format, std::forward<Args>(args)...));
}

// A document of 10 MiB could hold many more states than a real workflow has.
constexpr size_t kStates = 10'000;
constexpr std::string_view kExternal = "EXTERNAL";
// Other words for EXTERNAL: the spelling of newer clients, and two that the original's own suite
// uses. They are exported as they were written.
constexpr std::string_view kOtherExternal[] = {"externalized", "calculator", "FUNCTION"};
constexpr size_t kMaxAnnotationBytes = 64 * 1024;

struct ModeName {
  std::string_view name;
  Mode mode;
};
constexpr ModeName kModes[] = {
    {"SYNC", Mode::sync},
    {"ASYNC_SAME_TX", Mode::async_same_tx},
    {"ASYNC_NEW_TX", Mode::async_new_tx},
    {"COMMIT_BEFORE_DISPATCH", Mode::commit_before_dispatch},
};

// Reads members of an object and copies them into the exported form.
class Fields {
 public:
  Fields(const json::Value& from, json::Object& out, std::string where)
      : from_(from), out_(out), where_(std::move(where)) {}

  Result<std::string> text(const wire::Member& row, bool always) {
    const json::Value* v = from_.find(row.name);
    if (v && !v->is_null() && !v->is_string())
      return malformed("{}: '{}' must be a string", where_, row.name);
    std::string s = v && v->is_string() ? v->string() : "";
    if (always || !s.empty()) out_.add(std::string(row.name), s);
    return s;
  }
  Result<bool> flag(const wire::Member& row, bool always, bool default_value = false) {
    const json::Value* v = from_.find(row.name);
    if (v && !v->is_null() && !v->is_bool())
      return malformed("{}: '{}' must be true or false", where_, row.name);
    bool b = v && v->is_bool() ? v->boolean() : default_value;
    if (always || b) out_.add(std::string(row.name), b);
    return b;
  }
  Result<int64_t> number(const wire::Member& row) {
    const json::Value* v = from_.find(row.name);
    if (!v || v->is_null()) return int64_t{0};
    auto n = v->as_int64();
    if (!n || *n < 0)
      return malformed("{}: '{}' must be a whole number, not negative", where_, row.name);
    if (*n) out_.add(std::string(row.name), *n);
    return *n;
  }
  // An object that the client stores with the definition for its own use.
  Result<void> annotations(const wire::Member& row) {
    const json::Value* v = from_.find(row.name);
    if (!v || v->is_null()) return {};
    if (!v->is_object()) return impossible("{}: '{}' must be an object", where_, row.name);
    if (size_t size = json::print(*v).size(); size > kMaxAnnotationBytes)
      return impossible("{}: '{}' has {} bytes; at most {} are allowed", where_, row.name, size,
                        kMaxAnnotationBytes);
    out_.add(std::string(row.name), *v);
    return {};
  }
  Result<std::optional<condition::Condition>> criterion() {
    const json::Value* v = from_.find(document::kCriterion.name);
    if (!v) return std::optional<condition::Condition>();
    out_.add(std::string(document::kCriterion.name), *v);
    if (v->is_null()) return std::optional<condition::Condition>();
    auto compiled = condition::Condition::compile(*v);
    if (!compiled) return impossible("{}: criterion: {}", where_, compiled.error().message);
    return std::optional(*std::move(compiled));
  }

 private:
  const json::Value& from_;
  json::Object& out_;
  std::string where_;
};

// EXTERNAL in any casing, or another word for it.
bool known_type(std::string_view type) {
  auto same = [](char a, char b) { return toupper(static_cast<unsigned char>(a)) == b; };
  return std::equal(type.begin(), type.end(), kExternal.begin(), kExternal.end(), same) ||
         std::ranges::find(kOtherExternal, type) != std::end(kOtherExternal);
}

Result<void> read_config(Fields c, Processor& p) {
  TRY(p.attach_entity, c.flag(document::kConfig["attachEntity"], false));
  TRY(p.tags, c.text(document::kConfig["calculationNodesTags"], false));
  TRY(p.timeout_ms, c.number(document::kConfig["responseTimeoutMs"]));
  TRY(p.retry_policy, c.text(document::kConfig["retryPolicy"], false));
  TRY(p.context, c.text(document::kConfig["context"], false));
  TRY(bool inside, c.flag(document::kConfig["startNewTxOnDispatch"], false));
  p.start_new_tx = p.start_new_tx || inside;
  TRY(p.durable, c.flag(document::kConfig["durable"], false));
  TRY(p.validate_result, c.flag(document::kConfig["validateResult"], false));
  return {};
}

Result<Processor> read_processor(const json::Value& from, json::Array& exported,
                                 const std::string& where) {
  if (!from.is_object()) return malformed("{}: a processor must be an object", where);
  json::Object out, config_out;
  Fields fields(from, out, where);
  Processor p;
  TRY(std::string type, fields.text(document::kProcessor["type"], false));
  // Workflows for the hosted service have no type.
  if (type.empty()) out.add("type", type = kExternal);
  TRY(p.name, fields.text(document::kProcessor["name"], true));
  TRY(p.mode_text, fields.text(document::kProcessor["executionMode"], false));
  for (const ModeName& row : kModes)
    if (row.name == p.mode_text) p.mode = row.mode;
  TRY(p.start_new_tx, fields.flag(document::kProcessor["startNewTxOnDispatch"], false));
  json::Value none = json::Object();
  const json::Value* config = from.find(document::kProcessor["config"].name);
  if (!config || config->is_null()) config = &none;
  std::string named = fmt::format("{}, processor \"{}\"", where, p.name);
  if (!config->is_object()) return malformed("{}: 'config' must be an object", named);
  TRY_OK(read_config(Fields(*config, config_out, named), p));
  out.add("config", std::move(config_out));
  TRY_OK(Fields(from, out, named).annotations(document::kProcessor["annotations"]));
  exported.emplace_back(std::move(out));
  if (!known_type(type)) return impossible("{}: unknown type '{}'; use {}", named, type, kExternal);
  if (p.start_new_tx && p.mode != Mode::commit_before_dispatch)
    return impossible(
        "{}: startNewTxOnDispatch is for executionMode COMMIT_BEFORE_DISPATCH only, not for '{}'",
        named, p.mode_text);
  return p;
}

Result<condition::Function> read_schedule_function(const json::Value& from,
                                                   const std::string& where) {
  if (!from.is_object()) return malformed("{}: 'schedule.function' must be an object", where);
  json::Object kept;
  Fields fields(from, kept, where + ", schedule.function");
  condition::Function f;
  TRY(f.name, fields.text(document::kScheduleFunction["name"], false));
  TRY(std::string kind, fields.text(document::kScheduleFunction["resultKind"], false));
  TRY(f.tags, fields.text(document::kScheduleFunction["calculationNodesTags"], false));
  TRY(f.attach_entity, fields.flag(document::kScheduleFunction["attachEntity"], false, true));
  TRY(f.context, fields.text(document::kScheduleFunction["context"], false));
  TRY(f.timeout_ms, fields.number(document::kScheduleFunction["responseTimeoutMs"]));
  TRY(f.retry_policy, fields.text(document::kScheduleFunction["retryPolicy"], false));
  if (f.name.empty()) return impossible("{}: schedule.function needs a name", where);
  if (f.tags.empty())
    return impossible("{}: schedule.function \"{}\" needs calculationNodesTags", where, f.name);
  if (kind != "Schedule")
    return impossible("{}: the resultKind of schedule.function \"{}\" must be Schedule", where,
                      f.name);
  return f;
}

Result<std::optional<Schedule>> read_schedule(const json::Value& from, json::Object& out,
                                              const std::string& where) {
  const json::Value* v = from.find(document::kTransition["schedule"].name);
  if (!v || v->is_null()) return std::optional<Schedule>();
  if (!v->is_object()) return malformed("{}: 'schedule' must be an object", where);
  json::Object kept;
  Fields fields(*v, kept, where + ", schedule");
  Schedule s;
  auto given = [&](const wire::Member& row) {
    const json::Value* one = v->find(row.name);
    return one && !one->is_null();
  };
  const bool by_delay = given(document::kSchedule["delayMs"]);
  const bool by_function = given(document::kSchedule["function"]);
  const bool times_out = given(document::kSchedule["timeoutMs"]);
  TRY(s.delay_ms, fields.number(document::kSchedule["delayMs"]));
  if (times_out) {
    TRY(s.timeout_ms, fields.number(document::kSchedule["timeoutMs"]));
  }
  if (by_delay == by_function)
    return impossible("{}: a schedule needs either delayMs or function", where);
  if (by_delay && s.delay_ms == 0)
    return impossible("{}: schedule.delayMs must be greater than 0", where);
  if (by_function) {
    if (times_out)
      return impossible(
          "{}: schedule.timeoutMs goes with delayMs; a function answers expireAfterMs or expireAt",
          where);
    TRY(s.function, read_schedule_function(*v->find("function"), where));
  }
  out.add("schedule", *v);
  return std::optional(std::move(s));
}

Result<Transition> read_transition(const json::Value& from, json::Array& exported,
                                   const std::string& workflow, const std::string& state) {
  std::string where = fmt::format("workflow \"{}\", state \"{}\"", workflow, state);
  if (!from.is_object()) return malformed("{}: a transition must be an object", where);
  json::Object out;
  Fields fields(from, out, where);
  Transition t;
  TRY(t.name, fields.text(document::kTransition["name"], true));
  where += fmt::format(", transition \"{}\"", t.name);
  Fields named(from, out, where);
  TRY(t.next, named.text(document::kTransition["next"], true));
  TRY(t.manual, named.flag(document::kTransition["manual"], true));
  TRY(t.disabled, named.flag(document::kTransition["disabled"], false));
  TRY(t.criterion, named.criterion());
  TRY(t.schedule, read_schedule(from, out, where));
  if (t.schedule && t.manual)
    return impossible("{}: a scheduled transition fires by itself; it cannot be manual", where);
  const json::Value* processors = from.find(document::kTransition["processors"].name);
  if (processors && !processors->is_null()) {
    if (!processors->is_array()) return malformed("{}: 'processors' must be an array", where);
    json::Array list;
    for (const json::Value& p : processors->array()) {
      TRY(Processor processor, read_processor(p, list, where));
      t.processors.push_back(std::move(processor));
    }
    if (!list.empty()) out.add("processors", std::move(list));
  }
  TRY_OK(named.annotations(document::kTransition["annotations"]));
  TRY_OK(named.annotations(document::kTransition["criterionAnnotations"]));
  exported.emplace_back(std::move(out));
  return t;
}

Result<void> read_states(Workflow& w, const json::Value& from, json::Object& out) {
  const json::Value* states = from.find(document::kWorkflow["states"].name);
  json::Object exported;
  if (states && !states->is_null()) {
    if (!states->is_object())
      return malformed("workflow \"{}\": 'states' must be an object", w.name);
    if (states->object().size() > kStates)
      return impossible("workflow \"{}\" has {} states; at most {} are allowed", w.name,
                        states->object().size(), kStates);
    for (const json::Member& m : states->object()) {
      if (!m.value.is_object() && !m.value.is_null())
        return malformed("workflow \"{}\": state \"{}\" must be an object", w.name, m.name);
      const json::Value* transitions = m.value.find(document::kState["transitions"].name);
      json::Object state;
      json::Array list;
      std::vector<Transition>& into = w.states[m.name];
      if (transitions && !transitions->is_null()) {
        if (!transitions->is_array())
          return malformed("workflow \"{}\", state \"{}\": 'transitions' must be an array", w.name,
                           m.name);
        for (const json::Value& t : transitions->array()) {
          TRY(Transition transition, read_transition(t, list, w.name, m.name));
          into.push_back(std::move(transition));
        }
      }
      if (!list.empty()) state.add("transitions", std::move(list));
      TRY_OK(Fields(m.value, state, fmt::format("workflow \"{}\", state \"{}\"", w.name, m.name))
                 .annotations(document::kState["annotations"]));
      exported.add(m.name, std::move(state));
    }
  }
  out.add("states", std::move(exported));
  return {};
}

Result<Workflow> read_workflow(const json::Value& from, json::Array& exported) {
  if (!from.is_object()) return malformed("a workflow must be an object");
  json::Object out;
  Workflow w;
  Fields head(from, out, "a workflow");
  TRY(std::string version, head.text(document::kWorkflow["version"], true));
  TRY(w.name, head.text(document::kWorkflow["name"], true));
  Fields fields(from, out, fmt::format("workflow \"{}\"", w.name));
  TRY(std::string desc, fields.text(document::kWorkflow["desc"], false));
  TRY(w.initial_state, fields.text(document::kWorkflow["initialState"], true));
  TRY(w.active, fields.flag(document::kWorkflow["active"], true, true));
  TRY(w.criterion, fields.criterion());
  TRY_OK(read_states(w, from, out));
  TRY_OK(fields.annotations(document::kWorkflow["annotations"]));
  TRY_OK(fields.annotations(document::kWorkflow["criterionAnnotations"]));
  exported.emplace_back(std::move(out));
  return w;
}

// Finds a cycle of automated transitions without criteria, which would never end. The path is a
// vector and not the call stack: it may be as long as there are states.
struct LoopSearch {
  struct Visit {
    const std::string* state;
    size_t next = 0;  // index of the next transition to follow
  };
  const Workflow& workflow;
  std::map<std::string, int, std::less<>> colour{};  // 1: on the path, 2: done
  std::vector<Visit> path{};

  void enter(const std::string& state) {
    colour[state] = 1;
    path.push_back({&state});
  }
  Result<void> visit(const std::string& from) {
    enter(from);
    while (!path.empty()) {
      Visit& at = path.back();
      const std::vector<Transition>& all = workflow.transitions(*at.state);
      if (at.next == all.size()) {
        colour[*at.state] = 2;
        path.pop_back();
        continue;
      }
      const Transition& t = all[at.next++];
      if (!t.automated() || t.criterion) continue;
      int seen = colour[t.next];
      if (seen == 1) return refuse(t.next);
      if (seen == 0) enter(t.next);
    }
    return {};
  }
  std::unexpected<Error> refuse(const std::string& back_to) const {
    std::string loop;
    auto first =
        std::find_if(path.begin(), path.end(), [&](const Visit& p) { return *p.state == back_to; });
    for (auto at = first; at != path.end(); ++at)
      loop += *at->state + " -> ";
    return impossible(
        "workflow \"{}\": infinite loop detected: {}{} via unguarded automated transitions",
        workflow.name, loop, back_to);
  }
};

Result<void> validate(const Workflow& w) {
  if (!w.has_state(w.initial_state))
    return impossible("workflow \"{}\": initialState \"{}\" is not one of its states", w.name,
                      w.initial_state);
  for (const auto& [state, transitions] : w.states)
    for (const Transition& t : transitions)
      if (!w.has_state(t.next))
        return impossible(
            "workflow \"{}\", state \"{}\": transition \"{}\" leads to \"{}\", which is not one of "
            "its states",
            w.name, state, t.name, t.next);
  LoopSearch search{w};
  for (const auto& [state, transitions] : w.states)
    if (search.colour[state] == 0) TRY_OK(search.visit(state));
  return {};
}

Result<ImportMode> import_mode(const json::Value& request) {
  const json::Value* mode = request.find(document::kImport["importMode"].name);
  if (!mode || mode->is_null()) return ImportMode::merge;
  if (!mode->is_string()) return malformed("'importMode' must be a string");
  std::string name = mode->string();
  for (char& c : name)
    c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
  if (name.empty() || name == "MERGE") return ImportMode::merge;
  if (name == "REPLACE") return ImportMode::replace;
  if (name == "ACTIVATE") return ImportMode::activate;
  return malformed("unknown importMode '{}'; use MERGE, REPLACE or ACTIVATE", mode->string());
}

void set_active(json::Value& definition, bool active) { definition.object().set("active", active); }

json::Array combine(ImportMode mode, const json::Array& stored, json::Array incoming) {
  if (mode == ImportMode::replace) return incoming;
  auto named = [](json::Array& list, std::string_view name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const json::Value& d) { return d.string_or("name") == name; });
  };
  json::Array out;
  if (mode == ImportMode::activate) {
    for (const json::Value& d : stored) {
      if (named(incoming, d.string_or("name")) != incoming.end()) continue;
      out.push_back(d);
      set_active(out.back(), false);
    }
    for (json::Value& d : incoming)
      out.push_back(std::move(d));
    return out;
  }
  out = stored;
  for (json::Value& d : incoming) {
    auto twin = named(out, d.string_or("name"));
    if (twin != out.end())
      *twin = std::move(d);
    else
      out.push_back(std::move(d));
  }
  return out;
}

}  // namespace

const std::vector<Transition>& Workflow::transitions(std::string_view state) const {
  static const std::vector<Transition> none;
  auto it = states.find(state);
  return it == states.end() ? none : it->second;
}

const Transition* Workflow::find(std::string_view state, std::string_view transition) const {
  for (const Transition& t : transitions(state))
    if (t.name == transition) return &t;
  return nullptr;
}

const Workflow* WorkflowSet::find(std::string_view name) const {
  for (const Workflow& w : workflows)
    if (w.name == name) return &w;
  return name == default_workflow().name ? &default_workflow() : nullptr;
}

const Workflow* WorkflowSet::with_state(std::string_view state) const {
  if (workflows.empty()) return default_workflow().has_state(state) ? &default_workflow() : nullptr;
  for (const Workflow& w : workflows)
    if (w.active && w.has_state(state)) return &w;
  return nullptr;
}

const Workflow& default_workflow() {
  static const Workflow built_in = [] {
    Workflow w;
    w.name = "default";
    w.initial_state = "NONE";
    w.states["NONE"].push_back({.name = "NEW", .next = "CREATED"});
    w.states["CREATED"].push_back({.name = "UPDATE", .next = "CREATED", .manual = true});
    w.states["CREATED"].push_back({.name = "DELETE", .next = "DELETED", .manual = true});
    w.states["DELETED"];
    return w;
  }();
  return built_in;
}

Result<WorkflowSet> load_workflows(const json::Array& definitions) {
  WorkflowSet flows;
  for (const json::Value& d : definitions) {
    TRY(Workflow w, read_workflow(d, flows.definitions));
    flows.workflows.push_back(std::move(w));
  }
  return flows;
}

Result<WorkflowSet> import_workflows(const WorkflowSet& stored, const json::Value& request) {
  if (!request.is_object()) return malformed("the import must be an object with 'workflows'");
  TRY(ImportMode mode, import_mode(request));
  const json::Value* list = request.find(document::kImport["workflows"].name);
  if (list && !list->is_null() && !list->is_array())
    return malformed("'workflows' must be an array");
  json::Array incoming;
  if (list && list->is_array()) {
    for (const json::Value& d : list->array()) {
      TRY(Workflow w, read_workflow(d, incoming));
      set_active(incoming.back(), true);
    }
  }
  TRY(WorkflowSet flows, load_workflows(combine(mode, stored.definitions, std::move(incoming))));
  for (const Workflow& w : flows.workflows)
    TRY_OK(validate(w));
  return flows;
}

}  // namespace pawl::entities
