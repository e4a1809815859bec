// Checks a value against a compiled schema.

#include <cmath>

#include "json/canonical.h"
#include "json/text.h"
#include "schema/schema.h"
#include "schema/tree.h"

namespace pawl::schema {

namespace {

using json::Value;

// What the subschemas of one place have looked at, for unevaluatedProperties and unevaluatedItems.
struct Seen {
  std::vector<std::string_view> names{};
  std::vector<size_t> items{};
  size_t first_items = 0;  // this many items from the front
  void add(const Seen& other) {
    names.insert(names.end(), other.names.begin(), other.names.end());
    items.insert(items.end(), other.items.begin(), other.items.end());
    first_items = std::max(first_items, other.first_items);
  }
};

uint32_t type_bit(const Value& v) {
  for (uint32_t i = 0; i < std::size(kTypeNames); ++i)
    if (v.kind_name() == kTypeNames[i]) return 1u << i;
  return 0;
}

// Digits and exponent of a number; nothing when it has more than 18 digits.
struct Decimal {
  int64_t digits;
  int64_t exponent;
};
std::optional<Decimal> decimal_of(std::string_view text) {
  std::string plain = json::plain_number(text);
  size_t e = plain.find('e');
  if (e == std::string::npos) return Decimal{0, 0};
  if (e > 18) return std::nullopt;
  return Decimal{std::strtoll(plain.substr(0, e).c_str(), nullptr, 10),
                 std::strtoll(plain.c_str() + e + 1, nullptr, 10)};
}

bool is_integer(const Value& v) {
  std::string plain = json::plain_number(v.number_text());
  size_t e = plain.find('e');
  return e == std::string::npos || plain[e + 1] != '-';
}

// Exact for numbers of up to 18 digits whose exponents are close; beyond that, by doubles.
bool is_multiple(const Value& v, const Value& of) {
  auto a = decimal_of(v.number_text()), b = decimal_of(of.number_text());
  if (a && a->digits == 0) return true;
  if (a && b && std::abs(a->exponent - b->exponent) <= 18) {
    __int128 x = a->digits, y = b->digits;
    for (int64_t i = b->exponent; i < a->exponent; ++i)
      x *= 10;
    for (int64_t i = a->exponent; i < b->exponent; ++i)
      y *= 10;
    return x % y == 0;
  }
  return std::fmod(v.as_double(), of.as_double()) == 0;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool matches(const Pattern& pattern, std::string_view text) {
  return re2::RE2::PartialMatch({text.data(), text.size()}, *pattern);
}

class Checker {
 public:
  Checker(const Tree& tree, size_t& work, size_t max_work)
      : tree_(tree), work_(work), max_work_(max_work) {}
  bool check(uint32_t index, const Value& v, Seen* seen);
  bool exhausted() const { return work_ > max_work_; }
  std::string message() const {
    std::string out;
    for (const std::string& p : problems_)
      out += (out.empty() ? "" : "; ") + p;
    return out;
  }

 private:
  bool refuse(const std::string& what) {
    if (!quiet_ && problems_.size() < kMaxMismatches)
      problems_.push_back("at '" + path_ + "': " + what);
    return false;
  }
  // Whether the value fits, without a message.
  bool fits(uint32_t index, const Value& v, Seen* seen) {
    ++quiet_;
    bool good = check(index, v, seen);
    --quiet_;
    return good;
  }
  // Checks a part of the value.
  bool check_part(uint32_t index, const Value& v, std::string_view name);
  bool check_kind(const Node& n, const Value& v);
  bool check_number(const Node& n, const Value& v);
  bool check_text(const Node& n, const Value& v);
  bool check_array(const Node& n, const Value& v, Seen& seen);
  bool check_unique(const Value& v);
  bool check_contains(const Node& n, const Value& v, Seen& seen);
  bool check_object(const Node& n, const Value& v, Seen& seen);
  bool check_members(const Node& n, const Value& v, Seen& seen);
  bool check_combined(const Node& n, const Value& v, Seen& seen);
  bool check_condition(const Node& n, const Value& v, Seen& seen);
  bool check_unevaluated(const Node& n, const Value& v, Seen& seen);
  bool check_limit(const std::optional<uint64_t>& min, const std::optional<uint64_t>& max,
                   size_t count, std::string_view what);

  const Tree& tree_;
  size_t& work_;
  const size_t max_work_;
  size_t depth_ = 0, quiet_ = 0;
  std::string path_{};
  std::vector<std::string> problems_{};
};

bool Checker::check(uint32_t index, const Value& v, Seen* seen) {
  const Node& n = tree_.nodes[index];
  ++work_;
  if (exhausted()) return false;
  if (n.always) return *n.always || refuse("nothing is allowed here");
  if (depth_ >= kMaxDepth) return refuse("the schema refers to itself without end");
  ++depth_;
  Seen own;
  bool good = check_kind(n, v);
  if (v.is_number()) good &= check_number(n, v);
  if (v.is_string()) good &= check_text(n, v);
  if (v.is_array()) good &= check_array(n, v, own);
  if (v.is_object()) good &= check_object(n, v, own);
  good &= check_combined(n, v, own);
  good &= check_condition(n, v, own);
  good &= check_unevaluated(n, v, own);
  --depth_;
  if (good && seen) seen->add(own);
  return good && !exhausted();
}

bool Checker::check_part(uint32_t index, const Value& v, std::string_view name) {
  size_t length = path_.size();
  path_ += '/';
  for (char c : name)
    c == '~' ? path_ += "~0" : c == '/' ? path_ += "~1" : path_ += c;
  bool good = check(index, v, nullptr);
  path_.resize(length);
  return good;
}

bool Checker::check_kind(const Node& n, const Value& v) {
  if (n.types) {
    uint32_t bit = type_bit(v);
    bool fits = n.types & bit;
    if (!fits && v.is_number() && n.types & kInteger) fits = is_integer(v);
    if (!fits) {
      std::string want;
      for (size_t i = 0; i < std::size(kTypeNames); ++i)
        if (n.types & 1u << i) want.append(want.empty() ? "" : " or ").append(kTypeNames[i]);
      return refuse("got " + std::string(v.kind_name()) + ", want " + want);
    }
  }
  if (!n.allowed) return true;
  std::string text;
  json::append_canonical(text, v);
  work_ += text.size() / 8;
  return std::binary_search(n.allowed->begin(), n.allowed->end(), text) ||
         refuse("must be " + std::string(n.allowed_text.starts_with('[') ? "one of " : "") +
                n.allowed_text);
}

bool Checker::check_number(const Node& n, const Value& v) {
  auto compared = [&](const std::optional<Value>& bound) {
    return bound ? json::compare_numbers(v.number_text(), bound->number_text()) : 0;
  };
  bool good = true;
  auto require = [&](bool holds, std::string_view what, const std::optional<Value>& bound) {
    if (bound && !holds)
      good = refuse("must be " + std::string(what) + " " + bound->number_text() + ", got " +
                    v.number_text().substr(0, 40));
  };
  require(compared(n.minimum) >= 0, "at least", n.minimum);
  require(compared(n.maximum) <= 0, "at most", n.maximum);
  require(compared(n.above) > 0, "above", n.above);
  require(compared(n.below) < 0, "below", n.below);
  if (n.multiple_of) require(is_multiple(v, *n.multiple_of), "a multiple of", n.multiple_of);
  return good;
}

bool Checker::check_limit(const std::optional<uint64_t>& min, const std::optional<uint64_t>& max,
                          size_t count, std::string_view what) {
  bool good = true;
  if (min && count < *min)
    good = refuse("must have at least " + std::to_string(*min) + " " + std::string(what) +
                  ", has " + std::to_string(count));
  if (max && count > *max)
    good = refuse("must have at most " + std::to_string(*max) + " " + std::string(what) + ", has " +
                  std::to_string(count));
  return good;
}

bool Checker::check_text(const Node& n, const Value& v) {
  work_ += v.string().size() / 8;
  bool good = true;
  if (n.min_length || n.max_length)
    good = check_limit(n.min_length, n.max_length, characters(v.string()), "characters");
  if (n.pattern && !matches(n.pattern, v.string()))
    good = refuse("does not match the pattern \"" + n.pattern->pattern() + "\"");
  return good;
}

bool Checker::check_array(const Node& n, const Value& v, Seen& seen) {
  const json::Array& items = v.array();
  bool good = check_limit(n.min_items, n.max_items, items.size(), "items");
  if (n.unique_items) good &= check_unique(v);
  size_t first = std::min(n.prefix_items.size(), items.size());
  for (size_t i = 0; i < first; ++i)
    good &= check_part(n.prefix_items[i], items[i], std::to_string(i));
  seen.first_items = std::max(seen.first_items, first);
  if (n.items != kNoNode) {
    for (size_t i = first; i < items.size() && !exhausted(); ++i)
      good &= check_part(n.items, items[i], std::to_string(i));
    seen.first_items = items.size();
  }
  if (n.contains != kNoNode) good &= check_contains(n, v, seen);
  return good;
}

bool Checker::check_unique(const Value& v) {
  std::vector<std::string> texts;
  for (const Value& item : v.array()) {
    json::append_canonical(texts.emplace_back(), item);
    work_ += 1 + texts.back().size() / 8;
  }
  std::sort(texts.begin(), texts.end());
  return std::adjacent_find(texts.begin(), texts.end()) == texts.end() ||
         refuse("its items must differ from one another");
}

bool Checker::check_contains(const Node& n, const Value& v, Seen& seen) {
  size_t count = 0;
  for (size_t i = 0; i < v.array().size() && !exhausted(); ++i) {
    if (!fits(n.contains, v.array()[i], nullptr)) continue;
    ++count;
    seen.items.push_back(i);
  }
  return check_limit(n.min_contains.value_or(1), n.max_contains, count,
                     "items that match `contains`");
}

bool Checker::check_object(const Node& n, const Value& v, Seen& seen) {
  const json::Object& object = v.object();
  bool good = check_limit(n.min_properties, n.max_properties, object.size(), "properties");
  auto require = [&](const std::string& name, const std::string& why) {
    if (!object.has(name)) good = refuse("missing property \"" + name + "\"" + why);
  };
  for (const std::string& name : n.required)
    require(name, "");
  for (const auto& [name, others] : n.dependent_required)
    for (const std::string& other : others)
      if (object.has(name)) require(other, ", which \"" + name + "\" requires");
  work_ += (n.required.size() + n.dependent_required.size()) * (1 + object.size() / 8);
  good &= check_members(n, v, seen);
  for (const auto& [name, index] : n.dependent)
    if (object.has(name)) good &= check(index, v, &seen);
  return good;
}

bool Checker::check_members(const Node& n, const Value& v, Seen& seen) {
  if (n.properties.empty() && n.pattern_properties.empty() && n.additional == kNoNode &&
      n.names == kNoNode)
    return true;
  bool good = true;
  for (const json::Member& m : v.object()) {
    work_ += 1 + n.pattern_properties.size() + m.name.size() / 8;
    if (exhausted()) return false;
    bool known = false;
    if (auto found = n.properties.find(m.name); found != n.properties.end()) {
      known = true;
      good &= check_part(found->second, m.value, m.name);
    }
    for (const auto& [pattern, index] : n.pattern_properties) {
      if (!matches(pattern, m.name)) continue;
      known = true;
      good &= check_part(index, m.value, m.name);
    }
    if (!known && n.additional != kNoNode) {
      known = true;
      if (tree_.nodes[n.additional].always == false)
        good = refuse("property \"" + m.name + "\" is not allowed");
      else
        good &= check_part(n.additional, m.value, m.name);
    }
    if (known) seen.names.push_back(m.name);
    if (n.names != kNoNode && !fits(n.names, Value(m.name), nullptr))
      good = refuse("property name \"" + m.name + "\" does not match propertyNames");
  }
  return good;
}

bool Checker::check_combined(const Node& n, const Value& v, Seen& seen) {
  bool good = true;
  for (uint32_t index : n.refs)
    good &= check(index, v, &seen);
  for (uint32_t index : n.all_of)
    good &= check(index, v, &seen);
  // All are tried, because each one that fits may look at other members.
  auto count = [&](const std::vector<uint32_t>& list) {
    size_t fitting = 0;
    for (uint32_t index : list)
      fitting += fits(index, v, &seen);
    return fitting;
  };
  if (!n.any_of.empty() && count(n.any_of) == 0) good = refuse("matches no schema of anyOf");
  if (!n.one_of.empty()) {
    size_t fitting = count(n.one_of);
    if (fitting != 1)
      good = refuse("must match one schema of oneOf, matches " + std::to_string(fitting));
  }
  if (n.negated != kNoNode && fits(n.negated, v, nullptr)) good = refuse("must not match `not`");
  return good;
}

bool Checker::check_condition(const Node& n, const Value& v, Seen& seen) {
  if (n.condition == kNoNode) return true;
  uint32_t follows = fits(n.condition, v, &seen) ? n.then : n.otherwise;
  return follows == kNoNode || check(follows, v, &seen);
}

bool Checker::check_unevaluated(const Node& n, const Value& v, Seen& seen) {
  bool good = true;
  if (n.unevaluated_properties != kNoNode && v.is_object()) {
    std::sort(seen.names.begin(), seen.names.end());
    for (const json::Member& m : v.object()) {
      if (std::binary_search(seen.names.begin(), seen.names.end(), std::string_view(m.name)))
        continue;
      good &= check_part(n.unevaluated_properties, m.value, m.name);
    }
    seen.names.clear();
    for (const json::Member& m : v.object())
      seen.names.push_back(m.name);
  }
  if (n.unevaluated_items != kNoNode && v.is_array()) {
    std::sort(seen.items.begin(), seen.items.end());
    for (size_t i = seen.first_items; i < v.array().size() && !exhausted(); ++i)
      if (!std::binary_search(seen.items.begin(), seen.items.end(), i))
        good &= check_part(n.unevaluated_items, v.array()[i], std::to_string(i));
    seen.first_items = v.array().size();
  }
  return good;
}

}  // namespace

Result<void> Schema::check(const Value& value, size_t& work, size_t max_work) const {
  Checker checker(*tree_, work, max_work);
  bool good = checker.check(0, value, nullptr);
  if (checker.exhausted())
    return fail(Code::invalid, "SCHEMA_WORK",
                "the check against the schema takes more than " + std::to_string(max_work) +
                    " steps: make the schema or the value simpler");
  if (!good) return fail(Code::invalid, "SCHEMA_MISMATCH", checker.message());
  return {};
}

}  // namespace pawl::schema
