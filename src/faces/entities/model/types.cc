#include <charconv>

#include "faces/entities/model/schema.h"

// The scalar types and how they widen.

namespace pawl::entities {

namespace {

constexpr std::string_view kNames[kTypes] = {
    "INTEGER", "LONG",        "BIG_INTEGER",     "UNBOUND_INTEGER",
    "DOUBLE",  "BIG_DECIMAL", "UNBOUND_DECIMAL", "STRING",
    "BOOLEAN", "NULL",
};

constexpr uint32_t bit(Type t) { return 1u << static_cast<int>(t); }
constexpr uint32_t kUnbound = bit(Type::unbound_integer) | bit(Type::unbound_decimal);

// To which other types each type widens.
// In the order of Type. LONG does not widen to DOUBLE, which cannot hold every 64-bit integer.
constexpr uint32_t kWidens[kTypes] = {
    bit(Type::long_integer) | bit(Type::double_decimal) | bit(Type::big_integer) |
        bit(Type::big_decimal) | kUnbound,
    bit(Type::big_integer) | bit(Type::big_decimal) | kUnbound,
    kUnbound,
    bit(Type::unbound_decimal),
    bit(Type::unbound_decimal),
    bit(Type::unbound_decimal),
    0,
    0,
    0,
    0,
};

// A decimal number: digits without zeros at either end; the value is digits * 10^-scale.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t scale = 0;
};

Decimal to_decimal(std::string_view t) {
  Decimal d;
  if (!t.empty() && t[0] == '-') {
    d.negative = true;
    t.remove_prefix(1);
  }
  bool fraction = false;
  size_t i = 0;
  for (; i < t.size() && t[i] != 'e' && t[i] != 'E'; ++i) {
    if (t[i] == '.') {
      fraction = true;
      continue;
    }
    d.digits.push_back(t[i]);
    d.scale += fraction;
  }
  if (i < t.size()) {
    ++i;
    bool minus = i < t.size() && t[i] == '-';
    if (i < t.size() && (t[i] == '-' || t[i] == '+')) ++i;
    int64_t e = 0;
    // The limit keeps `e` from overflowing; no document holds a number of that size written out.
    for (; i < t.size() && e < 1'000'000'000; ++i)
      e = e * 10 + (t[i] - '0');
    d.scale -= minus ? -e : e;
  }
  size_t lead = d.digits.find_first_not_of('0');
  // Zero, whatever its sign and exponent: no digits.
  if (lead == std::string::npos) return {};
  d.digits.erase(0, lead);
  while (d.digits.back() == '0') {
    d.digits.pop_back();
    --d.scale;
  }
  return d;
}

// Whether the digits followed by `zeros` zeros fit a signed 128-bit integer.
bool fits_128(const Decimal& d, int64_t zeros) {
  static constexpr std::string_view kMax = "170141183460469231731687303715884105727";
  static constexpr std::string_view kLeast = "170141183460469231731687303715884105728";
  int64_t size = static_cast<int64_t>(d.digits.size()) + zeros;
  if (size != static_cast<int64_t>(kMax.size())) return size < static_cast<int64_t>(kMax.size());
  std::string whole = d.digits + std::string(static_cast<size_t>(zeros), '0');
  return whole <= (d.negative ? kLeast : kMax);
}

Type integer_type(const Decimal& d) {
  int64_t zeros = -d.scale;
  // An int64 has at most 19 digits. The check comes first, because `zeros` may be a billion.
  if (static_cast<int64_t>(d.digits.size()) + zeros <= 19) {
    std::string whole =
        (d.negative ? "-" : "") + d.digits + std::string(static_cast<size_t>(zeros), '0');
    int64_t v = 0;
    if (std::from_chars(whole.data(), whole.data() + whole.size(), v).ec == std::errc()) {
      if (v >= INT32_MIN && v <= INT32_MAX) return Type::integer;
      return Type::long_integer;
    }
  }
  return fits_128(d, zeros) ? Type::big_integer : Type::unbound_integer;
}

}  // namespace

std::string_view name_of(Type type) { return kNames[static_cast<size_t>(type)]; }
bool is_numeric(Type type) { return type <= Type::unbound_decimal; }
bool widens(Type from, Type to) {
  return from == to || (kWidens[static_cast<size_t>(from)] & bit(to));
}

Type type_of_number(std::string_view text) {
  Decimal d = to_decimal(text);
  if (d.digits.empty()) return Type::integer;
  if (d.scale <= 0) return integer_type(d);
  auto precision = static_cast<int64_t>(d.digits.size());
  // These limits are the original's: DOUBLE by precision and scale; BIG_DECIMAL when the value at
  // scale 18 fits a signed 128-bit integer.
  if (precision <= 15 && d.scale <= 292) return Type::double_decimal;
  int64_t whole = precision - d.scale;
  if (d.scale <= 18 && ((precision <= 38 && whole <= 20) ||
                        (precision <= 39 && whole <= 21 && fits_128(d, 18 - d.scale))))
    return Type::big_decimal;
  return Type::unbound_decimal;
}

Type type_of(const json::Value& scalar) {
  if (scalar.is_number()) return type_of_number(scalar.number_text());
  if (scalar.is_string()) return Type::string;
  if (scalar.is_bool()) return Type::boolean;
  return Type::null;
}

std::string plain_number(std::string_view text) {
  Decimal d = to_decimal(text);
  if (d.digits.empty()) return "0";
  // Up to this many zeros are written out. A number may have more zeros than fit into memory.
  constexpr int64_t kZeros = 40;
  std::string out = d.negative ? "-" : "";
  auto whole = static_cast<int64_t>(d.digits.size()) - d.scale;  // digits before the point
  if (d.scale < -kZeros || whole < -kZeros) return out + d.digits + "e" + std::to_string(-d.scale);
  if (d.scale <= 0) return out + d.digits + std::string(static_cast<size_t>(-d.scale), '0');
  if (whole <= 0) return out + "0." + std::string(static_cast<size_t>(-whole), '0') + d.digits;
  return out + d.digits.insert(static_cast<size_t>(whole), 1, '.');
}

bool TypeSet::accepts(Type t) const {
  return (bits_ & (kWidens[static_cast<size_t>(t)] | bit(t))) != 0;
}
// Types before `string` are the numeric ones.
bool TypeSet::any_numeric() const { return (bits_ & (bit(Type::string) - 1)) != 0; }

void TypeSet::settle(bool beside_structure) {
  if (!beside_structure && (bits_ & ~bit(Type::null))) remove(Type::null);
  std::vector<Type> numbers;
  for (Type t : list())
    if (is_numeric(t)) numbers.push_back(t);
  if (numbers.size() < 2) return;
  Type widest = numbers.back();  // the order is integers before decimals, narrow before wide
  for (Type t : numbers)
    if (!widens(t, widest)) widest = Type::unbound_decimal;
  for (Type t : numbers)
    remove(t);
  add(widest);
}

std::vector<Type> TypeSet::list() const {
  std::vector<Type> out;
  for (size_t i = 0; i < kTypes; ++i)
    if (has(static_cast<Type>(i))) out.push_back(static_cast<Type>(i));
  return out;
}

}  // namespace pawl::entities
