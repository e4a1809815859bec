#include "faces/entities/model/schema.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::entities {

Shape::Shape(const Shape& other) { *this = other; }
// A deep copy: `element` is a pointer only because a struct cannot hold itself.
Shape& Shape::operator=(const Shape& other) {
  scalars = other.scalars;
  is_object = other.is_object;
  fields = other.fields;
  element = other.element ? std::make_shared<Shape>(*other.element) : nullptr;
  width = other.width;
  return *this;
}

Shape infer(const json::Value& sample) {
  Shape shape;
  if (sample.is_object()) {
    shape.is_object = true;
    for (const json::Member& m : sample.object())
      shape.fields[m.name] = infer(m.value);
  } else if (sample.is_array()) {
    shape.element = std::make_shared<Shape>();
    shape.width = sample.array().size();
    for (const json::Value& e : sample.array())
      merge(*shape.element, infer(e));
    if (sample.array().empty()) shape.element->scalars.add(Type::null);
  } else {
    shape.scalars.add(type_of(sample));
  }
  return shape;
}

void merge(Shape& into, const Shape& from) {
  for (Type t : from.scalars.list())
    into.scalars.add(t);
  into.is_object = into.is_object || from.is_object;
  for (const auto& [name, field] : from.fields)
    merge(into.fields[name], field);
  if (from.element) {
    if (!into.element) into.element = std::make_shared<Shape>();
    merge(*into.element, *from.element);
    into.width = std::max(into.width, from.width);
  }
  into.scalars.settle(into.is_object || into.is_array());
}

