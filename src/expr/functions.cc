#include "expr/functions.h"

#include <cmath>

namespace pawl::expr {

namespace {

constexpr size_t kMaxArguments = 256;
constexpr Closure kNoClosure = Closure::none, kClosure = Closure::wanted,
                  kOptionalClosure = Closure::optional, kTestClosure = Closure::test,
                  kOptionalTest = Closure::optional_test;

bool is_not_nil(Type type) { return type != Type::nil; }
bool is_list(Type type) { return type == Type::list; }
bool is_list_or_map(Type type) { return type == Type::list || type == Type::map; }
bool is_list_or_number(Type type) { return type == Type::list || type == Type::number; }

// In alphabetical order, because find_function() uses a binary search.
constexpr Function kFunctions[] = {
    {"abs", 1, 1, kNoClosure, Type::number, fn_abs, "the absolute value"},
    {"all", 1, 1, kTestClosure, Type::boolean, fn_all,
     "whether the closure holds for every element", is_list},
    {"any", 1, 1, kTestClosure, Type::boolean, fn_any, "whether the closure holds for some element",
     is_list},
    {"bitand", 2, 2, kNoClosure, Type::number, fn_bits, "bitwise and of two ints"},
    {"bitnand", 2, 2, kNoClosure, Type::number, fn_bits, "bitwise and-not of two ints"},
    {"bitnot", 1, 1, kNoClosure, Type::number, fn_bitnot, "bitwise complement of an int"},
    {"bitor", 2, 2, kNoClosure, Type::number, fn_bits, "bitwise or of two ints"},
    {"bitshl", 2, 2, kNoClosure, Type::number, fn_bits, "shift left"},
    {"bitshr", 2, 2, kNoClosure, Type::number, fn_bits, "shift right, keeping the sign"},
    {"bitushr", 2, 2, kNoClosure, Type::number, fn_bits, "shift right, filling with zeros"},
    {"bitxor", 2, 2, kNoClosure, Type::number, fn_bits, "bitwise exclusive or of two ints"},
    {"ceil", 1, 1, kNoClosure, Type::number, fn_ceil, "the next whole number up"},
    {"concat", 1, kMaxArguments, kNoClosure, Type::list, fn_concat, "the lists concatenated"},
    {"contains", 2, 2, kNoClosure, Type::boolean, fn_contains,
     "contains(collection, element): the same as element in collection", is_not_nil},
    {"count", 1, 1, kOptionalTest, Type::number, fn_count,
     "how many elements the closure holds for", is_list},
    {"date", 1, 4, kNoClosure, Type::time, fn_date,
     "date([zone,] text [, layout [, zone's name]]): a time from '2024-01-15', '2024-01-15 "
     "10:00:00', RFC 3339, 822, 850 or 1123, or by a layout of Go"},
    {"duration", 1, 1, kNoClosure, Type::duration, fn_duration,
     "a duration from '1h30m', '90s', '250ms'"},
    {"filter", 1, 1, kTestClosure, Type::list, fn_filter, "the elements the closure holds for",
     is_list},
    {"find", 1, 1, kTestClosure, Type::any, fn_find,
     "the first element the closure holds for, or nil", is_list},
    {"findIndex", 1, 1, kTestClosure, Type::any, fn_find_index,
     "the index of the first element the closure holds for, or nil", is_list},
    {"findLast", 1, 1, kTestClosure, Type::any, fn_find_last,
     "the last element the closure holds for, or nil", is_list},
    {"findLastIndex", 1, 1, kTestClosure, Type::any, fn_find_last_index,
     "the index of the last element the closure holds for, or nil", is_list},
    {"first", 1, 1, kNoClosure, Type::any, fn_first, "the first element, or nil", is_list},
    {"flatten", 1, 1, kNoClosure, Type::list, fn_flatten, "nested lists as one list"},
    {"float", 1, 1, kNoClosure, Type::number, fn_float, "a number from a number or a string"},
    {"floor", 1, 1, kNoClosure, Type::number, fn_floor, "the next whole number down"},
    {"fromBase64", 1, 1, kNoClosure, Type::string, fn_from_base64, "the decoded text"},
    {"fromJSON", 1, 1, kNoClosure, Type::any, fn_from_json, "the value of a JSON text"},
    {"fromPairs", 1, 1, kNoClosure, Type::map, fn_from_pairs,
     "a map from [[key, value], ...]; has no JSON form"},
    {"get", 2, 2, kNoClosure, Type::any, fn_get, "a member or element, or nil", is_list_or_map},
    {"groupBy", 1, 1, kClosure, Type::map, fn_group_by,
     "lists of elements by the closure's value; has no JSON form", is_list},
    {"hasPrefix", 2, 2, kNoClosure, Type::boolean, fn_has_prefix,
     "whether the text begins with the other"},
    {"hasSuffix", 2, 2, kNoClosure, Type::boolean, fn_has_suffix,
     "whether the text ends with the other"},
    {"indexOf", 2, 2, kNoClosure, Type::number, fn_index_of,
     "byte index of the first occurrence, or -1"},
    {"int", 1, 1, kNoClosure, Type::number, fn_int,
     "an int: fractions are cut, strings must be whole decimal numbers"},
    {"join", 1, 2, kNoClosure, Type::string, fn_join,
     "the strings joined, separated by the second argument"},
    {"keys", 1, 1, kNoClosure, Type::list, fn_keys, "the keys of a map"},
    {"last", 1, 1, kNoClosure, Type::any, fn_last, "the last element, or nil", is_list},
    {"lastIndexOf", 2, 2, kNoClosure, Type::number, fn_last_index_of,
     "byte index of the last occurrence, or -1"},
    {"len", 1, 1, kNoClosure, Type::number, fn_len,
     "elements of a list, members of a map, characters of a string"},
    {"lower", 1, 1, kNoClosure, Type::string, fn_lower, "lower case"},
    {"map", 1, 1, kClosure, Type::list, fn_map, "the closure's value for each element", is_list},
    {"max", 1, kMaxArguments, kNoClosure, Type::any, fn_max,
     "the largest of numbers or of a list of them", is_list_or_number},
    {"mean", 1, kMaxArguments, kNoClosure, Type::number, fn_mean,
     "the mean of numbers or of a list of them"},
    {"median", 1, kMaxArguments, kNoClosure, Type::number, fn_median,
     "the median of numbers or of a list of them"},
    {"min", 1, kMaxArguments, kNoClosure, Type::any, fn_min,
     "the smallest of numbers or of a list of them", is_list_or_number},
    {"none", 1, 1, kTestClosure, Type::boolean, fn_none, "whether the closure holds for no element",
     is_list},
    {"now", 0, 1, kNoClosure, Type::time, fn_now,
     "the time of the step, in UTC or in the given time zone"},
    {"one", 1, 1, kTestClosure, Type::boolean, fn_one,
     "whether the closure holds for exactly one element", is_list},
    {"reduce", 1, 2, kClosure, Type::any, fn_reduce, "reduce(list, #acc + #, start): folds a list",
     is_list},
    {"repeat", 2, 2, kNoClosure, Type::string, fn_repeat, "the text n times", nullptr, 1},
    {"replace", 3, 4, kNoClosure, Type::string, fn_replace,
     "occurrences replaced, at most n when given", nullptr, 3},
    {"reverse", 1, 1, kNoClosure, Type::list, fn_reverse, "the elements in reverse order"},
    {"round", 1, 1, kNoClosure, Type::number, fn_round,
     "the nearest whole number; halves away from zero"},
    {"sort", 1, 2, kNoClosure, Type::list, fn_sort,
     "numbers or strings in ascending order; 'desc' reverses it", is_list},
    {"sortBy", 1, 2, kClosure, Type::list, fn_sort_by,
     "elements in the order of the closure's values", is_list},
    {"split", 2, 3, kNoClosure, Type::list, fn_split, "parts of a text, at most n when given",
     nullptr, 2},
    {"splitAfter", 2, 3, kNoClosure, Type::list, fn_split_after,
     "parts of a text with their separators", nullptr, 2},
    {"string", 1, 1, kNoClosure, Type::string, fn_string, "the value as text"},
    {"sum", 1, 1, kOptionalClosure, Type::number, fn_sum,
     "the sum of a list, or of the closure's values", is_list},
    {"take", 2, 2, kNoClosure, Type::list, fn_take, "the first n elements"},
    {"timezone", 1, 1, kNoClosure, Type::zone, fn_timezone,
     "a time zone by its name, such as 'Europe/Berlin'"},
    {"toBase64", 1, 1, kNoClosure, Type::string, fn_to_base64, "Base64 of a text"},
    {"toJSON", 1, 1, kNoClosure, Type::string, fn_to_json,
     "the value as JSON text, indented, keys in order"},
    {"toPairs", 1, 1, kNoClosure, Type::list, fn_to_pairs, "[[key, value], ...] of a map"},
    {"trim", 1, 2, kNoClosure, Type::string, fn_trim,
     "without white space (or the given characters) at both ends"},
    {"trimPrefix", 1, 2, kNoClosure, Type::string, fn_trim_prefix,
     "without the given beginning, or one space"},
    {"trimSuffix", 1, 2, kNoClosure, Type::string, fn_trim_suffix,
     "without the given end, or one space"},
    {"type", 1, 1, kNoClosure, Type::string, fn_type,
     "the kind of the value: nil bool int float string array map"},
    {"uniq", 1, 1, kNoClosure, Type::list, fn_uniq, "the elements without duplicates"},
    {"upper", 1, 1, kNoClosure, Type::string, fn_upper, "upper case"},
    {"values", 1, 1, kNoClosure, Type::list, fn_values, "the values of a map"},
};

}  // namespace

std::span<const Function> functions() { return kFunctions; }

const Function* find_function(std::string_view name) {
  auto it = std::lower_bound(std::begin(kFunctions), std::end(kFunctions), name,
                             [](const Function& f, std::string_view n) { return f.name < n; });
  return it != std::end(kFunctions) && it->name == name ? it : nullptr;
}

std::unexpected<Error> Call::bad(std::string what) const {
  return error_at(at, std::string(name) + ": " + std::move(what));
}

Result<std::string_view> Call::text(size_t i) const {
  if (args[i].kind != Kind::string)
    return bad("wants a string, got " + std::string(kind_name(args[i].kind)));
  return args[i].text;
}

Result<int64_t> Call::whole(size_t i) const {
  const Value& v = args[i];
  if (v.kind == Kind::integer || v.exact) return v.whole;
  if (v.kind == Kind::real && std::fabs(v.number) < 9e18) return static_cast<int64_t>(v.number);
  return bad("wants a number, got " + std::string(kind_name(v.kind)));
}

Result<Value> Call::list(size_t i) const {
  if (args[i].kind != Kind::list)
    return bad("wants a list, got " + std::string(kind_name(args[i].kind)));
  return args[i];
}

Result<bool> Call::test(const Value& element) const {
  TRY(Value v, run.apply(closure, element));
  if (v.kind != Kind::boolean)
    return bad("the closure must give a boolean, got " + std::string(kind_name(v.kind)));
  return v.is_true();
}

Result<Value> fn_len(Call& c) {
  const Value& v = c.args[0];
  if (v.kind == Kind::list || v.kind == Kind::map) return value_of(static_cast<int64_t>(size(v)));
  if (v.kind != Kind::string)
    return c.bad("wants a list, a map or a string, got " + std::string(kind_name(v.kind)));
  int64_t n = 0;
  for (char ch : v.text)
    n += (static_cast<unsigned char>(ch) & 0xc0) != 0x80;
  return value_of(n);
}

Result<Value> fn_type(Call& c) { return value_of(type_name(c.args[0])); }

namespace {
// Whole numbers stay as they are.
Result<Value> rounded(Call& c, double (*how)(double)) {
  if (!c.args[0].is_number())
    return c.bad("wants a number, got " + std::string(kind_name(c.args[0].kind)));
  if (c.args[0].exact || c.args[0].kind == Kind::integer) return value_of(c.args[0].as_double());
  return value_of(how(c.args[0].number));
}
}  // namespace

Result<Value> fn_abs(Call& c) {
  const Value& v = c.args[0];
  if (!v.is_number()) return c.bad("wants a number, got " + std::string(kind_name(v.kind)));
  if (v.kind == Kind::integer && v.whole != INT64_MIN) return value_of(std::abs(v.whole));
  return value_of(std::fabs(v.as_double()));
}
Result<Value> fn_ceil(Call& c) {
  return rounded(c, [](double v) { return std::ceil(v); });
}
Result<Value> fn_floor(Call& c) {
  return rounded(c, [](double v) { return std::floor(v); });
}
Result<Value> fn_round(Call& c) {
  return rounded(c, [](double v) { return std::round(v); });
}

Result<Value> fn_int(Call& c) {
  const Value& v = c.args[0];
  if (v.kind == Kind::integer || v.exact) return value_of(v.whole);
  if (v.kind == Kind::real) {
    if (!(std::fabs(v.number) < 9.2e18)) return c.bad("the number does not fit 64 bits");
    return value_of(static_cast<int64_t>(v.number));
  }
  if (v.kind == Kind::duration) return value_of(v.whole);
  if (v.kind != Kind::string)
    return c.bad("cannot make an int of a " + std::string(kind_name(v.kind)));
  std::string_view digits = v.text.starts_with('+') ? v.text.substr(1) : v.text;
  int64_t out = 0;
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (failed != std::errc() || end != digits.data() + digits.size())
    return c.bad("'" + std::string(v.text) + "' is not a whole number");
  return value_of(out);
}

Result<Value> fn_float(Call& c) {
  const Value& v = c.args[0];
  if (v.is_number()) return value_of(v.as_double());
  if (v.kind != Kind::string)
    return c.bad("cannot make a number of a " + std::string(kind_name(v.kind)));
  double out = 0;
  auto [end, failed] = std::from_chars(v.text.data(), v.text.data() + v.text.size(), out);
  if (failed != std::errc() || end != v.text.data() + v.text.size())
    return c.bad("'" + std::string(v.text) + "' is not a number");
  return value_of(out);
}

Result<Value> fn_string(Call& c) {
  if (c.args[0].kind == Kind::string) return c.args[0];
  std::string out;
  append_text(out, c.args[0], c.run.arena);
  return value_of(c.run.arena.keep(std::move(out)));
}

namespace {

// All numbers in the arguments and in nested lists.
Result<List> number_arguments(Call& c) {
  List out;
  auto take = [&](auto& self, const Value& v) -> Result<void> {
    if (v.kind == Kind::list) {
      // One list may stand in many others, so the numbers may be more than the values.
      c.run.arena.read(size(v) * Arena::kElementBytes);
      for (size_t i = 0; i < size(v) && !c.run.arena.full(); ++i)
        TRY_OK(self(self, element(v, i)));
      return {};
    }
    if (!v.is_number()) return c.bad("wants numbers, got " + std::string(kind_name(v.kind)));
    if (out.size() > Arena::kMaxSpent) c.run.arena.exhaust();
    out.push_back(v);
    return {};
  };
  for (const Value& v : c.args)
    TRY_OK(take(take, v));
  c.run.arena.spend(out.size());
  return out;
}

// The largest number when `sign` is 1, the smallest when it is -1.
Result<Value> largest_by(Call& c, int sign) {
  if (c.args.size() == 1 && c.args[0].kind != Kind::list)
    return c.args[0];  // a single argument of any kind is its own maximum
  TRY(List all, number_arguments(c));
  if (all.empty()) return Value{};
  Value best = all[0];
  for (const Value& v : all)
    if (compare_numbers(v, best) * sign > 0) best = v;
  return best;
}

}  // namespace

Result<Value> fn_max(Call& c) { return largest_by(c, 1); }
Result<Value> fn_min(Call& c) { return largest_by(c, -1); }

Result<Value> fn_mean(Call& c) {
  TRY(List all, number_arguments(c));
  if (all.empty()) return value_of(0.0);
  double sum = 0;
  for (const Value& v : all)
    sum += v.as_double();
  return value_of(sum / static_cast<double>(all.size()));
}

Result<Value> fn_median(Call& c) {
  TRY(List all, number_arguments(c));
  if (all.empty()) return value_of(0.0);
  std::sort(all.begin(), all.end(),
            [](const Value& a, const Value& b) { return compare_numbers(a, b) < 0; });
  size_t half = all.size() / 2;
  if (all.size() % 2) return value_of(all[half].as_double());
  return value_of((all[half - 1].as_double() + all[half].as_double()) / 2);
}

// All bitwise functions with two arguments; the name of the call selects the operation.
Result<Value> fn_bits(Call& c) {
  if (c.args[0].kind != Kind::integer || c.args[1].kind != Kind::integer)
    return c.bad("wants two ints; write int(x) for a variable");
  int64_t a = c.args[0].whole, b = c.args[1].whole;
  uint64_t u = static_cast<uint64_t>(a);
  if (c.name == "bitand") return value_of(a & b);
  if (c.name == "bitnand") return value_of(a & ~b);
  if (c.name == "bitor") return value_of(a | b);
  if (c.name == "bitxor") return value_of(a ^ b);
  if (b < 0) return c.bad("wants a shift that is not negative");
  if (c.name == "bitshl") return value_of(b > 63 ? int64_t{0} : static_cast<int64_t>(u << b));
  if (c.name == "bitshr") return value_of(a >> std::min<int64_t>(b, 63));
  return value_of(b > 63 ? int64_t{0} : static_cast<int64_t>(u >> b));
}

Result<Value> fn_bitnot(Call& c) {
  if (c.args[0].kind != Kind::integer) return c.bad("wants an int; write int(x) for a variable");
  return value_of(~c.args[0].whole);
}

}  // namespace pawl::expr
