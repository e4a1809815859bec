#include <fmt/format.h>

#include "faces/entities/search/search.h"

// Checks of search conditions against the model.

namespace pawl::entities {

namespace {

using condition::Node;

bool fits(const TypeSet& types, const json::Value& v) {
  if (v.is_null()) return true;
  if (v.is_object()) return false;
  if (v.is_array())
    return std::all_of(v.array().begin(), v.array().end(),
                       [&](const json::Value& e) { return fits(types, e); });
  return types.accepts(type_of(v));
}

Result<void> check_value(const Shape& shape, std::string_view path, const json::Value& v) {
  // No operator compares with an object. Operators for texts take any other value.
  bool texts = !shape.scalars.any_numeric() && !shape.scalars.has(Type::boolean);
  if (shape.scalars.empty() || (texts && !v.is_object()) || fits(shape.scalars, v)) return {};
  std::string types;
  for (Type t : shape.scalars.list())
    types += (types.empty() ? "" : ", ") + std::string(name_of(t));
  return fail(Code::invalid, "CONDITION_TYPE_MISMATCH",
              fmt::format("the value for '$.{}' does not fit the field's type {}", path, types));
}

// A value that the operator ignores may have any type, and so may those of an array condition. A
// value that is compared with the length of an array must fit its elements, as in the original.
Result<void> check_values(const Node& node, const Model& model) {
  const std::string& path = node.path.name();
  const Shape* shape = shape_at(model.shape, path);
  if (!shape || node.kind == Node::array ||
      node.op->operand_kind == condition::OperandKind::nothing)
    return {};
  return check_value(*shape, path, node.value);
}

Result<void> check_path(const Node& node, const Model& model) {
  if (shape_at(model.shape, node.path.name())) return {};
  // An array condition may also name an array, whose elements are the field in the model.
  if (node.kind == Node::array && shape_at(model.shape, node.path.name() + "[*]")) return {};
  return fail(
      Code::invalid, "INVALID_FIELD_PATH",
      fmt::format("'$.{}' is not a field of model {} version {}; see its SIMPLE_VIEW export",
                  node.path.name(), model.name, model.version));
}

Result<void> check_node(const Node& node, const Model& model,
                        Result<void> (*check)(const Node&, const Model&)) {
  if (node.kind == Node::function)
    return fail(Code::invalid, "BAD_REQUEST",
                "a function condition is for workflows; a search cannot ask compute members");
  if (node.kind == Node::simple || node.kind == Node::array) return check(node, model);
  for (const Node& c : node.conditions)
    TRY_OK(check_node(c, model, check));
  return {};
}

}  // namespace

Result<void> check_condition(const condition::Condition& condition, const Model& model,
                             bool check_types) {
  // Types are checked before paths, like in the hosted service.
  if (check_types) TRY_OK(check_node(condition.root(), model, check_values));
  return check_node(condition.root(), model, check_path);
}

}  // namespace pawl::entities
