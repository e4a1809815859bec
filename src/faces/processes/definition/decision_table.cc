#include "faces/processes/definition/decision_table.h"

#include <cmath>

#include "faces/processes/limits.h"

namespace pawl::processes {

namespace {

struct PolicyRow {
  std::string_view code;
  HitPolicy policy;
};
constexpr PolicyRow kPolicies[] = {
    {"U", HitPolicy::unique},     {"F", HitPolicy::first},   {"A", HitPolicy::any},
    {"R", HitPolicy::rule_order}, {"C", HitPolicy::collect}, {"C+", HitPolicy::sum},
    {"C#", HitPolicy::count},     {"C>", HitPolicy::max},    {"C<", HitPolicy::min}};

// The name begins the message too: clients look for it in the instance's failureReason.
std::unexpected<Error> failed(std::string name, const std::string& what) {
  return fail(Code::invalid, name, name + ": " + what);
}

Result<bool> matches(const Rule& rule, size_t index, const json::Object& variables, Time now,
                     size_t& work) {
  for (const Rule::Column& column : rule.when) {
    TRY_OK(check_work(work));
    // Even an empty test costs: a table may have a million cells.
    work += 8;
    auto held = column.when.test(variables, now, &work);
    if (!held)
      return failed("DecisionTableCellError", "rule " + std::to_string(index) + ", column \"" +
                                                  column.name + "\": " + held.error().message);
    if (!*held) return false;
  }
  return true;
}

// The outputs of each matching rule, in order.
Result<std::vector<json::Object>> matching_outputs(const Step& table, const json::Object& variables,
                                                   Time now, size_t& work) {
  TRY(std::vector<size_t> hits, matching_rules(table, variables, now, work));
  std::vector<json::Object> out;
  // Every output sees the variables from before the step, not those of other rules.
  for (size_t i : hits) {
    json::Object row;
    for (const Output& o : table.rules[i].outputs) {
      TRY_OK(check_work(work));
      auto value = evaluate(o, variables, now, work);
      if (!value)
        return failed("DecisionTableOutputError", "rule " + std::to_string(i) + ", output \"" +
                                                      o.name + "\": " + value.error().message);
      row.set(o.name, std::move(*value));
    }
    out.push_back(std::move(row));
  }
  return out;
}

Result<json::Value> sum_of(const std::string& column, const json::Array& values) {
  bool whole = true;
  int64_t exact = 0;
  double sum = 0;
  for (const json::Value& v : values) {
    sum += v.as_double();
    auto i = v.as_int64();
    // Integers are summed exactly while they fit 64 bits; the double is the fallback.
    if (!i || __builtin_add_overflow(exact, *i, &exact)) whole = false;
  }
  if (whole) return json::Value(exact);
  if (!std::isfinite(sum))
    return failed("DecisionTableAggregatorTypeError",
                  "the sum of output \"" + column + "\" is larger than a number can be");
  return json::Value(sum);
}

// `sign` 1 finds the largest, -1 the smallest. The value keeps its digits.
json::Value extreme_of(const json::Array& values, int sign) {
  const json::Value* best = &values[0];
  for (const json::Value& v : values)
    if (json::compare_numbers(v.number_text(), best->number_text()) * sign > 0) best = &v;
  return *best;
}

// Combines the values that the matching rules give to one output, as the hit policy says.
Result<json::Value> aggregate(HitPolicy policy, const std::string& column, json::Array values) {
  if (policy == HitPolicy::rule_order || policy == HitPolicy::collect)
    return json::Value(std::move(values));
  if (policy == HitPolicy::count) return json::Value(static_cast<int64_t>(values.size()));
  for (const json::Value& v : values)
    if (!v.is_number())
      return failed("DecisionTableAggregatorTypeError",
                    "output \"" + column + "\" must be a number in every matching rule, got " +
                        std::string(v.kind_name()));
  if (policy == HitPolicy::sum) return sum_of(column, values);
  return extreme_of(values, policy == HitPolicy::max ? 1 : -1);
}

// Hit policy A: an output that only some rules have is taken from those.
Result<json::Object> merge_agreeing(std::vector<json::Object> rows) {
  for (size_t i = 1; i < rows.size(); ++i)
    for (const json::Member& m : rows[i]) {
      const json::Value* first = rows[0].find(m.name);
      if (!first)
        rows[0].add(m.name, m.value);
      else if (!json::equivalent(*first, m.value))
        return failed("DecisionTableAnyConflict",
                      "matching rules disagree on output \"" + m.name + "\" under hit policy A");
    }
  return std::move(rows[0]);
}

}  // namespace

Result<std::vector<size_t>> matching_rules(const Step& table, const json::Object& variables,
                                           Time now, size_t& work) {
  std::vector<size_t> hits;
  for (size_t i = 0; i < table.rules.size(); ++i) {
    TRY(bool hit, matches(table.rules[i], i, variables, now, work));
    if (!hit) continue;
    hits.push_back(i);
    // Later rules are not evaluated, so their errors do not show.
    if (table.hit_policy == HitPolicy::first) break;
  }
  if (hits.empty())
    return failed(
        "DecisionTableNoRuleMatched",
        "no rule of the table matches; add a last rule with an empty \"when\" as the fallback");
  if (table.hit_policy == HitPolicy::unique && hits.size() > 1)
    return failed("DecisionTableUniqueViolation", "rules " + std::to_string(hits[0]) + " and " +
                                                      std::to_string(hits[1]) +
                                                      " both match under hit policy U");
  return hits;
}

Result<void> check_work(size_t work) {
  if (work <= kWorkPerTurn) return {};
  return failed("WorkLimitReached", "the expressions of one request may make " +
                                        std::to_string(kWorkPerTurn) + " bytes");
}

// 16 bytes for the value itself, as an estimate of its node.
size_t value_bytes(const json::Value& v) {
  size_t sum = 16;
  if (v.is_string()) sum += v.string().size();
  if (v.is_array())
    for (const json::Value& item : v.array())
      sum += value_bytes(item);
  if (v.is_object())
    for (const json::Member& m : v.object())
      sum += m.name.size() + value_bytes(m.value);
  return sum;
}

Output make_output(const std::string& name, const json::Value& value) {
  Output out{.name = name, .expression = {}, .literal = value};
  if (!value.is_string()) return out;
  std::string_view text = value.string();
  if (!text.starts_with("${") || !text.ends_with("}")) return out;
  // Without "${" and "}". The contract takes the whole text between them as one expression.
  text = text.substr(2, text.size() - 3);
  size_t begin = text.find_first_not_of(" \t\r\n");
  text = begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  out.expression = expr::Expression(text);
  out.is_now = text == "now()";
  return out;
}

Result<json::Value> evaluate(const Output& output, const json::Object& variables, Time now,
                             size_t& work) {
  if (output.is_now) return json::Value(rfc3339(now, 0));
  if (!output.expression) {
    work += value_bytes(output.literal);
    return output.literal;
  }
  auto value = output.expression->evaluate(variables, now, &work);
  if (!value) return value;
  size_t bytes = value_bytes(*value);
  work += bytes;
  if (bytes > kVariablesBytes)
    return fail(
        Code::invalid, "VariablesTooLarge",
        "VariablesTooLarge: the value has more than " + std::to_string(kVariablesBytes) + " bytes");
  return value;
}

std::optional<HitPolicy> find_hit_policy(std::string_view code) {
  if (code.empty()) return HitPolicy::unique;
  for (const PolicyRow& row : kPolicies)
    if (row.code == code) return row.policy;
  return std::nullopt;
}

std::string hit_policy_codes() {
  std::string out;
  for (const PolicyRow& row : kPolicies)
    out.append(out.empty() ? "" : ", ").append(row.code);
  return out;
}

Result<json::Object> decide(const Step& table, const json::Object& variables, Time now,
                            size_t& work) {
  TRY(std::vector<json::Object> rows, matching_outputs(table, variables, now, work));
  if (table.hit_policy == HitPolicy::unique || table.hit_policy == HitPolicy::first)
    return std::move(rows[0]);
  if (table.hit_policy == HitPolicy::any) return merge_agreeing(std::move(rows));
  json::Object out;
  for (const json::Object& row : rows)
    for (const json::Member& m : row) {
      // Columns come out in the order in which rules first name them; a rule without the column
      // gives null.
      if (out.has(m.name)) continue;
      json::Array column;
      for (const json::Object& r : rows) {
        const json::Value* v = r.find(m.name);
        column.push_back(v ? *v : json::Value());
      }
      TRY(json::Value value, aggregate(table.hit_policy, m.name, std::move(column)));
      out.add(m.name, std::move(value));
    }
  return out;
}

}  // namespace pawl::processes
