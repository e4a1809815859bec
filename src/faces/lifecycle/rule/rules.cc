#include "faces/lifecycle/rule/rules.h"

#include <fmt/format.h>

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/rule/shapes.h"
#include "json/text.h"

namespace pawl::lifecycle {

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

namespace {

bool blank(std::string_view text) { return trimmed(text).empty(); }

// Members without which an action makes no sense. Values are checked against the type in
// check_rule.cc.
Result<void> check_transition(const js::Value& action) {
  if (blank(action.string_or("phase"))) return bad_rule("lifecycle_transition needs a \"phase\"");
  const js::Value* set = action.find("set");
  if (set && !set->is_null() && !set->is_object())
    return bad_rule("\"set\" must be an object of fields");
  return {};
}
Result<void> check_complete(const js::Value&) { return {}; }
Result<void> check_fail(const js::Value& action) {
  if (blank(action.string_or("reason")))
    return refuse(errc::reason_required, "lifecycle_fail needs a \"reason\"");
  return {};
}

// The actions themselves are in rule_firing.cc, in a table with the same names.
struct ActionType {
  std::string_view name;
  Result<void> (*check)(const js::Value&);
};
constexpr ActionType kActions[] = {
    {"lifecycle_transition", check_transition},
    {"lifecycle_complete", check_complete},
    {"lifecycle_fail", check_fail},
};
// {"field": "battery_pct", "operator"?: "eq" | "ne", "value": 5, "required"?: true}
Result<Condition> parse_condition(const js::Value& value) {
  if (!value.is_object() || value.string_or("field").empty())
    return bad_rule("each condition of \"when\" needs a \"field\" and a \"value\"");
  Condition out;
  out.field = value.string_or("field");
  std::string_view op = value.string_or("operator", "eq");
  if (op != "eq" && op != "ne")
    return bad_rule(fmt::format("condition on '{}': the operator is \"eq\" or \"ne\", not \"{}\"",
                                out.field, op));
  out.equal = op == "eq";
  if (const js::Value* wanted = value.find("value")) out.wanted = *wanted;
  if (const js::Value* required = value.find("required"))
    out.required = required->is_bool() && required->boolean();
  return out;
}

// {"phase": "landing"}, {"cron": "0 5 * * *"} or {"every": "PT5M"}
Result<void> parse_on(const js::Value& value, Rule& out) {
  static constexpr std::pair<std::string_view, Rule::On> kinds[] = {
      {"phase", Rule::On::phase}, {"cron", Rule::On::cron}, {"every", Rule::On::every}};
  if (!value.is_object() || value.object().size() != 1)
    return bad_rule("\"on\" must be {\"phase\": ...}, {\"cron\": ...} or {\"every\": ...}");
  for (auto [word, on] : kinds)
    if (const js::Value* text = value.find(word); text && text->is_string()) {
      out.on = on;
      out.on_text = text->string();
      if (blank(out.on_text)) return bad_rule(fmt::format("\"{}\" is empty", word));
      if (on == Rule::On::cron) {
        TRY_OK(parse_cron(out.on_text));
      }
      if (on == Rule::On::every) {
        auto every = parse_duration(out.on_text);
        if (!every || (every->nanos < kSecond && every->months <= 0))
          return bad_rule(fmt::format(
              "\"every\" must be an ISO 8601 duration of a second or more, such as PT5M, not '{}'",
              out.on_text));
      }
      return {};
    }
  return bad_rule("\"on\" must be {\"phase\": ...}, {\"cron\": ...} or {\"every\": ...}");
}

}  // namespace

// A list of conditions, an object of field -> value, or {"match": that object}. All must hold.
Result<std::vector<Condition>> parse_when(const js::Value& value) {
  std::vector<Condition> out;
  if (value.is_null()) return out;
  if (value.is_array()) {
    for (const js::Value& one : value.array()) {
      TRY(Condition condition, parse_condition(one));
      out.push_back(std::move(condition));
    }
    return out;
  }
  if (!value.is_object())
    return bad_rule("\"when\" must be an object of field -> value, or a list of conditions");
  const js::Value* match = value.find("match");
  // {"match": {...}} is the form of list queries; a field may also be called "match".
  const js::Value& fields =
      match && match->is_object() && value.object().size() == 1 ? *match : value;
  for (const auto& [field_name, wanted] : fields.object())
    out.push_back({field_name, true, wanted, false});
  return out;
}

Result<void> check_action(const js::Value& action) {
  if (!action.is_object()) return bad_rule("an action must be an object with a \"type\"");
  if (const js::Value* when = action.find("when")) {
    TRY_OK(parse_when(*when));
  }
  if (const js::Value* max = action.find("max_iterations");
      max && !max->is_null() && !(max->is_number() && max->as_uint64()))
    return bad_rule("\"max_iterations\" of an action must be a whole number, 0 for no limit");
  std::string_view type = action.string_or("type");
  for (const ActionType& row : kActions)
    if (row.name == type) return row.check(action);
  return bad_rule(fmt::format(
      "unknown action type '{}'; known: lifecycle_transition, lifecycle_complete, lifecycle_fail",
      type));
}

Result<void> check_members(const js::Value& action) {
  TRY_OK(check_action(action));
  for (const auto& [name, unused] : action.object())
    if (!document::kAction.has(name))
      return bad_rule(fmt::format("an action has the unknown member \"{}\"; known: {}", name,
                                  wire::names_of(document::kAction)));
  return {};
}

Result<void> check_texts(const js::Value& action) {
  for (std::string_view name : {"workflow", "phase", "reason"})
    if (const js::Value* text = action.find(name); text && !text->is_null() && !text->is_string())
      return bad_rule(
          fmt::format("\"{}\" of an action must be a text, not a {}", name, text->kind_name()));
  return {};
}

// {"workflow", "on", "when"?, "then": [actions], "max_iterations"?, "enabled"?}
Result<Rule> parse_rule(std::string_view name, const js::Value& body) {
  if (!body.is_object())
    return bad_rule("the body must be an object with \"workflow\", \"on\" and \"then\"");
  Rule out;
  out.name = name;
  out.body = body;
  bool on = false;
  for (const auto& [member, value] : body.object()) {
    if (member == document::kRule["workflow"].name && value.is_string())
      out.workflow = value.string();
    else if (member == document::kRule["on"].name) {
      TRY_OK(parse_on(value, out));
      on = true;
    } else if (member == document::kRule["when"].name) {
      TRY(out.when, parse_when(value));
    } else if (member == document::kRule["then"].name && value.is_array())
      out.then = value.array();
    else if (member == document::kRule["max_iterations"].name && value.is_number() &&
             value.as_uint64())
      out.max_iterations = *value.as_uint64();
    else if (member == document::kRule["enabled"].name && value.is_bool())
      out.enabled = value.boolean();
    else if (member != document::kRule["name"].name &&
             member != document::kRule["description"].name)
      return bad_rule(fmt::format("unknown or mistyped member \"{}\"; known: {}", member,
                                  wire::names_of(document::kRule)));
  }
  if (out.workflow.empty()) return bad_rule("\"workflow\" is missing");
  if (!on) return bad_rule("\"on\" is missing");
  if (out.then.empty()) return bad_rule("\"then\" must have at least one action");
  if (out.then.size() > limits::kActions)
    return bad_rule(fmt::format("\"then\" has more than {} actions", limits::kActions));
  for (const js::Value& action : out.then) {
    TRY_OK(check_action(action));
  }
  // A text search is enough: a false hit only counts firings without need.
  out.counted =
      out.max_iterations > 0 || js::print(js::Value(out.then)).find("$state.") != std::string::npos;
  return out;
}

Result<void> check_rule_writable(const WorkflowType& type, std::string_view field_name) {
  const auto* f = type.def.find(field_name);
  if (!f || !has(f->t, operator_writable))
    return refuse(errc::field_not_operator_writable,
                  fmt::format("'{}' of {}", field_name, type.def.name));
  return {};
}

Key rule_key(std::string_view tenant, std::string_view name) {
  return key({"lifecycle", tenant, "r", name});
}
Key rule_prefix(std::string_view tenant) { return prefix({"lifecycle", tenant, "r"}); }

// The rule as JSON, then its record of firings: docs/formats/lifecycle.md.
Bytes encode(const RuleCell& cell) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.str(cell.rule.name);
  w.str(js::print(cell.rule.body));
  w.sint(cell.next);
  w.uint(cell.fired);
  w.uint(cell.failed);
  w.sint(cell.last_fired);
  w.str(cell.last_error);
  return out;
}

