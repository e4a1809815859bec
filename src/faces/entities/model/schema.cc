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
    bool null = sample.array().empty();
    for (const json::Value& e : sample.array()) {
      null = null || e.is_null();
      if (!e.is_null()) merge(*shape.element, infer(e));
    }
    // Null comes last, so that the order of the elements does not matter: it vanishes beside a
    // scalar, but not beside an object that comes after the scalar.
    if (null) shape.element->scalars.add(Type::null);
    shape.element->scalars.settle(shape.element->is_structure());
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
  if (into.is_object) {
    into.element = nullptr;
    into.width = 0;
  } else if (from.element) {
    // An array that is empty says nothing about the elements of another.
    if (!into.element || into.width == 0)
      into.element = std::make_shared<Shape>(*from.element);
    else if (from.width)
      merge(*into.element, *from.element);
    into.width = std::max(into.width, from.width);
  }
  into.scalars.settle(into.is_structure());
}

size_t count_fields(const Shape& shape) {
  size_t count = shape.element ? count_fields(*shape.element) : 0;
  for (const auto& [name, field] : shape.fields)
    count += 1 + count_fields(field);
  return count;
}

namespace {

constexpr std::string_view kLevels[] = {"", "ARRAY_LENGTH", "ARRAY_ELEMENTS", "TYPE", "STRUCTURAL"};

std::string_view kind_of(const json::Value& v) {
  return v.is_object() ? "OBJECT" : v.is_array() ? "ARRAY" : name_of(type_of(v));
}

std::string_view kind_of(const Shape& shape) {
  return shape.is_object ? "OBJECT" : shape.is_array() ? "ARRAY" : "a scalar";
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

std::unexpected<Error> another_kind(const Shape& shape, const json::Value& v, const PathStep* at) {
  return fail(Code::invalid, "BAD_REQUEST",
              fmt::format("'{}' is {}, the model has an {} there", shown(path_of(at)), kind_of(v),
                          shape.is_object ? "OBJECT" : "ARRAY"));
}

Result<void> check(const Shape& shape, const json::Value& v, const PathStep* at);

Result<void> check_fields(const Shape& shape, const json::Value& v, const PathStep* at) {
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

Result<void> check(const Shape& shape, const json::Value& v, const PathStep* at) {
  if (v.is_null() && shape.nullable()) return {};
  if (v.is_object() && shape.is_object) return check_fields(shape, v, at);
  if (v.is_array() && shape.is_array()) {
    for (size_t i = 0; i < v.array().size(); ++i) {
      PathStep here{.above = at, .element = i};
      TRY_OK(check(*shape.element, v.array()[i], &here));
    }
    return {};
  }
  const bool scalar = !v.is_object() && !v.is_array();
  if (scalar && shape.scalars.accepts(type_of(v))) return {};
  if (shape.is_structure()) return another_kind(shape, v, at);
  return incompatible(shape, v, path_of(at));
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

  // `seen` is the shape of the document at this place. `in_array`: the place is the element of an
  // array, whose type the level ARRAY_ELEMENTS controls.
  Result<void> slot(Shape& shape, const Shape& seen, bool in_array, const PathStep* at) {
    const ChangeLevel own = in_array ? ChangeLevel::array_elements : ChangeLevel::type;
    if (seen.unknown()) {
      if (shape.nullable()) return {};
      TRY_OK(allow(own, "null", at));
      shape.scalars.add(Type::null);
      return {};
    }
    if (shape.unknown()) {
      // Only null was seen here before.
      TRY_OK(
          allow(own, seen.is_structure() ? "a structure where only null was seen" : "a type", at));
      merge(shape, seen);
      return {};
    }
    if (kind_of(shape) != kind_of(seen))
      return fail(Code::invalid, "POLYMORPHIC_SLOT",
                  fmt::format("'{}' cannot become {}: the model knows it as {}", shown(path_of(at)),
                              kind_of(seen), kind_of(shape)));
    TRY_OK(scalars(shape, seen, own, at));
    if (seen.is_object) return object(shape, seen, at);
    if (seen.is_array()) return array(shape, seen, at);
    return {};
  }

  // A null beside objects or arrays of the document needs no level, unlike one alone.
  Result<void> scalars(Shape& shape, const Shape& seen, ChangeLevel own, const PathStep* at) {
    for (Type type : seen.scalars.list()) {
      if (shape.scalars.accepts(type)) continue;
      if (shape.is_structure() && type != Type::null)
        return fail(Code::invalid, "POLYMORPHIC_SLOT",
                    fmt::format("'{}' has a {} beside an {}, which the model does not know there; "
                                "import a sample that has both",
                                shown(path_of(at)), name_of(type), kind_of(shape)));
      TRY_OK(allow(type == Type::null ? ChangeLevel::none : own, "another scalar type", at));
      shape.scalars.add(type);
    }
    shape.scalars.settle(shape.is_structure());
    return {};
  }

  Result<void> object(Shape& shape, const Shape& seen, const PathStep* at) {
    for (const auto& [name, value] : seen.fields) {
      PathStep here{at, name};
      auto field = shape.fields.find(name);
      if (field == shape.fields.end()) {
        TRY_OK(allow(ChangeLevel::structural, "a new field", &here));
        shape.fields[name] = value;
      } else {
        TRY_OK(slot(field->second, value, false, &here));
      }
    }
    return {};
  }

  Result<void> array(Shape& shape, const Shape& seen, const PathStep* at) {
    if (seen.width == 0) return {};
    PathStep here{.above = at, .element = PathStep::kEach};
    const bool was_empty = shape.width == 0;
    if (seen.width > shape.width) {
      TRY_OK(allow(ChangeLevel::array_length, "a longer array", at));
      shape.width = seen.width;
    }
    if (!was_empty || seen.element->unknown())
      return slot(*shape.element, *seen.element, true, &here);
    TRY_OK(allow(ChangeLevel::array_elements, "an element type", &here));
    *shape.element = *seen.element;
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
  // Null fits every scalar but the root.
  if (value.is_null() && !shape.is_structure()) return incompatible(shape, value, "");
  return check(shape, value, nullptr);
}

// The common case, without building a path or an error. A scalar beside an object or array is left
// to extend(), because the other elements of its array decide about it.
bool fits(const Shape& shape, const json::Value& v) {
  if (v.is_null()) return shape.nullable();
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
  return !shape.is_structure() && shape.scalars.accepts(type_of(v));
}

Result<bool> extend(Shape& shape, const json::Value& value, ChangeLevel level) {
  if (value.is_null() && !shape.is_structure()) return incompatible(shape, value, "");
  Extender e{level};
  TRY_OK(e.slot(shape, infer(value), false, nullptr));
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
