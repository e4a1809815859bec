#include "json/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "json/name_table.h"

namespace pawl::json {

const Value* Object::find(std::string_view name) const {
  for (const Member& m : members_)
    if (m.name == name) return &m.value;
  return nullptr;
}
Value* Object::find(std::string_view name) {
  return const_cast<Value*>(static_cast<const Object*>(this)->find(name));
}
Value& Object::set(std::string name, Value value) {
  Value* old = find(name);
  if (!old) return add(std::move(name), std::move(value));
  *old = std::move(value);
  return *old;
}
Value& Object::add(std::string name, Value value) {
  return members_.emplace_back(Member{std::move(name), std::move(value)}).value;
}
bool Object::erase(std::string_view name) {
  auto it = std::find_if(members_.begin(), members_.end(),
                         [&](const Member& m) { return m.name == name; });
  if (it == members_.end()) return false;
  members_.erase(it);
  return true;
}
// Each name occurs once, so equal sizes and a match for every member of one side suffice.
bool Object::operator==(const Object& other) const {
  if (size() != other.size()) return false;
  // Objects that are equal mostly have their members in the same order. The rest is sorted, because
  // a search for each member would take quadratic time.
  size_t same = 0;
  while (same < size() && members_[same].name == other.members_[same].name) {
    if (!(members_[same].value == other.members_[same].value)) return false;
    ++same;
  }
  auto sorted = [same](const std::vector<Member>& members) {
    std::vector<const Member*> out;
    for (size_t i = same; i < members.size(); ++i)
      out.push_back(&members[i]);
    std::stable_sort(out.begin(), out.end(),
                     [](const Member* a, const Member* b) { return a->name < b->name; });
    return out;
  };
  const auto rest = sorted(members_), other_rest = sorted(other.members_);
  return std::equal(rest.begin(), rest.end(), other_rest.begin(),
                    [](const Member* a, const Member* b) { return *a == *b; });
}

// The shortest text that reads back as the same number.
template <class T>
static std::string digits(T v) {
  char buf[40];
  auto end = std::to_chars(buf, buf + sizeof buf, v).ptr;
  return std::string(buf, end);
}

Value::Value(int64_t v) : v_(Number{digits(v)}) {}
Value::Value(uint64_t v) : v_(Number{digits(v)}) {}
Value::Value(double v) {
  if (std::isfinite(v)) v_ = Number{digits(v)};
}

std::string_view Value::kind_name() const {
  static constexpr std::string_view names[] = {"null",   "boolean", "number",
                                               "string", "array",   "object"};
  return names[v_.index()];
}

const Value* Value::find(std::string_view name) const {
  return is_object() ? object().find(name) : nullptr;
}
Value* Value::find(std::string_view name) { return is_object() ? object().find(name) : nullptr; }

std::string_view Value::string_or(std::string_view name, std::string_view default_value) const {
  const Value* v = find(name);
  return v && v->is_string() ? std::string_view(v->string()) : default_value;
}

double Value::as_double() const {
  const std::string& t = number_text();
  double v = 0;
  auto [end, err] = std::from_chars(t.data(), t.data() + t.size(), v);
  if (err != std::errc::result_out_of_range) return v;
  // from_chars does not say whether the number is too small or too large; strtod gives 0 or
  // infinity.
  return std::strtod(t.c_str(), nullptr);
}

namespace {

// A decimal number: value = 0.digits * 10^exponent. The digits neither begin nor end with a zero;
// the number zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
};

// The value of "e-12"; an exponent too large to matter is cut to about 10^12.
int64_t read_exponent(std::string_view t) {
  bool minus = false;
  int64_t e = 0;
  for (char c : t.substr(1)) {
    if (c == '-')
      minus = true;
    else if (c != '+' && e < 1'000'000'000'000)
      e = e * 10 + (c - '0');
  }
  return minus ? -e : e;
}

// Moves the point to the front, then drops zeros at both ends. `t` is a number in JSON's grammar.
Decimal read_decimal(std::string_view t) {
  Decimal d;
  if (!t.empty() && t[0] == '-') {
    d.negative = true;
    t.remove_prefix(1);
  }
  int64_t point = 0;
  bool seen_point = false;
  size_t i = 0;
  for (; i < t.size() && t[i] != 'e' && t[i] != 'E'; ++i) {
    if (t[i] == '.') {
      seen_point = true;
    } else {
      d.digits.push_back(t[i]);
      if (!seen_point) ++point;
    }
  }
  if (i < t.size()) point += read_exponent(t.substr(i));
  size_t lead = 0;
  while (lead < d.digits.size() && d.digits[lead] == '0')
    ++lead;
  d.digits.erase(0, lead);
  point -= static_cast<int64_t>(lead);
  while (!d.digits.empty() && d.digits.back() == '0')
    d.digits.pop_back();
  if (d.digits.empty()) return {};
  d.exponent = point;
  return d;
}
}  // namespace