Result<RuleCell> decode_rule(BytesView bytes) {
  Reader r(bytes);
  if (r.u8() != 1) return refuse(errc::corrupt_value, "a rule's cell cannot be read");
  std::string name(r.str());
  TRY(js::Value body, js::parse(r.str()));
  RuleCell out;
  TRY(out.rule, parse_rule(name, body));
  out.next = r.sint();
  out.fired = r.uint();
  out.failed = r.uint();
  out.last_fired = r.sint();
  out.last_error = r.str();
  if (!r.done()) return refuse(errc::corrupt_value, "a rule's cell cannot be read");
  return out;
}

// The rule as it was sent, with "status" added.
js::Value rule_json(const RuleCell& cell) {
  js::Object out;
  out.add("name", cell.rule.name);
  for (const auto& [name, value] : cell.rule.body.object())
    if (name != "name") out.add(name, value);
  js::Object status;
  status.add("fired", cell.fired);
  status.add("failed", cell.failed);
  if (cell.last_fired) status.add("last_fired", rfc3339(cell.last_fired));
  if (cell.next) status.add("next", rfc3339(cell.next));
  if (!cell.last_error.empty()) status.add("last_error", cell.last_error);
  out.add("status", std::move(status));
  return out;
}

// An interval counts from `now`, when the last round ended, so a long round delays the next one.
std::optional<Time> next_firing(const Rule& rule, Time now) {
  if (!rule.enabled || rule.on == Rule::On::phase) return std::nullopt;
  if (rule.on == Rule::On::every) {
    auto every = parse_duration(rule.on_text);
    if (!every) return std::nullopt;
    return add(now, *every);
  }
  auto cron = parse_cron(rule.on_text);
  if (!cron) return std::nullopt;
  return next_after(*cron, now);
}

