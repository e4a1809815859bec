// Evaluates the tree of nodes. All variables are looked up first, and a missing one fails the whole
// expression, even in a branch that would not be evaluated: a misspelt name is always found.

#include <re2/re2.h>

#include <cmath>

#include "expr/code.h"
#include "expr/functions.h"

namespace pawl::expr {

namespace {
// Bytes that the search for a member counts as read for each member of the map.
constexpr size_t kMemberBytes = 4;
// The costs of patterns, in bytes that count as read: of making one, of each of its instructions,
// and the instructions that cost as much as reading one byte.
constexpr size_t kPatternBytes = 4096;
constexpr size_t kInstructionBytes = 64;
constexpr size_t kInstructionsPerByte = 16;
}  // namespace

Result<Value> Evaluation::run() {
  // Few variables, the common case, need no allocation.
  size_t n = code_.variables.size();
  if (n > kInlineSlots) {
    heap_slots_.resize(n);
    slots_ = heap_slots_.data();
  }
  for (size_t i = 0; i < n; ++i) {
    slots_[i] = variables_.find(code_.variables[i]);
    if (slots_[i]) continue;
    size_t at = 0;
    for (const Node& node : code_.nodes)
      if (node.op == Op::variable && node.slot == i) at = node.at;
    return error_at(at, "undefined variable \"" + code_.variables[i] + "\"");
  }
  return eval(code_.root);
}

Result<Value> Evaluation::apply(uint32_t node, const Value& element, const Value& accumulator) {
  arena.spend(1);
  if (arena.full())
    return error_at(code_.nodes[node].at, "the expression makes more than " +
                                              std::to_string(Arena::kMaxSpent) + " values");
  Scope scope{element, accumulator};
  const Scope* outer = scope_;
  scope_ = &scope;
  Result<Value> out = eval(node);
  scope_ = outer;
  return out;
}

Result<Value> Evaluation::eval(uint32_t i) {
  const Node& node = code_.nodes[i];
  arena.read(Arena::kNodeBytes);
  switch (node.op) {
    case Op::constant: return node.constant;
    case Op::variable: {
      const json::Value& variable = *slots_[node.slot];
      if (variable.is_number()) arena.read(variable.number_text().size());  // it is parsed here
      return value_of(variable);
    }
    case Op::element_ref:
      if (scope_->element.kind == Kind::member)
        return error_at(node.at,
                        "'#' cannot look at a member of a map; write keys(m) or values(m)");
      return scope_->element;
    case Op::accumulator: return scope_->accumulator;
    case Op::member:
    case Op::index: return member_or_index(node);
    case Op::slice: return slice(node);
    case Op::list:
    case Op::map: return build(node);
    case Op::call:
    case Op::method: return call(node);
    case Op::negate:
    case Op::plus: {
      TRY(Value v, eval(node.a));
      if (node.op == Op::plus) return v;  // unary plus accepts every kind
      if (!v.is_number())
        return error_at(node.at, "a sign wants a number, got " + std::string(kind_name(v.kind)));
      return arithmetic(Op::subtract,
                        v.kind == Kind::integer ? value_of(int64_t{0}) : exact_real(0), v, arena,
                        node.at);
    }
    case Op::not_:
    case Op::and_:
    case Op::or_:
    case Op::coalesce:
    case Op::conditional: return logic(node);
    default: return binary(node);
  }
}

// The operators that do not always evaluate their right side.
Result<Value> Evaluation::logic(const Node& node) {
  TRY(Value a, eval(node.a));
  if (node.op == Op::coalesce) return a.kind == Kind::nil ? eval(node.b) : Result<Value>(a);
  if (a.kind != Kind::boolean)
    return error_at(node.at, std::string(node.op == Op::not_          ? "!"
                                         : node.op == Op::conditional ? "?:"
                                                                      : symbol_of(node.op)) +
                                 " wants a boolean, got " + std::string(kind_name(a.kind)));
  if (node.op == Op::not_) return value_of(!a.is_true());
  if (node.op == Op::conditional) return eval(a.is_true() ? node.b : node.c);
  if (a.is_true() == (node.op == Op::or_)) return a;
  TRY(Value b, eval(node.b));
  if (b.kind != Kind::boolean)
    return error_at(node.at, std::string(symbol_of(node.op)) + " wants a boolean, got " +
                                 std::string(kind_name(b.kind)));
  return b;
}

// `a.name`, `a[key]` of a map, and `a[i]` of a list or a string. A missing member is nil; an index
// out of range is an error. A negative index counts from the end.
Result<Value> Evaluation::member_or_index(const Node& node) {
  TRY(Value self, eval(node.a));
  Value key = value_of(node.name);
  if (node.op == Op::index) {
    TRY(key, eval(node.b));
  }
  if (self.kind == Kind::nil && (node.guarded || (node.chained && self.short_circuit)))
    return Value{.short_circuit = true};
  if (self.kind == Kind::map && (key.kind == Kind::string || key.kind == Kind::nil)) {
    Value out;
    arena.read(size(self) * kMemberBytes);  // the search is linear
    return member(self, key.text, out) ? out : Value{};
  }
  bool indexed = node.op == Op::index && key.is_number() &&
                 (self.kind == Kind::list || self.kind == Kind::string);
  if (!indexed) {
    std::string what = node.op == Op::index ? "an index of a " + std::string(kind_name(key.kind))
                                            : "field \"" + std::string(node.name) + "\"";
    return error_at(node.at, "cannot take " + what + " from " + std::string(kind_name(self.kind)));
  }
  int64_t n = static_cast<int64_t>(self.kind == Kind::list ? size(self) : self.text.size());
  double want = std::trunc(key.as_double());
  double from_start = want < 0 ? want + static_cast<double>(n) : want;
  if (!(from_start >= 0 && from_start < static_cast<double>(n)))
    return error_at(node.at, "index out of range: there are " + std::to_string(n) + " elements");
  size_t i = static_cast<size_t>(from_start);
  return self.kind == Kind::list ? element(self, i)
                                 : value_of(int64_t{static_cast<unsigned char>(self.text[i])});
}

// `a[from:to]` of a list or a string; bounds outside of it are moved to its ends.
Result<Value> Evaluation::slice(const Node& node) {
  TRY(Value self, eval(node.a));
  if (self.kind != Kind::list && self.kind != Kind::string)
    return error_at(node.at, "cannot slice a " + std::string(kind_name(self.kind)));
  double n = static_cast<double>(self.kind == Kind::list ? size(self) : self.text.size());
  double bounds[2] = {0, n};
  for (int k = 0; k < 2; ++k) {
    uint32_t side = k ? node.c : node.b;
    if (side == kNone) continue;
    TRY(Value v, eval(side));
    if (!v.is_number())
      return error_at(node.at, "a slice wants numbers, got " + std::string(kind_name(v.kind)));
    double want = std::trunc(v.as_double());
    bounds[k] = std::clamp(want < 0 ? want + n : want, 0.0, n);
  }
  size_t from = static_cast<size_t>(bounds[0]),
         to = static_cast<size_t>(std::max(bounds[0], bounds[1]));
  if (self.kind == Kind::string) return value_of(self.text.substr(from, to - from));
  List out;
  for (size_t i = from; i < to; ++i)
    out.push_back(element(self, i));
  return arena.keep(std::move(out));
}

// A list or map literal. The last of equal keys wins.
Result<Value> Evaluation::build(const Node& node) {
  if (arena.full()) return error_at(node.at, "the expression makes too many values");
  if (node.op == Op::list) {
    List out;
    out.reserve(node.items.size());
    for (uint32_t item : node.items) {
      TRY(Value v, eval(item));
      out.push_back(v);
    }
    return arena.keep(std::move(out));
  }
  Map out;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    TRY(Value name, eval(node.items[i]));
    if (name.kind != Kind::string)
      return error_at(node.at,
                      "a map key must be a string, got " + std::string(kind_name(name.kind)));
    TRY(Value value, eval(node.items[i + 1]));
    arena.read(out.size() * Arena::kElementBytes);  // the search for an equal key is linear
    auto twin =
        std::find_if(out.begin(), out.end(), [&](const auto& m) { return m.first == name.text; });
    if (twin != out.end())
      twin->second = value;
    else
      out.push_back({name.text, value});
  }
  return arena.keep(std::move(out));
}

