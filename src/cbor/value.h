#pragma once
// A CBOR value. Maps keep the order of their entries; canonical() sorts them. Tags are dropped,
// because they do not change the meaning of values in worlds. Integers reach from -2^64 to 2^64-1.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"

namespace pawl::cbor {

class Value;
using Array = std::vector<Value>;
using Entry = std::pair<Value, Value>;
using Map = std::vector<Entry>;

// An integer in CBOR's form: `negative` means -1 - magnitude.
struct Int {
  bool negative = false;
  uint64_t magnitude = 0;
  bool operator==(const Int&) const = default;
};
// A byte string. It has a type of its own because text is a std::string too.
struct Octets {
  Bytes bytes;
  bool operator==(const Octets&) const = default;
};

enum class Kind : uint8_t { null, boolean, integer, real, bytes, text, array, map };

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool v) : v_(v) {}
  Value(int v) : Value(static_cast<int64_t>(v)) {}
  Value(int64_t v)
      : v_(v < 0 ? Int{true, ~static_cast<uint64_t>(v)} : Int{false, static_cast<uint64_t>(v)}) {}
  Value(uint64_t v) : v_(Int{false, v}) {}
  Value(Int v) : v_(v) {}
  Value(double v) : v_(v) {}
  Value(Octets v) : v_(std::move(v)) {}
  Value(std::string text) : v_(std::move(text)) {}
  Value(std::string_view text) : v_(std::string(text)) {}
  Value(const char* text) : v_(std::string(text)) {}
  Value(Array v) : v_(std::move(v)) {}
  Value(Map v) : v_(std::move(v)) {}

  Kind kind() const { return static_cast<Kind>(v_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_int() const { return kind() == Kind::integer; }
  bool is_bytes() const { return kind() == Kind::bytes; }
  bool is_text() const { return kind() == Kind::text; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_map() const { return kind() == Kind::map; }

  // Each requires its own kind: the caller has asked kind() or is_...() before.
  bool boolean() const { return std::get<bool>(v_); }
  Int integer() const { return std::get<Int>(v_); }
  double real() const { return std::get<double>(v_); }
  const Bytes& bytes() const { return std::get<Octets>(v_).bytes; }
  const std::string& text() const { return std::get<std::string>(v_); }
  const Array& array() const { return std::get<Array>(v_); }
  Array& array() { return std::get<Array>(v_); }
  const Map& map() const { return std::get<Map>(v_); }
  Map& map() { return std::get<Map>(v_); }

  std::optional<int64_t> as_int64() const;
  std::optional<uint64_t> as_uint64() const;
  // The last entry of a map with that text key, as a decoder that overwrites would keep it; null
  // when there is none or this is not a map.
  const Value* find(std::string_view name) const;
  std::string_view text_or(std::string_view name, std::string_view default_value = {}) const;
  bool operator==(const Value& other) const { return v_ == other.v_; }

 private:
  std::variant<std::monostate, bool, Int, double, Octets, std::string, Array, Map> v_;
};

inline Value octets(BytesView bytes) { return Value(Octets{Bytes(bytes)}); }

}  // namespace pawl::cbor