// A condition that cannot be evaluated does not hold; if it is required, it is an error.
Result<bool> holds(const std::vector<Condition>& when, const WorkflowType* type,
                   std::string_view bytes, Variables& variables) {
  for (const Condition& c : when) {
    // Each condition reads the record again.
    variables.charge(bytes.size());
    TRY_OK(variables.check_work());
    std::optional<js::Value> got;
    if (c.field.starts_with('$')) {
      // The definition can be used in texts but not be compared.
      if (c.field != "$entity.lifecycle.workflow_def")
        got = variables.resolve(std::string_view(c.field).substr(1));
    } else if (const auto* f = type ? type->def.find(c.field) : nullptr) {
      if (auto v = read_field(bytes, *f)) got = to_json(*v);
    }
    if (!got) {
      if (!c.required) return false;
      std::string_view why = c.field.starts_with("$entity.lifecycle.")
                                 ? "is not managed by any workflow"
                                 : "has no such value";
      return refuse(errc::unresolved_template,
                    fmt::format("the condition on '{}' is required, and '{}' {}", c.field,
                                variables.entity_id, why));
    }
    // A condition on null means that the field has its zero value.
    bool same = js::equivalent(*got, c.wanted) ||
                (c.wanted.is_null() && type && type->def.find(c.field) &&
                 js::equivalent(*got, to_json(zero(type->def.find(c.field)->k))));
    if (same != c.equal) return false;
  }
  return true;
}

}  // namespace pawl::lifecycle