// The absolute value, when it is an integer that fits.
static std::optional<uint64_t> magnitude(const Decimal& d) {
  if (d.digits.empty()) return 0;
  // Fewer places before the point than digits: there is a fraction. More than 20: above 2^64, which
  // has 20 digits.
  if (d.exponent < static_cast<int64_t>(d.digits.size()) || d.exponent > 20) return std::nullopt;
  uint64_t v = 0;
  for (int64_t i = 0; i < d.exponent; ++i) {
    uint64_t digit =
        i < static_cast<int64_t>(d.digits.size()) ? static_cast<uint64_t>(d.digits[i] - '0') : 0;
    if (__builtin_mul_overflow(v, uint64_t{10}, &v) || __builtin_add_overflow(v, digit, &v))
      return std::nullopt;
  }
  return v;
}

std::optional<int64_t> Value::as_int64() const {
  if (!is_number()) return std::nullopt;
  const std::string& t = number_text();
  int64_t v = 0;
  // The common case: plain digits. Fractions and exponents (1.0, 1e3) take the way through Decimal.
  auto [end, err] = std::from_chars(t.data(), t.data() + t.size(), v);
  if (err == std::errc() && end == t.data() + t.size()) return v;
  Decimal d = read_decimal(t);
  auto m = magnitude(d);
  if (!m) return std::nullopt;
  if (d.negative) {
    if (*m > 1ull << 63) return std::nullopt;
    return static_cast<int64_t>(0 - *m);
  }
  if (*m > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(*m);
}

std::optional<uint64_t> Value::as_uint64() const {
  if (!is_number()) return std::nullopt;
  Decimal d = read_decimal(number_text());
  if (d.negative) return std::nullopt;
  return magnitude(d);
}

int compare_numbers(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  Decimal x = read_decimal(a);
  Decimal y = read_decimal(b);
  if (x.digits.empty() || y.digits.empty()) {
    if (x.digits.empty() && y.digits.empty()) return 0;
    if (x.digits.empty()) return y.negative ? 1 : -1;
    return x.negative ? -1 : 1;
  }
  if (x.negative != y.negative) return x.negative ? -1 : 1;
  // Digits are compared as text: both begin right after the point, and a missing digit counts as
  // smaller than any. The exponent decides before the digits.
  int order = x.digits.compare(y.digits);
  if (x.exponent != y.exponent) order = x.exponent < y.exponent ? -1 : 1;
  return x.negative ? -order : order;
}

// Kinds without numbers inside are left to operator==.
bool equivalent(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return same_number(a, b);
  if (a.is_array() && b.is_array()) {
    if (a.array().size() != b.array().size()) return false;
    for (size_t i = 0; i < a.array().size(); ++i)
      if (!equivalent(a.array()[i], b.array()[i])) return false;
    return true;
  }
  if (a.is_object() && b.is_object()) {
    if (a.object().size() != b.object().size()) return false;
    size_t place = 0;
    NameTable names;
    for (const Member& m : a.object()) {
      // Mostly both have the same order, which makes the search short.
      const Member& beside = b.object().begin()[static_cast<ptrdiff_t>(place++)];
      const Value* match = &beside.value;
      if (beside.name != m.name) {
        const uint32_t found = names.find(b.object(), m.name);
        if (found == NameTable::kNone) return false;
        match = &b.object().begin()[static_cast<ptrdiff_t>(found)].value;
      }
      if (!equivalent(m.value, *match)) return false;
    }
    return true;
  }
  return a == b;
}

size_t count_members(const Value& value) {
  size_t count = 0;
  if (value.is_array())
    for (const Value& v : value.array())
      count += count_members(v);
  if (value.is_object())
    for (const Member& m : value.object())
      count += 1 + count_members(m.value);
  return count;
}

Value object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Object out;
  out.reserve(members.size());
  for (const auto& [name, value] : members)
    out.add(std::string(name), value);
  return out;
}

}  // namespace pawl::json
