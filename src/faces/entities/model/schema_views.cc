#include <fmt/format.h>

#include "faces/entities/model/schema.h"

// The two export formats of a schema, and its stored form.

namespace pawl::entities {

namespace {

std::string_view schema_type(Type t) {
  if (t <= Type::unbound_integer) return "integer";
  if (is_numeric(t)) return "number";
  return t == Type::string ? "string" : t == Type::boolean ? "boolean" : "null";
}

// "[INTEGER, STRING]": clients of the original compare this text.
std::string list_of(TypeSet types) {
  types.settle(false);
  std::vector<Type> all = types.list();
  if (all.empty()) return "NULL";
  if (all.size() == 1) return std::string(name_of(all[0]));
  std::string out = "[";
  for (Type t : all)
    out += (out.size() > 1 ? ", " : "") + std::string(name_of(t));
  return out + "]";
}

// Each object is a section named by its path. All names are sorted by their bytes: clients compare
// the exports as text.
struct SimpleView {
  using Lines = std::map<std::string, json::Value>;
  Lines sections;

  static json::Value as_object(Lines lines) {
    json::Object out;
    for (auto& [name, value] : lines)
      out.add(name, std::move(value));
    return out;
  }

  void section(const std::string& path, const Shape& shape, bool element) {
    Lines out;
    if (element) out.emplace("#", "ARRAY_ELEMENT");
    for (const auto& [name, field] : shape.fields)
      lines(out, name, field);
    sections.emplace(path, as_object(std::move(out)));
    for (const auto& [name, field] : shape.fields) {
      if (field.is_object) section(path + "." + name, field, false);
      if (field.is_array() && field.element->is_object)
        section(path + "." + name + "[*]", *field.element, true);
    }
  }

  // The rules for mixed kinds are those of the original; its recorded exports are in tests/vectors.
  // Beside an object, scalars are not shown. Beside an inner array they are, and it is not.
  static void lines(Lines& out, const std::string& name, const Shape& field) {
    if (field.is_object || (field.is_array() && field.element->is_object))
      out.emplace("#." + name, "OBJECT");
    else if (field.is_array())
      out.emplace("." + name + "[*]", list_of(field.element->scalars));
    else
      out.emplace("." + name, list_of(field.scalars));
  }
};

}  // namespace

// Only the strongest kind is shown. There is a choice between scalar types, never between kinds.
json::Value json_schema(const Shape& shape) {
  if (shape.is_object) {
    json::Object properties;
    for (const auto& [name, field] : shape.fields)
      properties.add(name, json_schema(field));
    return json::object({{"type", "object"}, {"properties", std::move(properties)}});
  }
  if (shape.is_array())
    return json::object({{"type", "array"}, {"items", json_schema(*shape.element)}});
  json::Array choices;
  for (Type t : shape.scalars.list())
    choices.push_back(json::object({{"type", schema_type(t)}}));
  if (choices.empty()) return json::object({{"type", "null"}});
  if (choices.size() == 1) return std::move(choices[0]);
  return json::object({{"oneOf", std::move(choices)}});
}

json::Value simple_view(const Shape& shape) {
  SimpleView view;
  if (shape.is_array()) {
    if (shape.element->is_object)
      view.section("$[*]", *shape.element, true);
    else
      view.sections.emplace("$", json::object({{"[*]", list_of(shape.element->scalars)}}));
  } else if (shape.is_object) {
    view.section("$", shape, false);
  } else {
    view.sections.emplace("$", list_of(shape.scalars));
  }
  return SimpleView::as_object(std::move(view.sections));
}

// Short names, because a schema may have thousands of fields: t types, o fields of an object, e
// element and w width of an array. Types are stored by their number.
json::Value to_json(const Shape& shape) {
  json::Object out;
  if (!shape.scalars.empty()) {
    json::Array types;
    for (Type t : shape.scalars.list())
      types.emplace_back(static_cast<int64_t>(t));
    out.add("t", std::move(types));
  }
  if (shape.is_object) {
    json::Object fields;
    for (const auto& [name, field] : shape.fields)
      fields.add(name, to_json(field));
    out.add("o", std::move(fields));
  }
  if (shape.is_array()) {
    out.add("e", to_json(*shape.element));
    out.add("w", static_cast<uint64_t>(shape.width));
  }
  return out;
}

// Members that it does not understand are skipped, and so is an array beside an object, which
// earlier versions stored.
Shape shape_from(const json::Value& stored) {
  Shape shape;
  if (const json::Value* types = stored.find("t"); types && types->is_array())
    for (const json::Value& t : types->array())
      if (auto n = t.as_uint64(); n && *n < kTypes) shape.scalars.add(static_cast<Type>(*n));
  if (const json::Value* fields = stored.find("o"); fields && fields->is_object()) {
    shape.is_object = true;
    for (const json::Member& m : fields->object())
      shape.fields[m.name] = shape_from(m.value);
  }
  if (const json::Value* element = stored.find("e"); element && !shape.is_object) {
    shape.element = std::make_shared<Shape>(shape_from(*element));
    const json::Value* width = stored.find("w");
    shape.width = width ? width->as_uint64().value_or(0) : 0;
  }
  return shape;
}

}  // namespace pawl::entities
