// Parses tokens into nodes by precedence climbing. Expressions whose types can never fit, such as
// `1 == true` or `t && 1`, are refused here, before any variable is known.

#include <re2/re2.h>

#include "expr/code.h"
#include "expr/functions.h"
#include "expr/lexer.h"
#include "expr/types.h"

namespace pawl::expr {

namespace {

struct Operator {
  std::string_view symbol;
  int precedence;
  Op op;
  bool negatable = false;  // may stand after `not`
};
constexpr int kPipePrecedence = 0, kNotPrecedence = 50, kSignPrecedence = 90,
              kPowerPrecedence = 100, kCoalescePrecedence = 500;
constexpr Operator kOperators[] = {
    {"||", 10, Op::or_},
    {"or", 10, Op::or_},
    {"&&", 15, Op::and_},
    {"and", 15, Op::and_},
    {"==", 20, Op::equal},
    {"!=", 20, Op::not_equal},
    {"<", 20, Op::less},
    {">", 20, Op::greater},
    {"<=", 20, Op::less_equal},
    {">=", 20, Op::greater_equal},
    {"in", 20, Op::in, true},
    {"matches", 20, Op::matches, true},
    {"contains", 20, Op::contains, true},
    {"startsWith", 20, Op::starts_with, true},
    {"endsWith", 20, Op::ends_with, true},
    {"..", 25, Op::range},
    {"+", 30, Op::add},
    {"-", 30, Op::subtract},
    {"*", 60, Op::multiply},
    {"/", 60, Op::divide},
    {"%", 60, Op::modulo},
    {"**", kPowerPrecedence, Op::power},
    {"^", kPowerPrecedence, Op::power},
    {"??", kCoalescePrecedence, Op::coalesce},
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Compiled> run() {
    if (current().kind == TokenKind::end) return error_here("the expression is empty");
    TRY(uint32_t root, sequence());
    if (current().kind != TokenKind::end) return error_here("unexpected " + shown_token());
    code_.root = root;
    return std::move(code_);
  }

 private:
  const Token& current() const { return tokens_[next_]; }
  const Token& lookahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  bool at_symbol(std::string_view symbol) const {
    return current().kind == TokenKind::symbol && current().text == symbol;
  }
  bool at_word(std::string_view word) const {
    return current().kind == TokenKind::name && current().text == word;
  }
  bool accept(std::string_view symbol) {
    if (!at_symbol(symbol)) return false;
    ++next_;
    return true;
  }
  std::string shown_token() const {
    return current().kind == TokenKind::end
               ? "end of expression"
               : "'" + (current().text.empty() ? "number" : current().text) + "'";
  }
  std::unexpected<Error> error_here(std::string what) const {
    return error_at(current().at, std::move(what));
  }
  Result<void> expect(std::string_view symbol) {
    if (accept(symbol)) return {};
    return error_here("expected '" + std::string(symbol) + "' before " + shown_token());
  }

  Node& node(uint32_t i) { return code_.nodes[i]; }
  Result<uint32_t> add(Node n) {
    uint16_t depth = 0;
    auto include = [&](uint32_t child) {
      if (child != kNone) depth = std::max(depth, code_.nodes[child].depth);
    };
    include(n.a);
    include(n.b);
    include(n.c);
    for (uint32_t child : n.items)
      include(child);
    if (depth >= kMaxDepth)
      return error_at(n.at, "nested more than " + std::to_string(kMaxDepth) +
                                " deep; split it over several steps");
    n.depth = static_cast<uint16_t>(depth + 1);
    code_.nodes.push_back(std::move(n));
    return static_cast<uint32_t>(code_.nodes.size() - 1);
  }
  std::string_view literal(std::string text) {
    return code_.literals.emplace_front(std::move(text));
  }

  // `a; b; c` has the value of its last expression.
  Result<uint32_t> sequence() {
    TRY(uint32_t last, expression(0));
    while (accept(";")) {
      if (current().kind == TokenKind::end || at_symbol("}")) break;
      TRY(last, expression(0));
    }
    return last;
  }

  // Counts the recursion of the parser: brackets nest without making nodes.
  struct NestingGuard {
    explicit NestingGuard(size_t& level) : nesting_(level) { ++nesting_; }
    ~NestingGuard() { --nesting_; }
    size_t& nesting_;
  };

  // An expression whose operators have at least this precedence. With 0 it may also be an `if` or a
  // conditional.
  Result<uint32_t> expression(int min_precedence) {
    NestingGuard level(nesting_);
    if (nesting_ > kMaxDepth)
      return error_here("nested more than " + std::to_string(kMaxDepth) +
                        " deep; split it over several steps");
    if (min_precedence == 0 && at_word("if")) return if_else();
    TRY(uint32_t left, unary());
    TRY(left, binary_operators(left, min_precedence));
    if (min_precedence == 0) return conditional(left);
    return left;
  }

  // The operator at the current token; null when there is none. `negated` is set for `not in` and
  // similar ones.
  const Operator* operator_here(bool& negated) const {
    negated = at_word("not");
    const Token& token = negated ? lookahead() : current();
    if (token.kind != TokenKind::symbol && token.kind != TokenKind::name) return nullptr;
    for (const Operator& o : kOperators)
      if (o.symbol == token.text && (!negated || o.negatable)) return &o;
    return nullptr;
  }

  // The operators that follow `left`. A chain of comparisons `a < b < c` means `a < b && b < c`.
  Result<uint32_t> binary_operators(uint32_t left, int min_precedence) {
    Op before = Op::constant;
    uint32_t middle = kNone;
    while (true) {
      if (at_symbol("|") && min_precedence <= kPipePrecedence) {
        TRY(left, pipe(left));
        before = Op::constant;
        continue;
      }
      bool negated = false;
      const Operator* o = operator_here(negated);
      if (!o || o->precedence < min_precedence) return left;
      if (before == Op::coalesce && o->op != Op::coalesce)
        return error_here(
            "an operator '?"
            "?' beside others needs brackets to tell them apart");
      uint32_t at = current().at;
      next_ += negated ? 2 : 1;
      TRY(uint32_t right, expression(o->op == Op::power ? o->precedence : o->precedence + 1));
      bool chained = is_ordering(o->op) && is_ordering(before);
      TRY(uint32_t made, binary(o->op, at, chained ? middle : left, right));
      if (chained) {
        TRY(made, add({.op = Op::and_, .type = Type::boolean, .at = at, .a = left, .b = made}));
      }
      if (negated) {
        TRY(made, add({.op = Op::not_, .type = Type::boolean, .at = at, .a = made}));
      }
      left = made;
      before = o->op;
      middle = right;
    }
  }

  Result<uint32_t> binary(Op op, uint32_t at, uint32_t left, uint32_t right) {
    TRY_OK(check_operands(code_, op, at, left, right));
    Type a = node(left).type;
    Type b = node(right).type;
    Node n{.op = op, .at = at, .a = left, .b = right};
    n.type = result_type(op, a, b);
    if (op == Op::matches && node(right).op == Op::constant && b == Type::string) {
      TRY(n.pattern, pattern(node(right).constant.text, at));
    }
    return add(std::move(n));
  }

  Result<std::shared_ptr<const re2::RE2>> pattern(std::string_view text, uint32_t at) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    auto made =
        std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
    if (!made->ok()) return error_at(at, "bad pattern: " + made->error());
    return made;
  }

