#include "condition/condition.h"

#include <fmt/format.h>

namespace pawl::condition {

namespace {

template <class... Args>
std::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::invalid, "BAD_REQUEST", fmt::format(format, std::forward<Args>(args)...));
}

struct LifecycleName {
  std::string_view name;
  Lifecycle field;
};
constexpr LifecycleName kLifecycle[] = {
    {"state", Lifecycle::state},
    {"creationDate", Lifecycle::creation_date},
    {"previousTransition", Lifecycle::previous_transition},
    {"transitionForLatestSave", Lifecycle::previous_transition},
};

Result<Node> compile(const json::Value& text, size_t depth);

// Reads the operator, which may have one of three member names, and its value.
Result<void> compile_operator(Node& node, const json::Value& text) {
  std::string_view name;
  for (std::string_view alias : {"operatorType", "operator", "operation"}) {
    const json::Value* v = text.find(alias);
    if (!v) continue;
    if (!v->is_string()) return refuse("'{}' must be a string", alias);
    name = v->string();
    break;
  }
  node.op = find_operator(name);
  if (!node.op) return refuse("unknown operator '{}'; valid operators: {}", name, operator_names());
  const json::Value* value = text.find("value");
  if (value) node.value = *value;
  auto operand = prepare(*node.op, value);
  if (operand)
    node.operand = *std::move(operand);
  else
    node.bad_operand = std::move(operand.error());
  return {};
}

Result<Node> compile_simple(const json::Value& text, size_t) {
  const json::Value* path = text.find("jsonPath");
  if (!path || !path->is_string() || path->string().empty())
    return refuse("a simple condition needs a 'jsonPath' such as \"$.name\"");
  Node node;
  node.kind = Node::simple;
  node.path = Path(path->string());
  TRY_OK(compile_operator(node, text));
  return node;
}

Result<Node> compile_lifecycle(const json::Value& text, size_t) {
  std::string_view field = text.string_or("field");
  Node node;
  node.kind = Node::lifecycle;
  for (const LifecycleName& row : kLifecycle) {
    if (row.name != field) continue;
    node.field = row.field;
    TRY_OK(compile_operator(node, text));
    return node;
  }
  return refuse("unknown lifecycle field '{}'; known: state, creationDate, previousTransition",
                field);
}

Result<Node> compile_group(const json::Value& text, size_t depth) {
  if (depth >= kNesting) return refuse("the condition is nested deeper than {} groups", kNesting);
  std::string_view op = text.string_or("operator");
  if (op.empty()) op = text.string_or("operatorType");
  Node node;
  if (op == "AND")
    node.kind = Node::all;
  else if (op == "OR")
    node.kind = Node::any;
  else
    return refuse("unknown group operator '{}'; use AND or OR", op);
  const json::Value* conditions = text.find("conditions");
  if (conditions && !conditions->is_array() && !conditions->is_null())
    return refuse("'conditions' of a group must be an array");
  if (conditions && conditions->is_array()) {
    for (const json::Value& c : conditions->array()) {
      TRY(Node inner, compile(c, depth + 1));
      if (inner.kind == Node::function)
        return refuse(
            "a function condition cannot stand inside a group: make it the whole criterion");
      node.conditions.push_back(std::move(inner));
    }
  }
  return node;
}

Result<Node> compile_array(const json::Value& text, size_t) {
  const json::Value* path = text.find("jsonPath");
  const json::Value* values = text.find("values");
  if (!path || !path->is_string() || path->string().empty())
    return refuse("an array condition needs a 'jsonPath'");
  if (!values || !values->is_array())
    return refuse("an array condition needs an array of 'values'");
  Node node;
  node.kind = Node::array;
  node.path = Path(path->string());
  node.op = find_operator("EQUALS");
  for (const json::Value& v : values->array()) {
    TRY(Operand operand, prepare(*node.op, &v));
    node.values.emplace_back(!v.is_null(), std::move(operand));
  }
  return node;
}

Result<Node> compile_function(const json::Value& text, size_t) {
  const json::Value* f = text.find("function");
  Node node;
  node.kind = Node::function;
  node.call.name = f ? f->string_or("name") : "";
  if (node.call.name.empty()) return refuse("a function condition needs a function with a 'name'");
  const json::Value* config = f->find("config");
  if (!config || config->is_null()) return node;
  if (!config->is_object())
    return refuse("'config' of function '{}' must be an object", node.call.name);
  node.call.tags = config->string_or("calculationNodesTags");
  node.call.retry_policy = config->string_or("retryPolicy");
  node.call.context = config->string_or("context");
  if (const json::Value* attach = config->find("attachEntity"); attach && attach->is_bool())
    node.call.attach_entity = attach->boolean();
  if (const json::Value* ms = config->find("responseTimeoutMs"); ms && ms->is_number()) {
    auto n = ms->as_int64();
    if (!n || *n < 0)
      return refuse("'responseTimeoutMs' of function '{}' must be a whole number of milliseconds",
                    node.call.name);
    node.call.timeout_ms = *n;
  }
  return node;
}

