#include "expr/types.h"

namespace pawl::expr {

namespace {

bool is_division(Op op) { return op == Op::divide || op == Op::modulo || op == Op::power; }
bool is_search(Op op) { return op >= Op::in; }
bool is_equality(Op op) { return op == Op::equal || op == Op::not_equal; }

std::string word(Type type) { return std::string(type_word(type)); }

std::unexpected<Error> does_not_work(Op op, uint32_t at, Type a, Type b) {
  return error_at(
      at, std::string(symbol_of(op)) + " does not work on a " + word(a) + " and a " + word(b));
}

// Divisions take numbers. Orderings also take two strings, times or durations.
Result<void> check_computation(Op op, uint32_t at, Type a, Type b) {
  auto fits = [&](Type t) {
    if (t == Type::any || t == Type::number) return true;
    return is_ordering(op) && (t == Type::string || t == Type::time || t == Type::duration);
  };
  bool both_known = a != Type::any && b != Type::any;
  if (fits(a) && fits(b) && (!both_known || a == b)) return {};
  return does_not_work(op, at, a, b);
}

// The type that all items of a list literal have; `any` when they differ or are not known.
Type item_type(const Compiled& code, const Node& list) {
  Type type = list.items.empty() ? Type::any : code.nodes[list.items[0]].type;
  for (uint32_t item : list.items)
    if (code.nodes[item].type != type) return Type::any;
  return type;
}

// Checks `in`, `contains` and the like. A variable that is nil is accepted (the result is false); a
// literal nil is refused.
Result<void> check_search(const Compiled& code, Op op, uint32_t at, const Node& left,
                          const Node& right) {
  auto is_text = [](Type t) { return t == Type::any || t == Type::string; };
  Type a = left.type;
  Type b = right.type;
  if (op != Op::in) {
    if (is_text(a) && is_text(b)) return {};
    return does_not_work(op, at, a, b);
  }
  if (b == Type::nil) return does_not_work(op, at, a, b);
  if (right.op != Op::list || a == Type::any || a == Type::nil) return {};
  Type items = item_type(code, right);
  if (items == Type::any || items == Type::nil || items == a) return {};
  return error_at(at, "a " + word(a) + " is never in a list of " + word(items) + "s");
}

// Values of two types are never equal; nil may be compared with everything.
Result<void> check_equality(uint32_t at, Type a, Type b) {
  auto compares_with_all = [](Type t) { return t == Type::any || t == Type::nil; };
  if (a == b || compares_with_all(a) || compares_with_all(b)) return {};
  return error_at(at, "a " + word(a) + " and a " + word(b) + " are never equal");
}

}  // namespace

bool is_ordering(Op op) {
  return op == Op::less || op == Op::greater || op == Op::less_equal || op == Op::greater_equal;
}

std::string_view type_word(Type type) {
  constexpr std::string_view words[] = {"value", "nil", "boolean", "number",   "string",
                                        "list",  "map", "time",    "duration", "time zone"};
  return words[static_cast<size_t>(type)];
}

Result<void> require_boolean(const Compiled& code, uint32_t node, std::string_view where) {
  Type type = code.nodes[node].type;
  if (type == Type::any || type == Type::boolean) return {};
  return error_at(code.nodes[node].at, std::string(where) + " wants a boolean, got " + word(type));
}

bool is_fraction(const Compiled& code, uint32_t node) {
  const Node& n = code.nodes[node];
  if (n.op == Op::constant) return n.constant.kind == Kind::real;
  return n.op == Op::divide || n.op == Op::power;
}

Result<void> check_operands(const Compiled& code, Op op, uint32_t at, uint32_t left,
                            uint32_t right) {
  const Node& a = code.nodes[left];
  const Node& b = code.nodes[right];
  if (op == Op::and_ || op == Op::or_) {
    TRY_OK(require_boolean(code, left, symbol_of(op)));
    return require_boolean(code, right, symbol_of(op));
  }
  if (is_division(op) || is_ordering(op)) return check_computation(op, at, a.type, b.type);
  if (is_search(op)) return check_search(code, op, at, a, b);
  if (is_equality(op)) return check_equality(at, a.type, b.type);
  if (op == Op::range && (is_fraction(code, left) || is_fraction(code, right)))
    return error_at(at, ".. wants two ints");
  return {};
}

Type result_type(Op op, Type a, Type b) {
  if (is_equality(op) || is_ordering(op) || is_search(op)) return Type::boolean;
  if (op == Op::and_ || op == Op::or_) return Type::boolean;
  if (op == Op::range) return Type::list;
  if (is_division(op)) return Type::number;
  bool computes = op >= Op::add && op <= Op::power;
  if (computes && a == Type::number && b == Type::number) return Type::number;
  if (op == Op::add && a == Type::string && b == Type::string) return Type::string;
  return Type::any;
}

}  // namespace pawl::expr