  // `condition ? yes : no` or `condition ?: default`, or just the condition.
  Result<uint32_t> conditional(uint32_t condition) {
    uint32_t at = current().at;
    if (accept("?:")) {
      TRY_OK(require_boolean(code_, condition, "?:"));
      TRY(uint32_t default_value, expression(0));
      return add(
          {.op = Op::conditional, .at = at, .a = condition, .b = condition, .c = default_value});
    }
    if (!accept("?")) return condition;
    TRY_OK(require_boolean(code_, condition, "?:"));
    TRY(uint32_t yes, expression(0));
    TRY_OK(expect(":"));
    TRY(uint32_t no, expression(0));
    return add({.op = Op::conditional, .at = at, .a = condition, .b = yes, .c = no});
  }

  // `if condition { yes } else { no }`.
  Result<uint32_t> if_else() {
    uint32_t at = current().at;
    ++next_;
    TRY(uint32_t condition, expression(1));
    TRY_OK(require_boolean(code_, condition, "if"));
    TRY_OK(expect("{"));
    TRY(uint32_t yes, sequence());
    TRY_OK(expect("}"));
    if (!at_word("else")) return error_here("'if' needs an 'else'");
    ++next_;
    uint32_t no = kNone;
    if (at_word("if")) {
      TRY(no, expression(0));
    } else {
      TRY_OK(expect("{"));
      TRY(no, sequence());
      TRY_OK(expect("}"));
    }
    return add({.op = Op::conditional, .at = at, .a = condition, .b = yes, .c = no});
  }

