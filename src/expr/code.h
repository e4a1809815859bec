#pragma once
// The compiled form of an expression: an array of nodes that refer to each other by index, and the
// names of its variables, which nodes refer to by slot. Compiled code never changes, so threads may
// share it.

#include <forward_list>
#include <memory>

#include "expr/value.h"

namespace re2 {
class RE2;
}

namespace pawl::expr {

struct Function;

enum class Op : uint8_t {
  constant,
  variable,
  element_ref,
  accumulator,
  member,
  index,
  slice,
  list,
  map,
  call,
  method,
  negate,
  plus,
  not_,
  and_,
  or_,
  coalesce,
  conditional,
  equal,
  not_equal,
  less,
  greater,
  less_equal,
  greater_equal,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  power,
  range,
  in,
  matches,
  contains,
  starts_with,
  ends_with,
};

// The type of a node as far as it is known before evaluation; `any` for variables.
enum class Type : uint8_t { any, nil, boolean, number, string, list, map, time, duration, zone };
std::string_view type_word(Type type);

inline constexpr uint32_t kNone = ~0u;

struct Node {
  Op op = Op::constant;
  Type type = Type::any;
  bool guarded = false;  // member, index, method: a `?.` stands before it, so nil gives nil
  bool chained = false;  // member, method: an earlier `?.` of its chain may have given nil
  uint16_t depth = 1;
  uint32_t at = 0;                           // byte offset in the text, for errors
  uint32_t a = kNone, b = kNone, c = kNone;  // operands
  uint32_t slot = 0;                         // variable
  std::vector<uint32_t>
      items{};  // arguments of a call, elements of a list, keys and values of a map
  Value constant{};
  std::string_view name{};  // member, method: points into Compiled::literals
  const Function* function = nullptr;
  std::shared_ptr<const re2::RE2> pattern{};  // matches; shared by copies of the node
};

struct Compiled {
  std::vector<Node> nodes;
  uint32_t root = 0;
  std::vector<std::string> variables;
  std::forward_list<std::string> literals;  // its strings never move
};

// Size of an expression. Longer ones are refused, which bounds compilation.
inline constexpr size_t kMaxTextBytes = 64 * 1024;
// Nesting of nodes. Each level needs a few stack frames; deeper expressions are refused.
inline constexpr size_t kMaxDepth = 400;

// Size of a text that an expression makes. A larger one fails the evaluation.
inline constexpr size_t kMaxTextResult = 1024 * 1024;

Result<Compiled> compile(std::string_view text);

// Evaluates compiled code once, with one set of variables.
class Evaluation {
 public:
  Evaluation(const Compiled& code, const json::Object& variables, Time now)
      : now(now), code_(code), variables_(variables) {}
  Result<Value> run();

  Result<Value> eval(uint32_t node);
  // Evaluates the closure `node` with `#` as `element` and `#acc` as `accumulator`.
  Result<Value> apply(uint32_t node, const Value& element, const Value& accumulator = {});

  Arena arena;
  const Time now;

 private:
  // The variables of a closure.
  struct Scope {
    Value element, accumulator;
  };
  static constexpr size_t kInlineSlots = 16;  // with more variables than this, slots are allocated

  Result<Value> binary(const Node& node);
  Result<Value> logic(const Node& node);
  Result<Value> member_or_index(const Node& node);
  Result<Value> slice(const Node& node);
  Result<Value> build(const Node& node);
  Result<Value> call(const Node& node);
  Result<Value> match(const Node& node, const Value& a, const Value& b);
  Result<Value> search(const re2::RE2& pattern, std::string_view text);

  const Compiled& code_;
  const json::Object& variables_;
  const json::Value* inline_slots_[kInlineSlots];
  std::vector<const json::Value*> heap_slots_;
  const json::Value** slots_ = inline_slots_;
  const Scope* scope_ = nullptr;  // of the innermost closure
};

// Operators on two values (operators.cc). `at` is the byte offset for errors.
Result<Value> arithmetic(Op op, const Value& a, const Value& b, Arena& arena, size_t at);
Result<Value> comparison(Op op, const Value& a, const Value& b, Arena& arena, size_t at);
Result<bool> is_in(const Value& wanted, const Value& collection, Arena& arena, size_t at);
// The first or last place of `part` in `text`, or npos. Takes time linear in both, which
// std::string_view::find does not. Both count as read.
size_t find_text(std::string_view text, std::string_view part, Arena& arena);
size_t find_last_text(std::string_view text, std::string_view part, Arena& arena);
// The error BAD_EXPRESSION: "WHAT at position N".
std::unexpected<Error> error_at(size_t at, std::string what);
std::string_view symbol_of(Op op);

}  // namespace pawl::expr
