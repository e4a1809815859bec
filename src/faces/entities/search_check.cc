#include <fmt/format.h>

#include "faces/entities/search.h"

namespace pawl::entities {

namespace {

using condition::Node;

bool fits(const TypeSet& types, const json::Value& v) {
  if (v.is_null()) return true;
  if (v.is_object()) return false;
  if (v.is_array()) return std::all_of(v.array().begin(), v.array().end(), [&](const json::Value& e) { return fits(types, e); });
  return types.accepts(type_of(v));
}

Result<void> check_value(const Shape& shape, std::string_view path, const json::Value& v) {
  if (!shape.scalars.any_numeric() && !shape.scalars.has(Type::boolean)) return {};
  if (fits(shape.scalars, v)) return {};
  std::string types;
  for (Type t : shape.scalars.list()) types += (types.empty() ? "" : ", ") + std::string(name_of(t));
  return fail(Code::invalid, "CONDITION_TYPE_MISMATCH", fmt::format("the value for '$.{}' does not fit the field's type {}", path, types));
}

Result<void> check_node(const Node& node, const Model& model, bool types) {
  if (node.kind == Node::all || node.kind == Node::any) {
    for (const Node& c : node.conditions) TRY_OK(check_node(c, model, types));
    return {};
  }
  if (node.kind == Node::function) return fail(Code::invalid, "BAD_REQUEST", "a function condition is for workflows; a search cannot ask compute members");
  if (node.kind != Node::simple && node.kind != Node::array) return {};
  std::string path = node.path.name();
  // An array condition names the array itself, whose field is its elements'.
  if (node.kind == Node::array) path += "[*]";
  const Shape* shape = shape_at(model.shape, path);
  if (!shape)
    return fail(Code::invalid, "INVALID_FIELD_PATH", fmt::format("'$.{}' is not a field of model {} version {}; see its SIMPLE_VIEW export", node.path.name(), model.name, model.version));
  if (!types || node.path.is_length()) return {};
  if (node.kind == Node::array) {
    for (const json::Value& v : node.given) TRY_OK(check_value(*shape, path, v));
    return {};
  }
  return check_value(*shape, path, node.value);
}

}  // namespace

Result<void> check_condition(const condition::Condition& condition, const Model& model, bool check_types) {
  // Types before paths: a value that cannot match is told first, as the peer does.
  return check_node(condition.root(), model, check_types);
}

}  // namespace pawl::entities
