#include "cli/openapi_schema.h"

#include "cli/example_files.h"
#include "json/text.h"

namespace pawl::cli {
namespace {

using wire::AnyShape;
using wire::Kind;
using wire::Member;
using wire::Type;

constexpr std::string_view kSchemas = "#/components/schemas/";

std::string_view type_name(Kind kind) {
  switch (kind) {
    case Kind::text:
    case Kind::octets: return "string";
    case Kind::integer: return "integer";
    case Kind::number: return "number";
    case Kind::flag: return "boolean";
    case Kind::list: return "array";
    case Kind::object:
    case Kind::map: return "object";
    case Kind::any:
    case Kind::document: break;
  }
  return {};
}

json::Value parse_sample(std::string_view text) {
  auto value = json::parse(text);
  CHECK(value);
  return *std::move(value);
}

// The base's rows come first.
template <class Visit>
void each_row(const AnyShape& shape, const Visit& visit) {
  if (shape.base) each_row(*shape.base, visit);
  for (const Member& row : shape)
    visit(row);
}

// Length and range are named by the kind of value that they bound.
void add_bounds(json::Object& out, const Type& type) {
  const bool integer = type.kind == Kind::integer || type.kind == Kind::number;
  const bool list = type.kind == Kind::list;
  if (type.min) out.add(integer ? "minimum" : list ? "minItems" : "minLength", *type.min);
  if (type.max) out.add(integer ? "maximum" : list ? "maxItems" : "maxLength", *type.max);
}

const ExampleFile* schema_file(std::string_view name) {
  for (const ExampleFile& file : schema_files())
    if (file.name == std::string(name) + ".json") return &file;
  return nullptr;
}

}  // namespace

bool is_required(const AnyShape& shape, const Member& row) {
  if (row.presence == Member::Presence::usual) return shape.complete;
  return row.presence == Member::Presence::required;
}

json::Value SchemaPrinter::refer(const AnyShape& shape) {
  if (shape.name.empty()) return object_of(shape);
  std::string name(shape.name);
  auto [known, added] = shapes_.emplace(name, &shape);
  if (known->second != &shape) mistakes_.insert("two shapes are named " + name);
  if (added) schemas_[name] = object_of(shape);
  return json::object({{"$ref", std::string(kSchemas) + name}});
}

json::Value SchemaPrinter::refer_document(std::string_view name) {
  const ExampleFile* file = schema_file(name);
  if (!file)
    mistakes_.insert("there is no file docs/schemas/" + std::string(name) + ".json");
  else if (!schemas_.contains(std::string(name)))
    follow(schemas_[std::string(name)] = parse_sample(file->text));
  return json::object({{"$ref", std::string(kSchemas) + std::string(name)}});
}

// Documents may refer to other documents.
void SchemaPrinter::follow(const json::Value& schema) {
  if (schema.is_array())
    for (const json::Value& one : schema.array())
      follow(one);
  if (!schema.is_object()) return;
  for (const json::Member& m : schema.object()) {
    follow(m.value);
    if (m.name == "$ref" && m.value.string().starts_with(kSchemas))
      refer_document(std::string_view(m.value.string()).substr(kSchemas.size()));
  }
}

json::Value SchemaPrinter::object_of(const AnyShape& shape) {
  json::Object properties;
  json::Array required;
  each_row(shape, [&](const Member& row) {
    properties.set(std::string(row.name), of(row));
    if (is_required(shape, row)) required.emplace_back(row.name);
  });
  json::Object out;
  out.add("type", "object");
  out.add("properties", std::move(properties));
  if (!required.empty()) out.add("required", std::move(required));
  return out;
}

// Elements of a list or a map.
json::Value SchemaPrinter::element_of(const Type& type) {
  Type element(type.element);
  std::copy(std::begin(type.shapes), std::end(type.shapes), element.shapes);
  element.format = type.format;
  element.choices = type.choices;
  element.nullable = type.null_elements;
  return of(element);
}

json::Value SchemaPrinter::plain(const Type& type) {
  if (type.kind == Kind::any) return json::Object();
  if (type.kind == Kind::document) return refer_document(type.format);
  if (type.kind == Kind::object && type.shapes[0]) {
    if (!type.shapes[1]) return refer(*type.shapes[0]);
    json::Array any;
    for (const AnyShape* shape : type.shapes)
      if (shape) any.push_back(refer(*shape));
    return json::object({{"anyOf", std::move(any)}});
  }
  json::Object out;
  out.add("type", type_name(type.kind));
  if (type.kind == Kind::octets) out.add("format", "binary");
  if (type.kind == Kind::text && !type.format.empty()) out.add("format", type.format);
  if (type.kind == Kind::text && !type.choices.empty()) {
    json::Array choices;
    for (std::string_view one : type.choices)
      choices.emplace_back(one);
    out.add("enum", std::move(choices));
  }
  add_bounds(out, type);
  if (type.kind == Kind::list) out.add("items", element_of(type));
  if (type.kind == Kind::map) out.add("additionalProperties", element_of(type));
  return out;
}

json::Value SchemaPrinter::of(const Type& type) {
  json::Value out = plain(type);
  if (!type.nullable || out.object().empty()) return out;
  const json::Value* name = out.find("type");
  if (!name || out.find("enum"))
    return json::object({{"anyOf", json::Array{std::move(out), json::object({{"type", "null"}})}}});
  json::Value either = json::Array{*name, "null"};
  out.object().set("type", std::move(either));
  return out;
}

json::Value SchemaPrinter::of(const Member& row) {
  json::Value out = of(static_cast<const Type&>(row));
  if (!row.doc.empty()) out.object().set("description", row.doc);
  if (auto value = default_of(row)) out.object().set("default", *std::move(value));
  if (!row.sample.empty()) out.object().set("examples", json::Array{parse_sample(row.sample)});
  return out;
}

json::Value SchemaPrinter::components() {
  json::Object out;
  for (auto& [name, schema] : schemas_)
    out.add(name, schema);
  return out;
}

std::optional<json::Value> default_of(const Member& row) {
  if (row.default_integer) return json::Value(*row.default_integer);
  if (row.default_flag) return json::Value(*row.default_flag);
  if (!row.default_text.empty()) return json::Value(row.default_text);
  return std::nullopt;
}

namespace {

// A request shows what it must have and what its rows give examples of. An answer shows all that is
// always there.
json::Value object_example(const AnyShape& shape) {
  json::Object out;
  each_row(shape, [&](const Member& row) {
    if (!is_required(shape, row) && row.sample.empty()) return;
    if (auto value = example_of(row)) out.set(std::string(row.name), *std::move(value));
  });
  return out;
}

json::Value text_example(const Type& type) {
  if (!type.choices.empty()) return *type.choices.begin();
  if (type.format == "uuid") return "8f14e45f-ceea-4e7a-9c1d-2b0f6c3a5d11";
  if (type.format == "date-time") return "2026-11-15T13:32:00Z";
  if (type.format == "byte") return "aGVsbG8=";
  return "text";
}

json::Value element_example(const Type& type) {
  if (type.element == Kind::object && type.shapes[0]) return object_example(*type.shapes[0]);
  Type element(type.element);
  element.format = type.format;
  element.choices = type.choices;
  return example_of(element).value_or(json::Value(json::Object()));
}

}  // namespace

std::optional<json::Value> example_of(const Type& type) {
  if (!type.sample.empty()) return parse_sample(type.sample);
  switch (type.kind) {
    case Kind::text: return text_example(type);
    case Kind::integer:
    case Kind::number: return json::Value(std::max<int64_t>(type.min.value_or(1), 1));
    case Kind::flag: return json::Value(true);
    case Kind::list: return json::Value(json::Array{element_example(type)});
    case Kind::map: return json::object({{"name", element_example(type)}});
    case Kind::object:
      return type.shapes[0] ? object_example(*type.shapes[0]) : json::Value(json::Object());
    case Kind::any: return json::Value(json::Object());
    case Kind::document: {
      const ExampleFile* file = schema_file(type.format);
      const json::Value schema = file ? parse_sample(file->text) : json::Value();
      const json::Value* examples = schema.find("examples");
      if (examples && examples->is_array() && !examples->array().empty())
        return examples->array()[0];
      return std::nullopt;
    }
    case Kind::octets: break;
  }
  return std::nullopt;
}

std::optional<json::Value> example_of(const Member& row) {
  if (row.sample.empty())
    if (auto value = default_of(row)) return value;
  return example_of(static_cast<const Type&>(row));
}

}  // namespace pawl::cli