// A call of a function or a method. Up to four arguments need no allocation.
Result<Value> Evaluation::call(const Node& node) {
  constexpr size_t few = 4;
  Value near[few];
  std::vector<Value> far;
  Value* args = near;
  if (node.items.size() > few) {
    far.resize(node.items.size());
    args = far.data();
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    TRY(args[i], eval(node.items[i]));
  }
  std::span<const Value> given(args, node.items.size());
  for (const Value& v : given)
    if (v.kind == Kind::string) arena.read(v.text.size());
  if (arena.full()) return error_at(node.at, "the expression makes too many values");
  if (node.op == Op::method) {
    TRY(Value self, eval(node.a));
    if (self.kind == Kind::nil && (node.guarded || (node.chained && self.short_circuit)))
      return Value{.short_circuit = true};
    return method(*this, node.name, self, given, node.at);
  }
  Call one{*this, node.function->name, given, node.c, node.at};
  return node.function->run(one);
}

// `contains`, `startsWith`, `endsWith` and `matches`. A pattern that is a literal was compiled by
// the parser.
Result<Value> Evaluation::match(const Node& node, const Value& a, const Value& b) {
  if (a.kind == Kind::nil || b.kind == Kind::nil) return value_of(false);
  if (a.kind != Kind::string || b.kind != Kind::string)
    return error_at(node.at, std::string(symbol_of(node.op)) + " wants two strings, got " +
                                 std::string(kind_name(a.kind)) + " and " +
                                 std::string(kind_name(b.kind)));
  if (node.op == Op::contains)
    return value_of(find_text(a.text, b.text, arena) != std::string_view::npos);
  arena.read(b.text.size());
  if (node.op == Op::starts_with) return value_of(a.text.starts_with(b.text));
  if (node.op == Op::ends_with) return value_of(a.text.ends_with(b.text));
  if (node.pattern) return search(*node.pattern, a.text);
  re2::RE2::Options options;
  options.set_log_errors(false);
  re2::RE2 pattern(re2::StringPiece(b.text.data(), b.text.size()), options);
  if (!pattern.ok()) return error_at(node.at, "bad pattern: " + pattern.error());
  arena.read(kPatternBytes + static_cast<size_t>(pattern.ProgramSize()) * kInstructionBytes);
  return search(pattern, a.text);
}

// RE2 takes time linear in the text. At worst it takes all instructions of the pattern for each
// byte.
Result<Value> Evaluation::search(const re2::RE2& pattern, std::string_view text) {
  const size_t instructions = static_cast<size_t>(pattern.ProgramSize());
  arena.read(text.size() * (1 + instructions / kInstructionsPerByte));
  if (arena.exhausted()) return value_of(false);
  return value_of(re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern));
}

Result<Value> Evaluation::binary(const Node& node) {
  TRY(Value a, eval(node.a));
  TRY(Value b, eval(node.b));
  switch (node.op) {
    case Op::equal: return value_of(equal(a, b, arena));
    case Op::not_equal: return value_of(!equal(a, b, arena));
    case Op::less:
    case Op::greater:
    case Op::less_equal:
    case Op::greater_equal: return comparison(node.op, a, b, arena, node.at);
    case Op::in: {
      TRY(bool found, is_in(a, b, arena, node.at));
      return value_of(found);
    }
    case Op::matches:
    case Op::contains:
    case Op::starts_with:
    case Op::ends_with: return match(node, a, b);
    default: return arithmetic(node.op, a, b, arena, node.at);
  }
}

}  // namespace pawl::expr
