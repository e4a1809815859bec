#pragma once
// A schema is inferred from sample documents: for each field, the kinds and scalar types that
// occurred. It grows by merging and never shrinks.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace pawl::entities {

// Lists of types are shown in this order.
enum class Type : uint8_t {
  integer,
  long_integer,
  big_integer,
  unbound_integer,
  double_decimal,
  big_decimal,
  unbound_decimal,
  string,
  boolean,
  null,
};
inline constexpr size_t kTypes = 10;
std::string_view name_of(Type type);
bool is_numeric(Type type);
// True when each value of `from` is also one of `to`.
bool widens(Type from, Type to);
// By value, not by spelling: 1.0 and 1e3 are INTEGER.
Type type_of_number(std::string_view digits);
Type type_of(const json::Value& scalar);
// The normal form of a number: "1" for 1.0, 1 and 10e-1.
std::string plain_number(std::string_view digits);

class TypeSet {
 public:
  void add(Type t) { bits_ |= 1u << static_cast<int>(t); }
  void remove(Type t) { bits_ &= ~(1u << static_cast<int>(t)); }
  bool has(Type t) const { return bits_ >> static_cast<int>(t) & 1; }
  bool empty() const { return bits_ == 0; }
  bool accepts(Type t) const;  // the set has t, or a type that t widens to
  bool any_numeric() const;
  // Replaces several number types by one that all of them widen to. Removes null beside any other
  // type, except beside an object or array, where it says that the place may be null.
  void settle(bool beside_structure);
  std::vector<Type> list() const;
  bool operator==(const TypeSet&) const = default;
  bool only_null() const { return bits_ == 1u << static_cast<int>(Type::null); }

 private:
  uint32_t bits_ = 0;
};

// One place in the documents of a model: a field, or the element of an array. It has the strongest
// kind that occurred there: object before array before scalar. An array beside an object is
// forgotten. The types of scalars beside an object or array are remembered.
struct Shape {
  TypeSet scalars;  // has null beside an object or array when the place may be null
  bool is_object = false;
  std::map<std::string, Shape, std::less<>> fields;
  std::shared_ptr<Shape> element;  // of an array, else null; owned by this shape alone
  size_t width = 0;                // the longest array seen

  bool is_array() const { return element != nullptr; }
  bool is_structure() const { return is_object || is_array(); }
  bool nullable() const { return !is_structure() || scalars.has(Type::null); }
  bool unknown() const {
    return !is_object && !is_array() && (scalars.empty() || scalars.only_null());
  }
  Shape() = default;
  Shape(const Shape& other);
  Shape& operator=(const Shape& other);
  Shape(Shape&&) = default;
  Shape& operator=(Shape&&) = default;
};

// The shape of one document. An empty array has an element of type NULL.
Shape infer(const json::Value& sample);
// Afterwards `into` accepts all that either accepted.
void merge(Shape& into, const Shape& from);

// The fields of the shape, at all levels.
size_t count_fields(const Shape& shape);

// How much an entity write may change the schema.
enum class ChangeLevel : uint8_t { none, array_length, array_elements, type, structural };
std::string_view name_of(ChangeLevel level);
// Fails with INVALID_CHANGE_LEVEL.
Result<ChangeLevel> level_named(std::string_view name);

inline constexpr Reason kIncompatibleType{"INCOMPATIBLE_TYPE"};
// Fails with BAD_REQUEST for an unknown field and for a value of another kind where an object or
// array belongs, and with INCOMPATIBLE_TYPE for a value that does not fit a scalar. A scalar whose
// type was remembered beside an object or array fits there.
Result<void> check(const Shape& shape, const json::Value& value);
// True when the value passes check() and no array is longer than before: extend() would change
// nothing.
bool fits(const Shape& shape, const json::Value& value);
// Grows the shape so that the value fits, as far as the level allows. Returns true when it grew.
// The value's own shape is compared place by place: fails with POLYMORPHIC_SLOT where the kinds
// differ, even when check() would accept the value, and with BAD_REQUEST where the level is too
// low.
Result<bool> extend(Shape& shape, const json::Value& value, ChangeLevel level);

// The shape at a path as conditions write it ("o.k", "arr[*].q"); null when the path is neither a
// field nor a prefix of one.
const Shape* shape_at(const Shape& root, std::string_view path);

json::Value json_schema(const Shape& shape);
json::Value simple_view(const Shape& shape);

// The stored form.
json::Value to_json(const Shape& shape);
Shape shape_from(const json::Value& stored);

}  // namespace pawl::entities