struct ConditionType {
  std::string_view name;
  Result<Node> (*compile)(const json::Value&, size_t depth);
};
constexpr ConditionType kTypes[] = {
    {"simple", compile_simple}, {"lifecycle", compile_lifecycle}, {"group", compile_group},
    {"array", compile_array},   {"function", compile_function},
};

Result<Node> compile(const json::Value& text, size_t depth) {
  if (!text.is_object())
    return refuse("a condition must be an object, this is {} {}",
                  text.is_array() || text.is_object() ? "an" : "a", text.kind_name());
  std::string_view type = text.string_or("type");
  for (const ConditionType& row : kTypes)
    if (row.name == type) return row.compile(text, depth);
  return refuse(
      "unknown condition type '{}'; known types: simple, lifecycle, group, array, function", type);
}

// An array passes the test when one of its elements does.
bool test_field(const Node& node, const Field& field) {
  if (field.kind != Field::array) return node.op->test(field, node.operand);
  bool found = false;
  each_element(field, [&](const Field& e) {
    found = node.op->test(e, node.operand);
    return !found;
  });
  return found;
}

// With `[*]` in the path, one field that passes is enough. A missing field is tested as such.
bool test_simple(const Node& node, std::string_view data) {
  if (node.path.plain()) return test_field(node, node.path.find(data));
  std::vector<Field> found;
  bool exists = node.path.collect(data, found);
  if (node.path.is_length()) {
    if (!exists || found.empty()) return node.op->test({}, node.operand);
    for (const Field& array : found) {
      std::string length = std::to_string(count_elements(array));
      if (node.op->test({.kind = Field::number, .text = length}, node.operand)) return true;
    }
    return false;
  }
  if (!exists) return node.op->test({}, node.operand);
  for (const Field& field : found)
    if (node.op->test(field, node.operand)) return true;
  return false;
}

bool test_lifecycle(const Node& node, const Subject& subject) {
  auto test_text = [&](std::string_view text) {
    return node.op->test({.kind = Field::string, .text = text}, node.operand);
  };
  switch (node.field) {
    case Lifecycle::state: return test_text(subject.state);
    case Lifecycle::previous_transition: return test_text(subject.transition);
    case Lifecycle::creation_date: return test_text(rfc3339(subject.created));
  }
  return false;
}

// A position whose value is null is not tested: the array need not even have that element. A path
// with `[*]` names no array, so only such positions pass, as in the original.
bool test_array(const Node& node, std::string_view data) {
  Field field = node.path.find(data);
  std::vector<Field> elements;
  if (field.kind == Field::array && node.path.plain()) {
    each_element(field, [&](const Field& e) {
      elements.push_back(e);
      return elements.size() < node.values.size();
    });
  }
  for (size_t i = 0; i < node.values.size(); ++i) {
    const auto& [tested, operand] = node.values[i];
    if (!tested) continue;
    if (i >= elements.size() || !node.op->test(elements[i], operand)) return false;
  }
  return true;
}

bool test(const Node& node, const Subject& subject) {
  switch (node.kind) {
    case Node::simple: return test_simple(node, subject.data);
    case Node::lifecycle: return test_lifecycle(node, subject);
    case Node::array: return test_array(node, subject.data);
    case Node::all:
      for (const Node& c : node.conditions)
        if (!test(c, subject)) return false;
      return true;
    case Node::any:
      for (const Node& c : node.conditions)
        if (test(c, subject)) return true;
      return false;
    case Node::function: return false;
  }
  return false;
}

// Instructions of a pattern that cost as much as reading the text once.
constexpr size_t kInstructionsPerRead = 16;

struct Size {
  size_t conditions = 0, patterns = 0, cost = 0;
};
void measure(const Node& node, Size& out) {
  ++out.conditions;
  out.cost += 1 + node.values.size() / kInstructionsPerRead;
  if (node.operand.re) {
    ++out.patterns;
    out.cost += program_size(*node.operand.re) / kInstructionsPerRead;
  }
  for (const Node& inner : node.conditions)
    measure(inner, out);
}

Result<void> check_operands_of(const Node& node) {
  if (node.bad_operand) return fail(Error(*node.bad_operand));
  for (const Node& inner : node.conditions)
    TRY_OK(check_operands_of(inner));
  return {};
}

}  // namespace

Result<Condition> Condition::compile(const json::Value& text) {
  TRY(Condition c, compile_for_search(text));
  TRY_OK(c.check_operands());
  return c;
}

Result<void> Condition::check_operands() const { return check_operands_of(root_); }

Result<Condition> Condition::compile_for_search(const json::Value& text) {
  Condition c;
  TRY(c.root_, condition::compile(text, 0));
  Size size;
  measure(c.root_, size);
  if (size.patterns > kMaxPatterns)
    return refuse("the condition has {} patterns; at most {} are allowed", size.patterns,
                  kMaxPatterns);
  c.size_ = size.conditions;
  c.cost_ = size.cost;
  return c;
}

Result<void> Condition::check_size() const {
  if (size_ <= kMaxConditions) return {};
  return refuse("the request has {} conditions; at most {} are allowed: ask in several requests",
                size_, kMaxConditions);
}

bool Condition::matches(const Subject& subject) const { return test(root_, subject); }

}  // namespace pawl::condition
