#pragma once
// A value while an expression runs. It owns nothing: text, lists and maps are the instance's
// variables, the expression's constants, or live in the evaluation's arena. Copying one is cheap,
// and the common path (compare, add, look up) makes no allocation at all.

#include <forward_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "expr/layout.h"
#include "json/value.h"

namespace pawl::expr {

struct Value;
using List = std::vector<Value>;
using Map = std::vector<std::pair<std::string_view, Value>>;

// `member` stands for `#` in a closure over a map: it cannot be looked at.
enum class Kind : uint8_t {
  nil,
  boolean,
  integer,
  real,
  string,
  list,
  map,
  time,
  duration,
  zone,
  member
};

struct Value {
  Kind kind = Kind::nil;
  bool exact = false;    // real: `whole` is the same amount, to the digit
  bool cut = false;      // nil: a `?.` before it found nil, so the rest of its chain is nil too
  bool unnamed = false;  // map: its keys are not all text, so it has no JSON form
  uint16_t depth = 0;    // of lists and maps made by the expression
  int32_t nanos = 0;     // time: within its second
  int64_t whole =
      0;  // boolean, integer, duration (nanoseconds), time (seconds since 1970), exact real
  double number = 0;                  // real
  std::string_view text;              // of an integer: its name, as Month() and Weekday() have one
  const json::Value* json = nullptr;  // a list, map or number that came from JSON
  const List* list = nullptr;
  const Map* map = nullptr;
  const Zone* zone = nullptr;  // time and time zone; null is UTC

  bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
  bool truth() const { return whole != 0; }
  double as_double() const { return kind == Kind::integer ? static_cast<double>(whole) : number; }
  Moment moment() const { return {whole, nanos, zone}; }
};

inline Value of(bool v) { return {.kind = Kind::boolean, .whole = v}; }
inline Value of(int64_t v) { return {.kind = Kind::integer, .whole = v}; }
inline Value of(double v) { return {.kind = Kind::real, .number = v}; }
inline Value of(std::string_view v) { return {.kind = Kind::string, .text = v}; }
Value of(const json::Value& v);  // numbers become reals, as in the original
Value exact_real(int64_t v);
inline Value of(const Moment& m) {
  return {.kind = Kind::time, .nanos = m.nanos, .whole = m.seconds, .zone = m.zone};
}
Value of_time(Time v);
inline Value of_duration(int64_t nanos) { return {.kind = Kind::duration, .whole = nanos}; }

// Seconds from 1970 beyond which no time goes: a million years, far from where sums would run over.
inline constexpr int64_t kFarthest = 31'556'952'000'000;

std::string_view kind_name(Kind kind);       // "number", "string": for messages
std::string_view type_name(const Value& v);  // "int", "float", "time.Time": what type() says

// Of a list or map; 0 of anything else.
size_t size(const Value& v);
Value element(const Value& list, size_t i);
// False when the map has no such key.
bool member(const Value& map, std::string_view key, Value& out);
std::pair<std::string_view, Value> entry(const Value& map, size_t i);

// Numbers by amount, lists element by element, maps by deep equality in which 5 and 5.0 differ.
bool equal(const Value& a, const Value& b);
// <0, 0, >0 of two numbers, two times or two durations.
int compare_numbers(const Value& a, const Value& b);
int compare_times(const Value& a, const Value& b);

// The value as JSON, or an error when it has no such form: infinities, maps without text keys.
Result<json::Value> to_json(const Value& v);
// As people print it: 5, "text" without quotes, [1 2 3], map[a:1], <nil>.
void append_text(std::string& out, const Value& v);

// Nesting of a result: variables are stored as JSON text, which is read back to twice this depth.
inline constexpr size_t kDeepestValue = 120;

// What an evaluation made. Nothing is allocated until something is put in.
class Arena {
 public:
  // More than any honest expression makes; a hostile one stops here instead of at the memory's end.
  static constexpr size_t kMax = 1'000'000;
  std::string_view keep(std::string text) {
    made_ += 1 + text.size() / 64;
    return strings_.emplace_front(std::move(text));
  }
  Value keep(List list) {
    made_ += 1 + list.size();
    uint16_t depth = 0;
    for (const Value& v : list)
      depth = std::max(depth, v.depth);
    return {
        .kind = Kind::list, .depth = deeper(depth), .list = &lists_.emplace_front(std::move(list))};
  }
  Value keep(Map map) {
    made_ += 1 + map.size();
    uint16_t depth = 0;
    for (const auto& [name, v] : map)
      depth = std::max(depth, v.depth);
    return {.kind = Kind::map, .depth = deeper(depth), .map = &maps_.emplace_front(std::move(map))};
  }
  const Zone* keep(Zone zone) {
    made_ += 8 + zone.changes.size() / 4;
    return &zones_.emplace_front(std::move(zone));
  }
  Value keep(json::Value value) { return of(values_.emplace_front(std::move(value))); }
  void spend(size_t amount) { made_ += amount; }
  size_t spent() const { return made_; }
  bool full() const { return made_ > kMax; }

 private:
  // A value nested past the limit fills the arena: whatever would be made of it is refused.
  uint16_t deeper(uint16_t depth) {
    if (depth >= kDeepestValue) made_ += kMax;
    return static_cast<uint16_t>(depth + 1);
  }

  size_t made_ = 0;
  std::forward_list<std::string> strings_;
  std::forward_list<List> lists_;
  std::forward_list<Map> maps_;
  std::forward_list<json::Value> values_;
  std::forward_list<Zone> zones_;
};

}  // namespace pawl::expr
