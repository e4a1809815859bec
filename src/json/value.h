#pragma once
// A JSON value that keeps the order of members and the digits of numbers. A number is stored as its
// text; callers that compute with it choose the type (as_int64, as_double). operator== compares the
// text of numbers, so 1.0 and 1 differ; same_number() and equivalent() compare their values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/result.h"

namespace pawl::json {

struct Member;
class Value;
using Array = std::vector<Value>;

// The members of an object in their order. Lookup is a linear search: most objects have few
// members.
class Object {
 public:
  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  // Replaces the value of the member in place, or adds the member at the end.
  Value& set(std::string name, Value value);
  // Adds a member at the end without a search. The caller knows that the name is new.
  Value& add(std::string name, Value value);
  bool erase(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  size_t size() const { return members_.size(); }
  bool empty() const { return members_.empty(); }
  void reserve(size_t n) { members_.reserve(n); }
  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }
  auto begin() { return members_.begin(); }
  auto end() { return members_.end(); }
  bool operator==(const Object& other) const;  // the order of members does not matter

 private:
  std::vector<Member> members_;
};

struct Number {
  std::string text;
  bool operator==(const Number&) const = default;
};

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool v) : v_(v) {}
  Value(int v) : Value(static_cast<int64_t>(v)) {}
  Value(int64_t v);
  Value(uint64_t v);
  Value(double v);  // the shortest text that reads back; infinity and NaN become null
  Value(Number v) : v_(std::move(v)) {}
  Value(std::string v) : v_(std::move(v)) {}
  Value(std::string_view v) : v_(std::string(v)) {}
  Value(const char* v) : v_(std::string(v)) {}
  Value(Array v) : v_(std::move(v)) {}
  Value(Object v) : v_(std::move(v)) {}

  bool is_null() const { return v_.index() == 0; }
  bool is_bool() const { return v_.index() == 1; }
  bool is_number() const { return v_.index() == 2; }
  bool is_string() const { return v_.index() == 3; }
  bool is_array() const { return v_.index() == 4; }
  bool is_object() const { return v_.index() == 5; }
  std::string_view kind_name() const;  // "null", "boolean", "number", "string", "array", "object"

  // Each requires its own kind: the caller has asked is_...() before.
  bool boolean() const { return std::get<bool>(v_); }
  const std::string& string() const { return std::get<std::string>(v_); }
  std::string& string() { return std::get<std::string>(v_); }
  const std::string& number_text() const { return std::get<Number>(v_).text; }
  const Array& array() const { return std::get<Array>(v_); }
  Array& array() { return std::get<Array>(v_); }
  const Object& object() const { return std::get<Object>(v_); }
  Object& object() { return std::get<Object>(v_); }

  // The number when it is an integer that fits (1.0 and 1e3 are integers); otherwise nothing.
  std::optional<int64_t> as_int64() const;
  std::optional<uint64_t> as_uint64() const;
  double as_double() const;  // requires a number; one too large for a double gives infinity

  // The member of an object; null when there is none or this is not an object.
  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  // The member when it is a string, otherwise `default_value`.
  std::string_view string_or(std::string_view name, std::string_view default_value = {}) const;

  bool operator==(const Value& other) const { return v_ == other.v_; }

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> v_;
};

struct Member {
  std::string name;
  Value value;
  bool operator==(const Member&) const = default;
};

// Makes an object: object({{"a", 1}, {"b", "x"}}). The names must differ.
Value object(std::initializer_list<std::pair<std::string_view, Value>> members);

// The members of all objects in the value.
size_t count_members(const Value& value);

// Compares the exact values of two number texts in any notation: 1.0, 1 and 10e-1 are equal, 2^53
// and 2^53+1 are not. Returns <0, 0 or >0.
int compare_numbers(std::string_view a, std::string_view b);
inline bool same_number(const Value& a, const Value& b) {
  return compare_numbers(a.number_text(), b.number_text()) == 0;
}
// As operator==, but numbers are compared by value at every level.
bool equivalent(const Value& a, const Value& b);

}  // namespace pawl::json
