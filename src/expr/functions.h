#pragma once
// The functions of the expression language. One table lists them; each row has the number of
// arguments, the types and a sentence of documentation.

#include "expr/code.h"

namespace pawl::expr {

// One call of a function, with its evaluated arguments.
struct Call {
  Evaluation& run;
  std::string_view name;
  std::span<const Value> args;                         // without the closure
  uint32_t closure;                                    // kNone when there is none
  size_t at;                                           // byte offset, for errors
  std::unexpected<Error> bad(std::string what) const;  // "upper: wants a string, got number"
  // Argument `i` as the type; an error when it has another one.
  Result<std::string_view> text(size_t i) const;
  Result<int64_t> whole(size_t i) const;  // a number without its fraction
  Result<Value> list(size_t i) const;
  // Evaluates the closure for an element; the result must be a boolean.
  Result<bool> test(const Value& element) const;
};

// Whether a function takes a closure. `test` and `optional_test` must return a boolean.
enum class Closure : uint8_t { none, wanted, optional, test, optional_test };

struct Function {
  std::string_view name;
  size_t min, max;  // number of arguments without the closure
  Closure closure;  // the second argument
  Type result;
  Result<Value> (*run)(Call& call);
  std::string_view doc;
  // True when the first argument may have this type. Not called for `any`.
  bool (*takes)(Type type) = nullptr;
  // Index of the argument that is a count, which is an int or a variable; 0 when there is none.
  size_t count = 0;
};

const Function* find_function(std::string_view name);
std::span<const Function> functions();

// Methods of times and durations, such as date('2024-01-15').Year(). method_type() is the type of
// the result; `any` when there is no such method.
Type method_type(Type self, std::string_view name);
Result<Value> method(Evaluation& run, std::string_view name, const Value& self,
                     std::span<const Value> args, size_t at);

// The functions of the table: numbers, texts, lists and maps, times.
Result<Value> fn_len(Call&), fn_type(Call&), fn_abs(Call&), fn_ceil(Call&), fn_floor(Call&),
    fn_round(Call&), fn_int(Call&), fn_float(Call&), fn_string(Call&), fn_max(Call&), fn_min(Call&),
    fn_mean(Call&), fn_median(Call&), fn_bits(Call&), fn_bitnot(Call&);
Result<Value> fn_trim(Call&), fn_trim_prefix(Call&), fn_trim_suffix(Call&), fn_upper(Call&),
    fn_lower(Call&), fn_split(Call&), fn_split_after(Call&), fn_replace(Call&), fn_repeat(Call&),
    fn_join(Call&), fn_index_of(Call&), fn_last_index_of(Call&), fn_has_prefix(Call&),
    fn_has_suffix(Call&), fn_to_json(Call&), fn_from_json(Call&), fn_to_base64(Call&),
    fn_from_base64(Call&);
Result<Value> fn_contains(Call&), fn_all(Call&), fn_none(Call&), fn_any(Call&), fn_one(Call&),
    fn_filter(Call&), fn_map(Call&), fn_find(Call&), fn_find_index(Call&), fn_find_last(Call&),
    fn_find_last_index(Call&), fn_count(Call&), fn_sum(Call&), fn_group_by(Call&),
    fn_sort_by(Call&), fn_reduce(Call&), fn_first(Call&), fn_last(Call&), fn_get(Call&),
    fn_take(Call&), fn_keys(Call&), fn_values(Call&), fn_to_pairs(Call&), fn_from_pairs(Call&),
    fn_reverse(Call&), fn_uniq(Call&), fn_concat(Call&), fn_flatten(Call&), fn_sort(Call&);
Result<Value> fn_now(Call&), fn_duration(Call&), fn_date(Call&), fn_timezone(Call&);

}  // namespace pawl::expr