  Result<uint32_t> unary() {
    uint32_t at = current().at;
    if (at_symbol("!") || at_word("not")) {
      ++next_;
      TRY(uint32_t a, expression(kNotPrecedence));
      TRY_OK(require_boolean(code_, a, "!"));
      return add({.op = Op::not_, .type = Type::boolean, .at = at, .a = a});
    }
    if (at_symbol("-") || at_symbol("+")) {
      Op op = at_symbol("-") ? Op::negate : Op::plus;
      ++next_;
      TRY(uint32_t a, expression(kSignPrecedence));
      Type t = node(a).type;
      if (t != Type::any && t != Type::number && t != Type::duration)
        return error_at(at, "a sign wants a number, got " + std::string(type_word(t)));
      return add({.op = op, .type = t, .at = at, .a = a});
    }
    TRY(uint32_t first, primary());
    return postfix(first);
  }

  Result<uint32_t> constant(Value v, Type type) {
    return add({.op = Op::constant, .type = type, .at = tokens_[next_ - 1].at, .constant = v});
  }

  Result<uint32_t> primary() {
    Token token = current();
    ++next_;
    switch (token.kind) {
      case TokenKind::integer: return constant(value_of(token.whole), Type::number);
      case TokenKind::real: return constant(value_of(token.number), Type::number);
      case TokenKind::string: return constant(value_of(literal(token.text)), Type::string);
      case TokenKind::element_ref:
        if (!closure_depth_)
          return error_at(
              token.at,
              "'#' alone stands for the element inside a closure such as filter(list, # > 1)");
        return add({.op = Op::element_ref, .at = token.at});
      case TokenKind::accumulator:
        if (closure_depth_) return add({.op = Op::accumulator, .at = token.at});
        return variable("acc", token.at);
      case TokenKind::name: return name_or_call(token);
      case TokenKind::symbol: return symbol(token);
      case TokenKind::end: break;
    }
    return error_at(token.at, "the expression ends where a value is expected");
  }

  // A bracket, a list, a map, or in a closure `.name`, which means `#.name`.
  Result<uint32_t> symbol(const Token& token) {
    if (token.text == "(" || token.text == "${") {
      TRY(uint32_t inner, sequence());
      TRY_OK(expect(token.text == "(" ? ")" : "}"));
      return inner;
    }
    if (token.text == "[") return list(token.at);
    if (token.text == "{") return map(token.at);
    if (token.text == "." && closure_depth_ && current().kind == TokenKind::name) {
      TRY(uint32_t self, add({.op = Op::element_ref, .at = token.at}));
      --next_;
      return self;
    }
    return error_at(token.at, "unexpected '" + token.text + "'");
  }

  Result<uint32_t> list(uint32_t at) {
    Node n{.op = Op::list, .type = Type::list, .at = at};
    while (!accept("]")) {
      TRY(uint32_t item, expression(0));
      n.items.push_back(item);
      if (!at_symbol("]")) TRY_OK(expect(","));
    }
    return add(std::move(n));
  }

