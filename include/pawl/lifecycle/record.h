#pragma once
// A record is the stored form of an instance: name, form and value of each field, one after the
// other. A record describes itself: a struct that has gained or lost a field still reads old
// records, and writes keep the fields that it does not know.

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pawl::lifecycle {

// JSON text stored as it is, for fields whose structure only the application knows.
struct json {
  std::string text = "null";
  bool operator==(const json&) const = default;
};

// The kind of a field, as definitions name it.
enum class kind : std::uint8_t {
  string,
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  real,
  string_list,
  json_value
};

// The rows are in the order of the enum. `min` and `max` are set for integers only.
struct kind_row {
  kind k;
  std::string_view name;
  bool is_signed = false, is_unsigned = false;
  std::int64_t min = 0;
  std::uint64_t max = 0;
};
inline constexpr kind_row kKinds[] = {
    {kind::string, "string"},
    {kind::boolean, "bool"},
    {kind::int8, "int8", true, false, INT8_MIN, INT8_MAX},
    {kind::int16, "int16", true, false, INT16_MIN, INT16_MAX},
    {kind::int32, "int32", true, false, INT32_MIN, INT32_MAX},
    {kind::int64, "int64", true, false, INT64_MIN, INT64_MAX},
    {kind::uint8, "uint8", false, true, 0, UINT8_MAX},
    {kind::uint16, "uint16", false, true, 0, UINT16_MAX},
    {kind::uint32, "uint32", false, true, 0, UINT32_MAX},
    {kind::uint64, "uint64", false, true, 0, UINT64_MAX},
    {kind::real, "double"},
    {kind::string_list, "string_list"},
    {kind::json_value, "json"},
};
constexpr const kind_row& row_of(kind k) { return kKinds[static_cast<std::size_t>(k)]; }

// The value of a field with its kind: int 3 and uint32 3 are different values.
struct value {
  kind k = kind::string;
  std::variant<std::string, bool, std::int64_t, std::uint64_t, double, std::vector<std::string>,
               json>
      v{};

  value() = default;
  value(const char* text) : v(std::string(text)) {}
  value(std::string text) : v(std::move(text)) {}
  value(std::string_view text) : v(std::string(text)) {}
  value(bool b) : k(kind::boolean), v(b) {}
  value(std::int8_t n) : k(kind::int8), v(std::int64_t{n}) {}
  value(std::int16_t n) : k(kind::int16), v(std::int64_t{n}) {}
  value(std::int32_t n) : k(kind::int32), v(std::int64_t{n}) {}
  value(std::int64_t n) : k(kind::int64), v(n) {}
  value(std::uint8_t n) : k(kind::uint8), v(std::uint64_t{n}) {}
  value(std::uint16_t n) : k(kind::uint16), v(std::uint64_t{n}) {}
  value(std::uint32_t n) : k(kind::uint32), v(std::uint64_t{n}) {}
  value(std::uint64_t n) : k(kind::uint64), v(n) {}
  value(long long n) : k(kind::int64), v(static_cast<std::int64_t>(n)) {}
  value(unsigned long long n) : k(kind::uint64), v(static_cast<std::uint64_t>(n)) {}
  value(double n) : k(kind::real), v(n) {}
  value(float n) : k(kind::real), v(double{n}) {}
  value(std::vector<std::string> list) : k(kind::string_list), v(std::move(list)) {}
  value(json text) : k(kind::json_value), v(std::move(text)) {}
  bool operator==(const value&) const = default;
};

namespace record {

// The form of the stored bytes. Several kinds share one form.
enum form : std::uint8_t { f_string = 1, f_bool, f_signed, f_unsigned, f_real, f_list, f_json };

constexpr form form_of(kind k) {
  const kind_row& row = row_of(k);
  if (row.is_signed) return f_signed;
  if (row.is_unsigned) return f_unsigned;
  switch (k) {
    case kind::boolean: return f_bool;
    case kind::real: return f_real;
    case kind::string_list: return f_list;
    case kind::json_value: return f_json;
    default: return f_string;
  }
}

// The same bytes as base/bytes.h writes, which a public header cannot include.
// docs/formats/lifecycle.md describes them.
inline void put_uint(std::string& out, std::uint64_t v) {
  while (v >= 0x80) {
    out.push_back(static_cast<char>(v | 0x80));
    v >>= 7;
  }
  out.push_back(static_cast<char>(v));
}
inline void put_text(std::string& out, std::string_view v) {
  put_uint(out, v.size());
  out.append(v);
}
inline void put_name(std::string& out, std::string_view name, form f) {
  put_text(out, name);
  out.push_back(static_cast<char>(f));
}

// put() appends one entry: the name with its length, one byte for the form, then the value. Signed
// numbers are in zigzag form, doubles are 8 bytes, little-endian.
inline void put(std::string& out, std::string_view name, std::string_view v) {
  put_name(out, name, f_string);
  put_text(out, v);
}
inline void put(std::string& out, std::string_view name, bool v) {
  put_name(out, name, f_bool);
  out.push_back(v ? 1 : 0);
}
inline void put(std::string& out, std::string_view name, std::int64_t v) {
  put_name(out, name, f_signed);
  put_uint(out, (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
}
inline void put(std::string& out, std::string_view name, std::uint64_t v) {
  put_name(out, name, f_unsigned);
  put_uint(out, v);
}
inline void put(std::string& out, std::string_view name, double v) {
  put_name(out, name, f_real);
  std::uint64_t bits = std::bit_cast<std::uint64_t>(v);
  for (int i = 0; i < 8; ++i, bits >>= 8)
    out.push_back(static_cast<char>(bits & 0xff));
}
inline void put(std::string& out, std::string_view name, const std::vector<std::string>& v) {
  put_name(out, name, f_list);
  put_uint(out, v.size());
  for (const std::string& s : v)
    put_text(out, s);
}
inline void put(std::string& out, std::string_view name, const json& v) {
  put_name(out, name, f_json);
  put_text(out, v.text);
}
inline void put(std::string& out, std::string_view name, const value& v) {
  std::visit(
      [&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
          put(out, name, std::string_view(held));
        else
          put(out, name, held);
      },
      v.v);
}

// Iterates over the entries. When bad() is true after the walk, the bytes are not a record.
class walk {
 public:
  explicit walk(std::string_view bytes) : in_(bytes) {}

  // Moves to the next entry. Returns false at the end, and when the bytes are not a record.
  bool next() {
    if (in_.empty() || bad_) return false;
    const char* begin = in_.data();
    name = text();
    if (in_.empty()) {
      bad_ = true;
      return false;
    }
    f = static_cast<form>(in_[0]);
    in_.remove_prefix(1);
    const char* start = in_.data();
    skip();
    if (bad_) return false;
    payload = {start, static_cast<std::size_t>(in_.data() - start)};
    entry = {begin, static_cast<std::size_t>(in_.data() - begin)};
    return true;
  }
  bool bad() const { return bad_; }

  std::string_view name;  // of the current entry
  form f = f_string;
  std::string_view payload;  // the bytes of its value
  std::string_view entry;    // the whole entry, to copy

  // The value of the current entry. Each requires the fitting form `f`; next() has checked the
  // bytes.
  std::string_view as_text() const {
    walk inner(payload);
    return inner.text();
  }
  bool as_bool() const { return payload[0] != 0; }
  std::uint64_t as_unsigned() const {
    walk inner(payload);
    return inner.uint();
  }
  std::int64_t as_signed() const {
    std::uint64_t v = as_unsigned();
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
  }
  double as_real() const {
    std::uint64_t bits = 0;
    for (int i = 7; i >= 0; --i)
      bits = bits << 8 | static_cast<std::uint8_t>(payload[static_cast<std::size_t>(i)]);
    return std::bit_cast<double>(bits);
  }
  std::vector<std::string> as_list() const {
    walk inner(payload);
    std::uint64_t n = inner.uint();
    std::vector<std::string> out;
    for (std::uint64_t i = 0; i < n && !inner.bad_; ++i)
      out.emplace_back(inner.text());
    return out;
  }

 private:
  std::uint64_t uint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) {
        bad_ = true;
        return 0;
      }
      auto b = static_cast<std::uint8_t>(in_[0]);
      in_.remove_prefix(1);
      v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (!(b & 0x80)) return v;
    }
    bad_ = true;
    return 0;
  }
  std::string_view text() {
    std::uint64_t n = uint();
    if (n > in_.size()) {
      bad_ = true;
      return {};
    }
    std::string_view v = in_.substr(0, n);
    in_.remove_prefix(n);
    return v;
  }
  // Moves past the value of the current form. An unknown form makes the record bad, since its
  // length is unknown.
  void skip() {
    switch (f) {
      case f_string:
      case f_json: text(); return;
      case f_signed:
      case f_unsigned: uint(); return;
      case f_bool: return fixed(1);
      case f_real: return fixed(8);
      case f_list: {
        std::uint64_t n = uint();
        for (std::uint64_t i = 0; i < n && !bad_; ++i)
          text();
        return;
      }
    }
    bad_ = true;
  }
  void fixed(std::size_t n) {
    if (in_.size() < n)
      bad_ = true;
    else
      in_.remove_prefix(n);
  }
  std::string_view in_;
  bool bad_ = false;
};

// Returns whether the entry holds exactly this value.
inline bool holds(const walk& at, const value& v) {
  if (at.f != form_of(v.k)) return false;
  switch (at.f) {
    case f_string: return at.as_text() == std::get<std::string>(v.v);
    case f_bool: return at.as_bool() == std::get<bool>(v.v);
    case f_signed: return at.as_signed() == std::get<std::int64_t>(v.v);
    case f_unsigned: return at.as_unsigned() == std::get<std::uint64_t>(v.v);
    case f_real: return at.as_real() == std::get<double>(v.v);
    case f_list: return at.as_list() == std::get<std::vector<std::string>>(v.v);
    case f_json: return at.as_text() == std::get<json>(v.v).text;
  }
  return false;
}

}  // namespace record
}  // namespace pawl::lifecycle
