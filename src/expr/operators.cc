// Arithmetic and comparison. Whole numbers that fit 64 bits are added, subtracted and multiplied
// exactly; everything else is computed as IEEE double. Two int literals wrap around on overflow, as
// in the expression language that the contract names.

#include <cmath>

#include "expr/code.h"

namespace pawl::expr {

namespace {

bool is_whole(const Value& v) { return v.kind == Kind::integer || v.exact; }

// Returns false when the result does not fit 64 bits; `out` is then the wrapped result.
bool whole_result(Op op, int64_t a, int64_t b, int64_t& out) {
  switch (op) {
    case Op::add: return !__builtin_add_overflow(a, b, &out);
    case Op::subtract: return !__builtin_sub_overflow(a, b, &out);
    default: return !__builtin_mul_overflow(a, b, &out);
  }
}

// Addition, subtraction or multiplication of two numbers.
Value number_result(Op op, const Value& a, const Value& b) {
  if (is_whole(a) && is_whole(b)) {
    int64_t out = 0;
    bool fits = whole_result(op, a.whole, b.whole, out);
    if (a.kind == Kind::integer && b.kind == Kind::integer) return value_of(out);
    if (fits) return exact_real(out);
  }
  double x = a.as_double(), y = b.as_double();
  return value_of(op == Op::add ? x + y : op == Op::subtract ? x - y : x * y);
}

// Arithmetic of times and durations. Returns false when the operands do not fit the operator.
bool time_result(Op op, const Value& a, const Value& b, Value& out) {
  if (op == Op::multiply && (a.is_number() || b.is_number())) {
    const Value &length = a.is_number() ? b : a, &times = a.is_number() ? a : b;
    double nanos = static_cast<double>(length.whole) * times.as_double();
    if (length.kind != Kind::duration || !(std::fabs(nanos) < 9e18)) return false;
    out = duration_value(static_cast<int64_t>(nanos));
    return true;
  }
  if (op != Op::add && op != Op::subtract) return false;
  if (a.kind == Kind::time && b.kind == Kind::time && op == Op::subtract) {
    __int128 nanos = (static_cast<__int128>(a.whole) - b.whole) * kSecond + a.nanos - b.nanos;
    out = duration_value(static_cast<int64_t>(std::clamp<__int128>(nanos, INT64_MIN, INT64_MAX)));
    return true;
  }
  if (a.kind == Kind::duration && b.kind == Kind::duration) {
    int64_t sum = 0;
    if (!whole_result(op, a.whole, b.whole, sum)) return false;
    out = duration_value(sum);
    return true;
  }
  bool moved = (a.kind == Kind::time && b.kind == Kind::duration) ||
               (op == Op::add && a.kind == Kind::duration && b.kind == Kind::time);
  if (!moved) return false;
  const Value &time = a.kind == Kind::time ? a : b, &length = a.kind == Kind::time ? b : a;
  int64_t seconds = length.whole / kSecond, nanos = length.whole % kSecond;
  if (op == Op::subtract) {
    seconds = -seconds;
    nanos = -nanos;
  }
  nanos += time.nanos;
  if (nanos < 0) {
    nanos += kSecond;
    --seconds;
  }
  if (nanos >= kSecond) {
    nanos -= kSecond;
    ++seconds;
  }
  if (std::abs(time.whole + seconds) > kMaxSeconds) return false;
  out = value_of(ZonedTime{time.whole + seconds, static_cast<int32_t>(nanos), time.zone});
  return true;
}

// The list of whole numbers from `a` to `b`.
Result<Value> range(const Value& a, const Value& b, Arena& arena, size_t at) {
  constexpr __int128 max = 100'000;
  constexpr double fits = 9.2e18;
  if (!(std::fabs(a.as_double()) < fits && std::fabs(b.as_double()) < fits))
    return error_at(at, "the ends of a range must fit 64 bits");
  // Counted in integers, because adding 1 to a large double does not change it.
  auto end_of = [](const Value& v) {
    return is_whole(v) ? v.whole : static_cast<int64_t>(v.number);
  };
  int64_t from = end_of(a), to = end_of(b);
  if (static_cast<__int128>(to) - from >= max)
    return error_at(at, "the range has more than 100000 elements");
  List out;
  for (int64_t v = from; v <= to; ++v)
    out.push_back(value_of(v));
  return arena.keep(std::move(out));
}

}  // namespace

Result<Value> arithmetic(Op op, const Value& a, const Value& b, Arena& arena, size_t at) {
  auto refuse = [&](std::string_view what) {
    return error_at(at, std::string(symbol_of(op)) + " wants " + std::string(what) + ", got " +
                            std::string(kind_name(a.kind)) + " and " +
                            std::string(kind_name(b.kind)));
  };
  if (op == Op::add && a.kind == Kind::string && b.kind == Kind::string) {
    if (a.text.size() + b.text.size() > kMaxTextResult)
      return error_at(at, "the text is longer than 1 MiB");
    std::string out(a.text);
    return value_of(arena.keep(out += b.text));
  }
  if (!a.is_number() || !b.is_number()) {
    Value out;
    if (time_result(op, a, b, out)) return out;
    return refuse(op == Op::add ? "two numbers or two strings" : "two numbers");
  }
  switch (op) {
    case Op::divide:
      if (b.as_double() == 0) return error_at(at, "division by zero");
      return value_of(a.as_double() / b.as_double());
    case Op::modulo:
      if (a.kind != Kind::integer || b.kind != Kind::integer)
        return refuse("two ints (write int(x) for a variable)");
      if (b.whole == 0) return error_at(at, "division by zero");
      return value_of(b.whole == -1 ? int64_t{0} : a.whole % b.whole);
    case Op::power: return value_of(std::pow(a.as_double(), b.as_double()));
    case Op::range: return range(a, b, arena, at);
    default: return number_result(op, a, b);
  }
}

Result<Value> comparison(Op op, const Value& a, const Value& b, Arena& arena, size_t at) {
  int order = 0;
  if (a.is_number() && b.is_number())
    order = compare_numbers(a, b);
  else if (a.kind == Kind::string && b.kind == Kind::string) {
    arena.read(std::min(a.text.size(), b.text.size()));
    order = a.text.compare(b.text);
  } else if (a.kind == b.kind && (a.kind == Kind::time || a.kind == Kind::duration))
    order = compare_times(a, b);
  else
    return error_at(at, "cannot compare " + std::string(kind_name(a.kind)) + " " +
                            std::string(symbol_of(op)) + " " + std::string(kind_name(b.kind)));
  switch (op) {
    case Op::less: return value_of(order < 0);
    case Op::greater: return value_of(order > 0);
    case Op::less_equal: return value_of(order <= 0);
    default: return value_of(order >= 0);
  }
}

Result<bool> is_in(const Value& wanted, const Value& collection, Arena& arena, size_t at) {
  if (collection.kind == Kind::nil) return false;
  if (collection.kind == Kind::list) {
    for (size_t i = 0; i < size(collection) && !arena.full(); ++i) {
      arena.read(Arena::kElementBytes);
      if (equal(wanted, element(collection, i), arena)) return true;
    }
    return false;
  }
  if (collection.kind == Kind::map && (wanted.kind == Kind::string || wanted.kind == Kind::nil)) {
    Value ignored;
    arena.read(size(collection) * Arena::kElementBytes);
    return member(collection, wanted.text, ignored);  // nil has an empty text: the empty key
  }
  return error_at(at, "cannot look for a " + std::string(kind_name(wanted.kind)) + " in a " +
                          std::string(kind_name(collection.kind)) +
                          "; 'in' wants a list, or a map and a string");
}

}  // namespace pawl::expr