  Result<uint32_t> map(uint32_t at) {
    Node n{.op = Op::map, .type = Type::map, .at = at};
    while (!accept("}")) {
      Token key = current();
      ++next_;
      uint32_t name = kNone;
      if (key.kind == TokenKind::string || key.kind == TokenKind::name ||
          key.kind == TokenKind::integer) {
        TRY(name,
            constant(value_of(literal(key.kind == TokenKind::integer ? std::to_string(key.whole)
                                                                     : key.text)),
                     Type::string));
      } else if (key.kind == TokenKind::symbol && key.text == "(") {
        TRY(name, expression(0));
        TRY_OK(expect(")"));
      } else {
        return error_at(key.at, "a map wants keys such as \"k\": or k:");
      }
      TRY_OK(expect(":"));
      TRY(uint32_t value, expression(0));
      n.items.push_back(name);
      n.items.push_back(value);
      if (!at_symbol("}")) TRY_OK(expect(","));
    }
    return add(std::move(n));
  }

  Result<uint32_t> name_or_call(const Token& token) {
    if (token.text == "true" || token.text == "false")
      return constant(value_of(token.text == "true"), Type::boolean);
    if (token.text == "nil") return constant({}, Type::nil);
    if (at_symbol("(")) return call(token, kNone);
    return variable(token.text, token.at);
  }

  Result<uint32_t> variable(const std::string& name, uint32_t at) {
    auto it = std::find(code_.variables.begin(), code_.variables.end(), name);
    uint32_t slot = static_cast<uint32_t>(it - code_.variables.begin());
    if (it == code_.variables.end()) code_.variables.push_back(name);
    return add({.op = Op::variable, .at = at, .slot = slot});
  }

  // `left | name(...)` calls the function with `left` as first argument.
  Result<uint32_t> pipe(uint32_t left) {
    ++next_;
    Token token = current();
    if (token.kind != TokenKind::name || lookahead().text != "(")
      return error_here("'|' wants a function call after it");
    ++next_;
    TRY(uint32_t made, call(token, left));
    return postfix(made);
  }

  // The body of a closure, with or without braces.
  Result<uint32_t> closure() {
    ++closure_depth_;
    bool braces = accept("{");
    Result<uint32_t> body = braces ? sequence() : expression(0);
    --closure_depth_;
    if (body && braces) TRY_OK(expect("}"));
    return body;
  }

  // `piped` is the value before `|`, or kNone.
  Result<uint32_t> call(const Token& token, uint32_t piped) {
    const Function* f = find_function(token.text);
    if (!f) return error_at(token.at, "unknown function '" + token.text + "'");
    Node n{.op = Op::call, .type = f->result, .at = token.at, .function = f};
    if (piped != kNone) n.items.push_back(piped);
    TRY_OK(expect("("));
    size_t arguments = piped != kNone;
    while (!accept(")")) {
      if (arguments == 1 && f->closure != Closure::none) {
        TRY(n.c, closure());
        if (node(n.c).type == Type::nil)
          return error_at(token.at, "the closure of " + token.text + " gives nothing but nil");
        bool test = f->closure == Closure::test || f->closure == Closure::optional_test;
        if (test) TRY_OK(require_boolean(code_, n.c, "the closure of " + token.text));
      } else {
        TRY(uint32_t argument, expression(0));
        n.items.push_back(argument);
      }
      ++arguments;
      if (!at_symbol(")")) TRY_OK(expect(","));
    }
    bool fits = n.items.size() >= f->min && n.items.size() <= f->max &&
                (n.c != kNone || (f->closure != Closure::wanted && f->closure != Closure::test));
    if (!fits)
      return error_at(token.at,
                      token.text + "() does not take " + std::to_string(arguments) + " arguments");
    if (f->count && f->count < n.items.size() && is_fraction(code_, n.items[f->count]))
      return error_at(token.at, token.text + "() wants an int as its count");
    Type given = n.items.empty() ? Type::any : node(n.items[0]).type;
    if (f->takes && given != Type::any && !f->takes(given))
      return error_at(token.at,
                      token.text + "() does not work on a " + std::string(type_word(given)));
    return add(std::move(n));
  }

