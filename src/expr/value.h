#pragma once
// A value during the evaluation of an expression. It owns no memory: text, lists and maps belong to
// the variables of the instance, to the constants of the expression, or to the arena of the
// evaluation. Copies are cheap, and comparing, adding and looking up allocate nothing.

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

// `member` is the kind of `#` in a closure over a map, which no operation accepts.
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
  bool exact = false;          // real: `whole` is exactly the same number
  bool short_circuit = false;  // nil: it comes from a `?.`, so the rest of its chain is nil too
  bool keys_not_text = false;  // map: it has no JSON form
  uint16_t depth = 0;          // nesting of a list or map that the expression made
  int32_t nanos = 0;           // time: the fraction of its second
  // The boolean, the integer, the duration in nanoseconds, the time in seconds since 1970, or the
  // exact real.
  int64_t whole = 0;
  double number = 0;      // real
  std::string_view text;  // string, zone; the name of an integer from Month(), Weekday()
  const json::Value* json = nullptr;  // list, map or number that came from JSON
  const List* list = nullptr;
  const Map* map = nullptr;
  const Zone* zone = nullptr;  // time and zone; null is UTC

  bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
  bool is_true() const { return whole != 0; }
  double as_double() const { return kind == Kind::integer ? static_cast<double>(whole) : number; }
  ZonedTime zoned_time() const { return {whole, nanos, zone}; }
};

inline Value value_of(bool v) { return {.kind = Kind::boolean, .whole = v}; }
inline Value value_of(int64_t v) { return {.kind = Kind::integer, .whole = v}; }
inline Value value_of(double v) { return {.kind = Kind::real, .number = v}; }
inline Value value_of(std::string_view v) { return {.kind = Kind::string, .text = v}; }
Value value_of(const json::Value& v);  // numbers become reals, as in the expr language
Value exact_real(int64_t v);
inline Value value_of(const ZonedTime& m) {
  return {.kind = Kind::time, .nanos = m.nanos, .whole = m.seconds, .zone = m.zone};
}
Value time_value(Time v);
inline Value duration_value(int64_t nanos) { return {.kind = Kind::duration, .whole = nanos}; }

// Times lie within this many seconds of 1970, about a million years, so that sums never overflow.
// An operation that leads further away fails.
inline constexpr int64_t kMaxSeconds = 31'556'952'000'000;

std::string_view kind_name(Kind kind);       // "number", "string": for messages
std::string_view type_name(const Value& v);  // "int", "float", "time.Time": what type() says

// Number of elements of a list or members of a map; 0 for anything else.
size_t size(const Value& v);
Value element(const Value& list, size_t i);
// False when the map has no such key.
bool member(const Value& map, std::string_view key, Value& out);
std::pair<std::string_view, Value> entry(const Value& map, size_t i);

class Arena;

// Compares numbers by value, lists element by element, and maps by deep equality in which 5 and 5.0
// differ. The values that are compared count as read. When the arena is full the result is false,
// and the evaluation fails.
bool equal(const Value& a, const Value& b, Arena& arena);
// Return <0, 0 or >0, for two numbers, and for two times or two durations.
int compare_numbers(const Value& a, const Value& b);
int compare_times(const Value& a, const Value& b);

// The value as JSON. Fails with NO_JSON_FORM for infinities, NaN, and maps whose keys are not text.
// Lists and maps may hold one value many times, so the JSON may be much larger than the value: what
// is written counts as read, and a full arena is an error.
Result<json::Value> to_json(const Value& v, Arena& arena);
// Appends the value as string() prints it: 5, text without quotes, [1 2 3], map[a:1], <nil>. Stops
// when the arena is full.
void append_text(std::string& out, const Value& v, Arena& arena);

// Nesting of a value. Results are stored as JSON text, which is parsed with a limit of at least
// twice this depth. A deeper value fails the evaluation.
inline constexpr size_t kMaxValueDepth = 120;

// Owns the texts, lists and maps that an evaluation makes, and counts its work. Nothing is
// allocated until something is kept.
class Arena {
 public:
  // Work of one evaluation: about one for each value that is made or visited. An evaluation that
  // needs more fails, so that a hostile expression cannot exhaust memory or time.
  static constexpr size_t kMaxSpent = 1'000'000;
  std::string_view keep(std::string text) {
    spent_ += 1 + text.size() / 64;
    return strings_.emplace_front(std::move(text));
  }
  Value keep(List list) {
    spent_ += 1 + list.size();
    uint16_t depth = 0;
    for (const Value& v : list)
      depth = std::max(depth, v.depth);
    return {
        .kind = Kind::list, .depth = deeper(depth), .list = &lists_.emplace_front(std::move(list))};
  }
  Value keep(Map map) {
    spent_ += 1 + map.size();
    uint16_t depth = 0;
    for (const auto& [name, v] : map)
      depth = std::max(depth, v.depth);
    return {.kind = Kind::map, .depth = deeper(depth), .map = &maps_.emplace_front(std::move(map))};
  }
  const Zone* keep(Zone zone) {
    spent_ += 8 + zone.transitions.size() / 4;
    return &zones_.emplace_front(std::move(zone));
  }
  Value keep(json::Value value) { return value_of(values_.emplace_front(std::move(value))); }
  void spend(size_t amount) { spent_ += amount; }
  size_t spent() const { return spent_; }
  bool full() const { return spent_ > kMaxSpent || exhausted(); }

  // Bytes that one evaluation may read: texts that it searches and compares, and some bytes for
  // each node and element that it visits. The whole takes less than a second. An evaluation that
  // reads more fails.
  static constexpr size_t kMaxRead = 256 * 1024 * 1024;
  static constexpr size_t kNodeBytes = 16;     // for each node that is evaluated
  static constexpr size_t kElementBytes = 16;  // for each element or member that is visited
  void read(size_t bytes) { read_ += bytes; }
  size_t bytes_read() const { return read_; }
  bool exhausted() const { return read_ > kMaxRead; }
  void exhaust() { read_ += kMaxRead + 1; }

 private:
  // A value that is nested too deep fills the arena, so the evaluation fails at its next step.
  uint16_t deeper(uint16_t depth) {
    if (depth >= kMaxValueDepth) spent_ += kMaxSpent;
    return static_cast<uint16_t>(depth + 1);
  }

  size_t spent_ = 0;
  size_t read_ = 0;
  std::forward_list<std::string> strings_;
  std::forward_list<List> lists_;
  std::forward_list<Map> maps_;
  std::forward_list<json::Value> values_;
  std::forward_list<Zone> zones_;
};

}  // namespace pawl::expr
