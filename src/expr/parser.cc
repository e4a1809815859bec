// Tokens to nodes, by precedence climbing. What is known to be wrong before any variable is seen
// (1 == true, t && 1) is refused here.

#include <re2/re2.h>

#include "expr/code.h"
#include "expr/functions.h"
#include "expr/lexer.h"

namespace pawl::expr {

namespace {

struct Operator {
  std::string_view symbol;
  int precedence;
  Op op;
  bool negatable = false;  // may stand after `not`
};
constexpr int kPipe = 0, kUnaryNot = 50, kUnarySign = 90, kPower = 100, kCoalesce = 500;
constexpr Operator kOperators[] = {
    {"||", 10, Op::or_},
    {"or", 10, Op::or_},
    {"&&", 15, Op::and_},
    {"and", 15, Op::and_},
    {"==", 20, Op::equal},
    {"!=", 20, Op::unequal},
    {"<", 20, Op::less},
    {">", 20, Op::more},
    {"<=", 20, Op::at_most},
    {">=", 20, Op::at_least},
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
    {"**", kPower, Op::power},
    {"^", kPower, Op::power},
    {"??", kCoalesce, Op::coalesce},
};

bool is_ordering(Op op) {
  return op == Op::less || op == Op::more || op == Op::at_most || op == Op::at_least;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Compiled> run() {
    if (here().lex == Lex::end) return bad("the expression is empty");
    TRY(uint32_t root, sequence());
    if (here().lex != Lex::end) return bad("unexpected " + shown());
    code_.root = root;
    return std::move(code_);
  }

 private:
  const Token& here() const { return tokens_[i_]; }
  const Token& ahead() const { return tokens_[std::min(i_ + 1, tokens_.size() - 1)]; }
  bool is(std::string_view symbol) const {
    return here().lex == Lex::symbol && here().text == symbol;
  }
  bool is_word(std::string_view word) const {
    return here().lex == Lex::name && here().text == word;
  }
  bool take(std::string_view symbol) { return is(symbol) && (++i_, true); }
  std::string shown() const {
    return here().lex == Lex::end ? "end of expression"
                                  : "'" + (here().text.empty() ? "number" : here().text) + "'";
  }
  std::unexpected<Error> bad(std::string what) const { return wrong(here().at, std::move(what)); }
  Result<void> want(std::string_view symbol) {
    if (take(symbol)) return {};
    return bad("expected '" + std::string(symbol) + "' before " + shown());
  }

  Node& node(uint32_t i) { return code_.nodes[i]; }
  Result<uint32_t> add(Node n) {
    uint16_t depth = 0;
    auto snapshot = [&](uint32_t child) {
      if (child != kNone) depth = std::max(depth, code_.nodes[child].depth);
    };
    snapshot(n.a), snapshot(n.b), snapshot(n.c);
    for (uint32_t child : n.items)
      snapshot(child);
    if (depth >= kDeepest)
      return wrong(n.at, "nested more than " + std::to_string(kDeepest) +
                             " deep; split it over several steps");
    n.depth = static_cast<uint16_t>(depth + 1);
    code_.nodes.push_back(std::move(n));
    return static_cast<uint32_t>(code_.nodes.size() - 1);
  }
  std::string_view literal(std::string text) {
    return code_.literals.emplace_front(std::move(text));
  }

  Result<void> must_be_boolean(uint32_t i, std::string_view where) {
    Type t = node(i).type;
    if (t == Type::any || t == Type::boolean) return {};
    return wrong(node(i).at,
                 std::string(where) + " wants a boolean, got " + std::string(type_word(t)));
  }

  Result<uint32_t> sequence() {
    TRY(uint32_t last, expression(0));
    while (take(";")) {
      if (here().lex == Lex::end || is("}")) break;
      TRY(last, expression(0));
    }
    return last;
  }

  // Counts the parser's own recursion, which brackets deepen without making nodes.
  struct Level {
    explicit Level(size_t& level) : level_(level) { ++level_; }
    ~Level() { --level_; }
    size_t& level_;
  };

  Result<uint32_t> expression(int least) {
    Level level(level_);
    if (level_ > kDeepest)
      return bad("nested more than " + std::to_string(kDeepest) +
                 " deep; split it over several steps");
    if (least == 0 && is_word("if")) return if_else();
    TRY(uint32_t left, unary());
    TRY(left, binaries(left, least));
    if (least == 0) return conditional(left);
    return left;
  }

  // The operator at hand, `not in` and its like included; null when there is none.
  const Operator* operator_here(bool& negated) const {
    negated = is_word("not");
    const Token& token = negated ? ahead() : here();
    if (token.lex != Lex::symbol && token.lex != Lex::name) return nullptr;
    for (const Operator& o : kOperators)
      if (o.symbol == token.text && (!negated || o.negatable)) return &o;
    return nullptr;
  }

  Result<uint32_t> binaries(uint32_t left, int least) {
    Op before = Op::constant;
    uint32_t middle = kNone;
    while (true) {
      if (is("|") && least <= kPipe) {
        TRY(left, pipe(left));
        before = Op::constant;
        continue;
      }
      bool negated = false;
      const Operator* o = operator_here(negated);
      if (!o || o->precedence < least) return left;
      if (before == Op::coalesce && o->op != Op::coalesce)
        return bad(
            "an operator '?"
            "?' beside others needs brackets to tell them apart");
      uint32_t at = here().at;
      i_ += negated ? 2 : 1;
      TRY(uint32_t right, expression(o->op == Op::power ? o->precedence : o->precedence + 1));
      bool chained = is_ordering(o->op) && is_ordering(before);
      TRY(uint32_t made, binary(o->op, at, chained ? middle : left, right));
      if (chained) {
        TRY(made, add({.op = Op::and_, .type = Type::boolean, .at = at, .a = left, .b = made}));
      }
      if (negated) {
        TRY(made, add({.op = Op::not_, .type = Type::boolean, .at = at, .a = made}));
      }
      left = made, before = o->op, middle = right;
    }
  }

  // The kind that all items of a list literal have; `any` when they differ or nobody knows.
  Type item_type(uint32_t list) {
    Type kind = node(list).items.empty() ? Type::any : node(node(list).items[0]).type;
    for (uint32_t item : node(list).items)
      if (node(item).type != kind) return Type::any;
    return kind;
  }
  bool is_fraction(uint32_t i) {
    const Node& n = node(i);
    return n.op == Op::divide || n.op == Op::power ||
           (n.op == Op::constant && n.constant.kind == Kind::real);
  }

  // What a division or an ordering is known never to work on, even where it would not be reached.
  Result<void> check_kinds(Op op, uint32_t at, Type a, Type b) {
    auto fits = [&](Type t) {
      return t == Type::any || t == Type::number ||
             (is_ordering(op) && (t == Type::string || t == Type::time || t == Type::duration));
    };
    bool both_known = a != Type::any && b != Type::any;
    if (fits(a) && fits(b) && (!both_known || a == b)) return {};
    return wrong(at, std::string(symbol_of(op)) + " does not work on a " +
                         std::string(type_word(a)) + " and a " + std::string(type_word(b)));
  }

  // Membership and matching: a nil variable is in nothing and holds nothing, a literal nil is a
  // mistake.
  Result<void> check_search(Op op, uint32_t at, uint32_t left, uint32_t right) {
    Type a = node(left).type, b = node(right).type;
    auto text = [](Type t) { return t == Type::any || t == Type::string; };
    if (op == Op::in ? b == Type::nil : !text(a) || !text(b))
      return wrong(at, std::string(symbol_of(op)) + " does not work on a " +
                           std::string(type_word(a)) + " and a " + std::string(type_word(b)));
    if (op != Op::in || node(right).op != Op::list || a == Type::any || a == Type::nil) return {};
    Type items = item_type(right);
    if (items == Type::any || items == Type::nil || items == a) return {};
    return wrong(at, "a " + std::string(type_word(a)) + " is never in a list of " +
                         std::string(type_word(items)) + "s");
  }

  Result<uint32_t> binary(Op op, uint32_t at, uint32_t left, uint32_t right) {
    Type a = node(left).type, b = node(right).type;
    Node n{.op = op, .at = at, .a = left, .b = right};
    if (op == Op::and_ || op == Op::or_) {
      TRY_OK(must_be_boolean(left, symbol_of(op)));
      TRY_OK(must_be_boolean(right, symbol_of(op)));
    }
    bool divides = op == Op::divide || op == Op::modulo || op == Op::power;
    if (divides || is_ordering(op)) TRY_OK(check_kinds(op, at, a, b));
    if (op >= Op::in) TRY_OK(check_search(op, at, left, right));
    if (op == Op::range && (is_fraction(left) || is_fraction(right)))
      return wrong(at, ".. wants two ints");
    bool both_known = a != Type::any && b != Type::any;
    if ((op == Op::equal || op == Op::unequal) && both_known && a != b && a != Type::nil &&
        b != Type::nil)
      return wrong(at, "a " + std::string(type_word(a)) + " and a " + std::string(type_word(b)) +
                           " are never equal");
    if (op >= Op::equal && op <= Op::at_least) n.type = Type::boolean;
    if (op >= Op::in || op == Op::and_ || op == Op::or_) n.type = Type::boolean;
    if (divides ||
        (op >= Op::subtract && op <= Op::power && a == Type::number && b == Type::number))
      n.type = Type::number;
    if (op == Op::add && a == b && (a == Type::number || a == Type::string)) n.type = a;
    if (op == Op::range) n.type = Type::list;
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
    if (!made->ok()) return wrong(at, "bad pattern: " + made->error());
    return made;
  }

  Result<uint32_t> conditional(uint32_t condition) {
    uint32_t at = here().at;
    if (take("?:")) {
      TRY_OK(must_be_boolean(condition, "?:"));
      TRY(uint32_t default_value, expression(0));
      return add(
          {.op = Op::conditional, .at = at, .a = condition, .b = condition, .c = default_value});
    }
    if (!take("?")) return condition;
    TRY_OK(must_be_boolean(condition, "?:"));
    TRY(uint32_t yes, expression(0));
    TRY_OK(want(":"));
    TRY(uint32_t no, expression(0));
    return add({.op = Op::conditional, .at = at, .a = condition, .b = yes, .c = no});
  }

  Result<uint32_t> if_else() {
    uint32_t at = here().at;
    ++i_;
    TRY(uint32_t condition, expression(1));
    TRY_OK(must_be_boolean(condition, "if"));
    TRY_OK(want("{"));
    TRY(uint32_t yes, sequence());
    TRY_OK(want("}"));
    if (!is_word("else")) return bad("'if' needs an 'else'");
    ++i_;
    uint32_t no = kNone;
    if (is_word("if")) {
      TRY(no, expression(0));
    } else {
      TRY_OK(want("{"));
      TRY(no, sequence());
      TRY_OK(want("}"));
    }
    return add({.op = Op::conditional, .at = at, .a = condition, .b = yes, .c = no});
  }

  Result<uint32_t> unary() {
    uint32_t at = here().at;
    if (is("!") || is_word("not")) {
      ++i_;
      TRY(uint32_t a, expression(kUnaryNot));
      TRY_OK(must_be_boolean(a, "!"));
      return add({.op = Op::not_, .type = Type::boolean, .at = at, .a = a});
    }
    if (is("-") || is("+")) {
      Op op = is("-") ? Op::negate : Op::plus;
      ++i_;
      TRY(uint32_t a, expression(kUnarySign));
      Type t = node(a).type;
      if (t != Type::any && t != Type::number && t != Type::duration)
        return wrong(at, "a sign wants a number, got " + std::string(type_word(t)));
      return add({.op = op, .type = t, .at = at, .a = a});
    }
    TRY(uint32_t first, primary());
    return postfix(first);
  }

  Result<uint32_t> constant(Value v, Type type) {
    return add({.op = Op::constant, .type = type, .at = tokens_[i_ - 1].at, .constant = v});
  }

  Result<uint32_t> primary() {
    Token token = here();
    ++i_;
    switch (token.lex) {
      case Lex::integer: return constant(of(token.whole), Type::number);
      case Lex::real: return constant(of(token.number), Type::number);
      case Lex::string: return constant(of(literal(token.text)), Type::string);
      case Lex::pointer:
        if (!closures_)
          return wrong(
              token.at,
              "'#' alone stands for the element inside a closure such as filter(list, # > 1)");
        return add({.op = Op::pointer, .at = token.at});
      case Lex::accumulator:
        if (closures_) return add({.op = Op::accumulator, .at = token.at});
        return variable("acc", token.at);
      case Lex::name: return named(token);
      case Lex::symbol: return symbol(token);
      case Lex::end: break;
    }
    return wrong(token.at, "the expression ends where a value is expected");
  }

  Result<uint32_t> symbol(const Token& token) {
    if (token.text == "(" || token.text == "${") {
      TRY(uint32_t inner, sequence());
      TRY_OK(want(token.text == "(" ? ")" : "}"));
      return inner;
    }
    if (token.text == "[") return list(token.at);
    if (token.text == "{") return map(token.at);
    if (token.text == "." && closures_ && here().lex == Lex::name) {
      TRY(uint32_t self, add({.op = Op::pointer, .at = token.at}));
      --i_;
      return self;
    }
    return wrong(token.at, "unexpected '" + token.text + "'");
  }

  Result<uint32_t> list(uint32_t at) {
    Node n{.op = Op::list, .type = Type::list, .at = at};
    while (!take("]")) {
      TRY(uint32_t item, expression(0));
      n.items.push_back(item);
      if (!is("]")) TRY_OK(want(","));
    }
    return add(std::move(n));
  }

  Result<uint32_t> map(uint32_t at) {
    Node n{.op = Op::map, .type = Type::map, .at = at};
    while (!take("}")) {
      Token key = here();
      ++i_;
      uint32_t name = kNone;
      if (key.lex == Lex::string || key.lex == Lex::name || key.lex == Lex::integer) {
        TRY(name,
            constant(of(literal(key.lex == Lex::integer ? std::to_string(key.whole) : key.text)),
                     Type::string));
      } else if (key.lex == Lex::symbol && key.text == "(") {
        TRY(name, expression(0));
        TRY_OK(want(")"));
      } else {
        return wrong(key.at, "a map wants keys such as \"k\": or k:");
      }
      TRY_OK(want(":"));
      TRY(uint32_t value, expression(0));
      n.items.push_back(name), n.items.push_back(value);
      if (!is("}")) TRY_OK(want(","));
    }
    return add(std::move(n));
  }

  Result<uint32_t> named(const Token& token) {
    if (token.text == "true" || token.text == "false")
      return constant(of(token.text == "true"), Type::boolean);
    if (token.text == "nil") return constant({}, Type::nil);
    if (is("(")) return call(token, kNone);
    return variable(token.text, token.at);
  }

  Result<uint32_t> variable(const std::string& name, uint32_t at) {
    auto it = std::find(code_.variables.begin(), code_.variables.end(), name);
    uint32_t slot = static_cast<uint32_t>(it - code_.variables.begin());
    if (it == code_.variables.end()) code_.variables.push_back(name);
    return add({.op = Op::variable, .at = at, .slot = slot});
  }

  Result<uint32_t> pipe(uint32_t left) {
    ++i_;
    Token token = here();
    if (token.lex != Lex::name || ahead().text != "(")
      return bad("'|' wants a function call after it");
    ++i_;
    TRY(uint32_t made, call(token, left));
    return postfix(made);
  }

  Result<uint32_t> closure() {
    ++closures_;
    bool braces = take("{");
    Result<uint32_t> body = braces ? sequence() : expression(0);
    --closures_;
    if (body && braces) TRY_OK(want("}"));
    return body;
  }

  // `first` is the piped value, or kNone.
  Result<uint32_t> call(const Token& token, uint32_t first) {
    const Function* f = find_function(token.text);
    if (!f) return wrong(token.at, "unknown function '" + token.text + "'");
    Node n{.op = Op::call, .type = f->result, .at = token.at, .function = f};
    if (first != kNone) n.items.push_back(first);
    TRY_OK(want("("));
    size_t places = first != kNone;
    while (!take(")")) {
      if (places == 1 && f->closure != Closure::none) {
        TRY(n.c, closure());
        if (node(n.c).type == Type::nil)
          return wrong(token.at, "the closure of " + token.text + " gives nothing but nil");
        bool test = f->closure == Closure::test || f->closure == Closure::optional_test;
        if (test) TRY_OK(must_be_boolean(n.c, "the closure of " + token.text));
      } else {
        TRY(uint32_t argument, expression(0));
        n.items.push_back(argument);
      }
      ++places;
      if (!is(")")) TRY_OK(want(","));
    }
    bool fits = n.items.size() >= f->least && n.items.size() <= f->max &&
                (n.c != kNone || (f->closure != Closure::wanted && f->closure != Closure::test));
    if (!fits)
      return wrong(token.at,
                   token.text + "() does not take " + std::to_string(places) + " arguments");
    if (f->count && f->count < n.items.size() && is_fraction(n.items[f->count]))
      return wrong(token.at, token.text + "() wants an int as its count");
    Type given = n.items.empty() ? Type::any : node(n.items[0]).type;
    if (f->takes && given != Type::any && !f->takes(given))
      return wrong(token.at, token.text + "() does not work on a " + std::string(type_word(given)));
    return add(std::move(n));
  }

  bool in_chain(uint32_t i) { return node(i).guarded || node(i).chained; }

  Result<uint32_t> postfix(uint32_t self) {
    bool guarded = false;
    while (true) {
      uint32_t at = here().at;
      if (is(".") || is("?.")) {
        guarded = is("?.");
        if (guarded && node(self).type == Type::nil)
          return bad("'?.' wants a variable before it, got nil");
        ++i_;
        if (is("[") && guarded) continue;
        if (here().lex != Lex::name) return bad("expected a field name before " + shown());
        std::string_view name = literal(here().text);
        ++i_;
        bool own = std::exchange(guarded, false);
        TRY(self, is("(") ? method_call(self, name, at, own)
                          : add({.op = Op::member,
                                 .guarded = own,
                                 .chained = in_chain(self),
                                 .at = at,
                                 .a = self,
                                 .name = name}));
      } else if (take("[")) {
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
    ++i_;
    while (!take(")")) {
      TRY(uint32_t argument, expression(0));
      n.items.push_back(argument);
      if (!is(")")) TRY_OK(want(","));
    }
    return add(std::move(n));
  }

  Result<uint32_t> subscript(uint32_t self, uint32_t at, bool guarded) {
    uint32_t from = kNone, to = kNone;
    if (!is(":")) {
      TRY(from, expression(0));
      if (is("]") && node(self).type == Type::string)
        return wrong(at, "a string is sliced, [0:1], not indexed");
      if (is("]") && node(self).type == Type::list && is_fraction(from))
        return wrong(at, "a list wants an int as its index");
      if (take("]"))
        return add({.op = Op::index, .guarded = guarded, .at = at, .a = self, .b = from});
    }
    TRY_OK(want(":"));
    if (!is("]")) {
      TRY(to, expression(0));
    }
    TRY_OK(want("]"));
    Type type = node(self).type == Type::string || node(self).type == Type::list ? node(self).type
                                                                                 : Type::any;
    return add({.op = Op::slice, .type = type, .at = at, .a = self, .b = from, .c = to});
  }

  std::vector<Token> tokens_;
  size_t i_ = 0;
  size_t level_ = 0;
  size_t closures_ = 0;
  Compiled code_;
};

}  // namespace

std::string_view type_word(Type type) {
  constexpr std::string_view words[] = {"value", "nil", "boolean", "number",   "string",
                                        "list",  "map", "time",    "duration", "time zone"};
  return words[static_cast<size_t>(type)];
}

std::string_view symbol_of(Op op) {
  for (const Operator& o : kOperators)
    if (o.op == op) return o.symbol;
  return "?";
}

std::unexpected<Error> wrong(size_t at, std::string what) {
  return fail(Code::invalid, "BAD_EXPRESSION", std::move(what) + " at " + position(at));
}

Result<Compiled> compile(std::string_view text) {
  if (text.size() > kMax)
    return fail(Code::invalid, "BAD_EXPRESSION", "longer than " + std::to_string(kMax) + " bytes");
  TRY(std::vector<Token> list, tokens(text));
  return Parser(std::move(list)).run();
}

}  // namespace pawl::expr