namespace {

constexpr std::string_view kLevels[] = {"", "ARRAY_LENGTH", "ARRAY_ELEMENTS", "TYPE", "STRUCTURAL"};

std::string_view kind_of(const json::Value& v) {
  return v.is_object() ? "OBJECT" : v.is_array() ? "ARRAY" : name_of(type_of(v));
}

// For the error's detail, which clients show.
std::vector<std::string_view> expected(const Shape& shape) {
  std::vector<std::string_view> out;
  for (Type t : shape.scalars.list())
    out.push_back(name_of(t));
  if (shape.is_object) out.push_back("OBJECT");
  if (shape.is_array()) out.push_back("ARRAY");
  return out;
}

std::string shown(std::string_view path) { return path.empty() ? "$" : fmt::format("$.{}", path); }

std::unexpected<Error> incompatible(const Shape& shape, const json::Value& v,
                                    const std::string& path) {
  json::Array names;
  std::string list;
  for (std::string_view name : expected(shape)) {
    names.emplace_back(name);
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  json::Value detail =
      json::object({{"fieldPath", path}, {"expectedType", names}, {"actualType", kind_of(v)}});
  return fail(Code::invalid, kIncompatibleType,
              fmt::format("value of type {} at path '{}' is not compatible with the model's {}",
                          kind_of(v), shown(path), list.empty() ? "NULL" : list),
              json::print(detail));
}

// One step of the path to a value. Each step knows the step above it, so that the path is written
// only when there is an error.
struct PathStep {
  const PathStep* above = nullptr;
  std::string_view name{};  // of a member; empty for an element
  size_t element = 0;
  static constexpr size_t kEach = ~size_t{0};
};

std::string path_of(const PathStep* at) {
  if (!at) return {};
  std::string out = path_of(at->above);
  if (at->element == PathStep::kEach) return out + "[*]";
  // A default view has no data. A member may have the empty name, whose view does.
  if (at->name.data() == nullptr) return fmt::format("{}[{}]", out, at->element);
  if (!out.empty()) out += '.';
  return out += at->name;
}

Result<void> check(const Shape& shape, const json::Value& v, const PathStep* at) {
  // Null fits everywhere but at the root: see the public check().
  if (v.is_null()) return {};
  if (v.is_object()) {
    if (!shape.is_object) return incompatible(shape, v, path_of(at));
    for (const json::Member& m : v.object()) {
      PathStep here{at, m.name};
      auto field = shape.fields.find(m.name);
      if (field == shape.fields.end())
        return fail(Code::invalid, "BAD_REQUEST",
                    fmt::format("unexpected field '{}': the model does not have it; set a change "
                                "level of STRUCTURAL to let writes add fields",
                                shown(path_of(&here))));
      TRY_OK(check(field->second, m.value, &here));
    }
    return {};
  }
  if (v.is_array()) {
    if (!shape.is_array()) return incompatible(shape, v, path_of(at));
    for (size_t i = 0; i < v.array().size(); ++i) {
      PathStep here{.above = at, .element = i};
      TRY_OK(check(*shape.element, v.array()[i], &here));
    }
    return {};
  }
  if (!shape.scalars.accepts(type_of(v))) return incompatible(shape, v, path_of(at));
  return {};
}

std::unexpected<Error> not_allowed(std::string_view what, const std::string& path,
                                   ChangeLevel needs, ChangeLevel has) {
  return fail(Code::invalid, "BAD_REQUEST",
              fmt::format("{} at '{}' needs the change level {}, the model has {}", what,
                          shown(path), name_of(needs), name_of(has)));
}

// Compares a document with the shape and grows the shape where the change level allows it. On an
// error the shape may be partly grown: the caller drops it.
struct Extender {
  ChangeLevel level;
  bool grew = false;

  Result<void> allow(ChangeLevel needs, std::string_view what, const PathStep* at) {
    if (level < needs) return not_allowed(what, path_of(at), needs, level);
    grew = true;
    return {};
  }

  // `in_array`: the value is an element of an array, whose type the level ARRAY_ELEMENTS controls.
  Result<void> slot(Shape& shape, const json::Value& v, bool in_array, const PathStep* at) {
    if (v.is_null()) return {};
    bool scalar_known = !shape.scalars.empty() || (!shape.is_object && !shape.is_array());
    bool same_kind = v.is_object()  ? shape.is_object
                     : v.is_array() ? shape.is_array()
                                    : scalar_known;
    if (!same_kind && !shape.unknown())
      return fail(Code::invalid, "POLYMORPHIC_SLOT",
                  fmt::format("'{}' cannot become {}: the model knows it as another kind",
                              shown(path_of(at)), kind_of(v)));
    if (!same_kind && (v.is_object() || v.is_array())) return learn(shape, v, in_array, at);
    if (v.is_object()) return object(shape, v, at);
    if (v.is_array()) return array(shape, v, at);
    Type type = type_of(v);
    if (shape.scalars.accepts(type)) return {};
    TRY_OK(allow(in_array ? ChangeLevel::array_elements : ChangeLevel::type, "another scalar type",
                 at));
    shape.scalars.add(type);
    shape.scalars.settle(false);
    return {};
  }

  // Only null was seen here before, so an object or array is a change of the type.
  Result<void> learn(Shape& shape, const json::Value& v, bool in_array, const PathStep* at) {
    TRY_OK(allow(in_array ? ChangeLevel::array_elements : ChangeLevel::type,
                 "a structure where only null was seen", at));
    merge(shape, infer(v));
    return {};
  }

  Result<void> object(Shape& shape, const json::Value& v, const PathStep* at) {
    for (const json::Member& m : v.object()) {
      PathStep here{at, m.name};
      auto field = shape.fields.find(m.name);
      if (field == shape.fields.end()) {
        TRY_OK(allow(ChangeLevel::structural, "a new field", &here));
        shape.fields[m.name] = infer(m.value);
      } else {
        TRY_OK(slot(field->second, m.value, false, &here));
      }
    }
    return {};
  }

  Result<void> array(Shape& shape, const json::Value& v, const PathStep* at) {
    if (v.array().size() > shape.width) {
      TRY_OK(allow(ChangeLevel::array_length, "a longer array", at));
      shape.width = v.array().size();
    }
    PathStep here{.above = at, .element = PathStep::kEach};
    // The elements of an array that was always empty are merged first and then allowed as one
    // change.
    if (shape.element->unknown()) {
      Shape seen = infer(v);
      if (!seen.element->unknown())
        TRY_OK(allow(ChangeLevel::array_elements, "another element type", &here));
      merge(shape, seen);
      return {};
    }
    for (const json::Value& e : v.array())
      TRY_OK(slot(*shape.element, e, true, &here));
    return {};
  }
};

}  // namespace

std::string_view name_of(ChangeLevel level) {
  return level == ChangeLevel::none ? "none" : kLevels[static_cast<size_t>(level)];
}

Result<ChangeLevel> level_named(std::string_view name) {
  for (size_t i = 1; i < std::size(kLevels); ++i)
    if (kLevels[i] == name) return static_cast<ChangeLevel>(i);
  json::Array valid;
  for (size_t i = 1; i < std::size(kLevels); ++i)
    valid.emplace_back(kLevels[i]);
  return fail(
      Code::invalid, "INVALID_CHANGE_LEVEL",
      fmt::format("unknown change level '{}'; use ARRAY_LENGTH, ARRAY_ELEMENTS, TYPE or STRUCTURAL",
                  name),
      json::print(json::object({{"suppliedValue", name}, {"validValues", valid}})));
}

Result<void> check(const Shape& shape, const json::Value& value) {
  if (value.is_null()) return incompatible(shape, value, "");
  return check(shape, value, nullptr);
}

// The common case, without building a path or an error.
bool fits(const Shape& shape, const json::Value& v) {
  if (v.is_null()) return true;
  if (v.is_object()) {
    if (!shape.is_object) return false;
    return std::all_of(v.object().begin(), v.object().end(), [&](const json::Member& m) {
      auto field = shape.fields.find(m.name);
      return field != shape.fields.end() && fits(field->second, m.value);
    });
  }
  if (v.is_array()) {
    if (!shape.is_array() || v.array().size() > shape.width) return false;
    return std::all_of(v.array().begin(), v.array().end(),
                       [&](const json::Value& e) { return fits(*shape.element, e); });
  }
  return shape.scalars.accepts(type_of(v));
}

Result<bool> extend(Shape& shape, const json::Value& value, ChangeLevel level) {
  if (value.is_null()) return incompatible(shape, value, "");
  Extender e{level};
  TRY_OK(e.slot(shape, value, false, nullptr));
  return e.grew;
}

const Shape* shape_at(const Shape& root, std::string_view path) {
  const Shape* at = &root;
  while (!path.empty()) {
    size_t dot = path.find('.');
    std::string_view part = path.substr(0, dot);
    path = dot == path.npos ? std::string_view() : path.substr(dot + 1);
    // "a[*][*]" is an array of arrays.
    size_t eaches = 0;
    while (part.ends_with("[*]")) {
      part.remove_suffix(3);
      ++eaches;
    }
    if (!part.empty()) {
      auto field = at->fields.find(part);
      if (field == at->fields.end()) return nullptr;
      at = &field->second;
    }
    for (; eaches; --eaches) {
      if (!at->is_array()) return nullptr;
      at = at->element.get();
    }
    // An array is a field only under the path of its elements.
    if (at->is_array() && !at->is_object && at->scalars.empty()) return nullptr;
  }
  return at;
}

}  // namespace pawl::entities