  // True when the node follows a `?.` in its chain.
  bool in_chain(uint32_t i) { return node(i).guarded || node(i).chained; }

  // The members, methods and subscripts after a value.
  Result<uint32_t> postfix(uint32_t self) {
    bool guarded = false;
    while (true) {
      uint32_t at = current().at;
      if (at_symbol(".") || at_symbol("?.")) {
        guarded = at_symbol("?.");
        if (guarded && node(self).type == Type::nil)
          return error_here("'?.' wants a variable before it, got nil");
        ++next_;
        if (at_symbol("[") && guarded) continue;
        if (current().kind != TokenKind::name)
          return error_here("expected a field name before " + shown_token());
        std::string_view name = literal(current().text);
        ++next_;
        bool own = std::exchange(guarded, false);
        TRY(self, at_symbol("(") ? method_call(self, name, at, own)
                                 : add({.op = Op::member,
                                        .guarded = own,
                                        .chained = in_chain(self),
                                        .at = at,
                                        .a = self,
                                        .name = name}));
      } else if (accept("[")) {
        TRY(self, subscript(self, at, std::exchange(guarded, false)));
      } else {
        return self;
      }
    }
  }

  Result<uint32_t> method_call(uint32_t self, std::string_view name, uint32_t at, bool guarded) {
    Node n{.op = Op::method,
           .type = method_type(node(self).type, name),
           .guarded = guarded,
           .chained = in_chain(self),
           .at = at,
           .a = self,
           .name = name};
    ++next_;
    while (!accept(")")) {
      TRY(uint32_t argument, expression(0));
      n.items.push_back(argument);
      if (!at_symbol(")")) TRY_OK(expect(","));
    }
    return add(std::move(n));
  }

  Result<uint32_t> subscript(uint32_t self, uint32_t at, bool guarded) {
    uint32_t from = kNone;
    uint32_t to = kNone;
    if (!at_symbol(":")) {
      TRY(from, expression(0));
      if (at_symbol("]") && node(self).type == Type::string)
        return error_at(at, "a string is sliced, [0:1], not indexed");
      if (at_symbol("]") && node(self).type == Type::list && is_fraction(code_, from))
        return error_at(at, "a list wants an int as its index");
      if (accept("]"))
        return add({.op = Op::index, .guarded = guarded, .at = at, .a = self, .b = from});
    }
    TRY_OK(expect(":"));
    if (!at_symbol("]")) {
      TRY(to, expression(0));
    }
    TRY_OK(expect("]"));
    Type type = node(self).type;
    if (type != Type::string && type != Type::list) type = Type::any;
    return add({.op = Op::slice, .type = type, .at = at, .a = self, .b = from, .c = to});
  }

  std::vector<Token> tokens_;
  size_t next_ = 0;     // index of the current token
  size_t nesting_ = 0;  // recursion of expression()
  size_t closure_depth_ = 0;
  Compiled code_;
};

}  // namespace

std::string_view symbol_of(Op op) {
  for (const Operator& o : kOperators)
    if (o.op == op) return o.symbol;
  return "?";
}

std::unexpected<Error> error_at(size_t at, std::string what) {
  return fail(Code::invalid, "BAD_EXPRESSION", std::move(what) + " at " + position(at));
}

Result<Compiled> compile(std::string_view text) {
  if (text.size() > kMaxTextBytes)
    return fail(Code::invalid, "BAD_EXPRESSION",
                "longer than " + std::to_string(kMaxTextBytes) + " bytes");
  TRY(std::vector<Token> list, tokens(text));
  return Parser(std::move(list)).run();
}

}  // namespace pawl::expr
