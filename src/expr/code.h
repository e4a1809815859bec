#pragma once
// The compiled form of an expression: a flat array of nodes that name each other by index, and the
// variables it needs by slot. Never changed once made, so threads may share it.

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
  pointer,
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
  unequal,
  less,
  more,
  at_most,
  at_least,
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

// What is known about a node before it runs; `any` for variables.
enum class Type : uint8_t { any, nil, boolean, number, string, list, map, time, duration, zone };
std::string_view type_word(Type type);

inline constexpr uint32_t kNone = ~0u;

struct Node {
  Op op = Op::constant;
  Type type = Type::any;
  bool guarded = false;  // member, index, method: of nil gives nil, because a `?.` stands before it
  bool chained = false;  // member, method: an earlier `?.` of its chain may have cut it off
  uint16_t depth = 1;
  uint32_t at = 0;  // byte offset, for errors
  uint32_t a = kNone, b = kNone, c = kNone;
  uint32_t slot = 0;
  std::vector<uint32_t> items{};  // arguments; elements; keys and values in turn
  Value constant{};
  std::string_view name{};  // member, method: into the literals
  const Function* function = nullptr;
  std::shared_ptr<const re2::RE2>
      pattern{};  // matches: shared with copies of the node, never changed
};

struct Compiled {
  std::vector<Node> nodes;
  uint32_t root = 0;
  std::vector<std::string> variables;
  std::forward_list<std::string> literals;
};

// Long enough for any rule people write; keeps compilation and evaluation bounded.
inline constexpr size_t kMax = 64 * 1024;
// Nesting of a tree, counted in nodes: each level is a few stack frames.
inline constexpr size_t kDeepest = 400;

Result<Compiled> compile(std::string_view text);

// Runs compiled code over one map of variables.
class Evaluation {
 public:
  Evaluation(const Compiled& code, const json::Object& variables, Time now)
      : now(now), code_(code), variables_(variables) {}
  Result<Value> run();

  Result<Value> eval(uint32_t node);
  // The closure `node` with `#` standing for `element`, and `#acc` for `accumulator`.
  Result<Value> apply(uint32_t node, const Value& element, const Value& accumulator = {});

  Arena arena;
  const Time now;

 private:
  struct Scope {
    Value element, accumulator;
  };
  static constexpr size_t kFew = 16;

  Result<Value> binary(const Node& node);
  Result<Value> logic(const Node& node);
  Result<Value> fetch(const Node& node);
  Result<Value> slice(const Node& node);
  Result<Value> build(const Node& node);
  Result<Value> call(const Node& node);
  Result<Value> match(const Node& node, const Value& a, const Value& b);

  const Compiled& code_;
  const json::Object& variables_;
  const json::Value* few_[kFew];
  std::vector<const json::Value*> many_;
  const json::Value** slots_ = few_;
  const Scope* scope_ = nullptr;
};

// The operators that need no evaluation of their own.
Result<Value> arithmetic(Op op, const Value& a, const Value& b, Arena& arena, size_t at);
Result<Value> comparison(Op op, const Value& a, const Value& b, size_t at);
Result<bool> is_in(const Value& needle, const Value& heap, size_t at);
std::unexpected<Error> wrong(size_t at, std::string what);
std::string_view symbol_of(Op op);

}  // namespace pawl::expr
