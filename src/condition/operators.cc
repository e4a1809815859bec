#include "condition/operators.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/letters.h"
#include "json/text.h"

namespace pawl::condition {

namespace {

// Size of a pattern. A longer one is refused.
constexpr size_t kPatternBytes = 4096;
// Memory of a compiled pattern. A pattern that needs more is refused: a short text such as
// (a{1000}){1000} may stand for a very large one.
constexpr int64_t kPatternMemory = 2 * 1024 * 1024;

// The text of a field. It is copied only when it contains escapes.
struct Text {
  std::string buffer;
  std::string_view view;
  explicit Text(const Field& a) : view(text_of(a, buffer)) {}
};

bool equals(const Field& a, const Operand& v) {
  if (a.is_null()) return v.null;
  if (v.null) return false;
  double x;
  if (a.kind == Field::number && v.numeric && read_number(a.text, x)) return x == v.number;
  return Text(a).view == v.text;
}
bool not_equal(const Field& a, const Operand& v) { return !equals(a, v); }
bool is_null(const Field& a, const Operand&) { return a.is_null(); }
bool not_null(const Field& a, const Operand&) { return !a.is_null(); }

// Returns <0, 0 or >0. The field must not be null.
int order(const Field& a, const Operand& v) {
  double x;
  if (a.kind == Field::number && v.numeric && read_number(a.text, x))
    return x < v.number ? -1 : x > v.number;
  return Text(a).view.compare(v.text);
}
bool greater(const Field& a, const Operand& v) { return !a.is_null() && order(a, v) > 0; }
bool less(const Field& a, const Operand& v) { return !a.is_null() && order(a, v) < 0; }
bool greater_or_equal(const Field& a, const Operand& v) { return !a.is_null() && order(a, v) >= 0; }
bool less_or_equal(const Field& a, const Operand& v) { return !a.is_null() && order(a, v) <= 0; }

// A boolean counts as 0 or 1, and text that is not a number as 0.
bool between(const Field& a, const Operand& v) {
  if (a.is_null()) return false;
  double x = 0;
  if (a.kind == Field::boolean)
    x = a.text == "true";
  else if (!read_number(Text(a).view, x))
    x = 0;
  return v.low <= x && x <= v.high;
}

// Takes time linear in both texts, which std::string_view::find does not.
bool has_part(std::string_view text, std::string_view part) {
  return part.empty() || memmem(text.data(), text.size(), part.data(), part.size());
}

bool contains(const Field& a, const Operand& v) {
  return !a.is_null() && has_part(Text(a).view, v.text);
}
bool starts_with(const Field& a, const Operand& v) {
  return !a.is_null() && Text(a).view.starts_with(v.text);
}
bool ends_with(const Field& a, const Operand& v) {
  return !a.is_null() && Text(a).view.ends_with(v.text);
}
bool not_contains(const Field& a, const Operand& v) { return !contains(a, v); }
bool not_starts_with(const Field& a, const Operand& v) { return !starts_with(a, v); }
bool not_ends_with(const Field& a, const Operand& v) { return !ends_with(a, v); }

bool iequals(const Field& a, const Operand& v) {
  if (a.is_null()) return v.null;
  if (v.null) return false;
  return fold_case(Text(a).view) == v.folded;
}
bool inot_equal(const Field& a, const Operand& v) { return !iequals(a, v); }
bool icontains(const Field& a, const Operand& v) {
  return !a.is_null() && has_part(lower_case(Text(a).view), v.lowered);
}
bool istarts_with(const Field& a, const Operand& v) {
  return !a.is_null() && lower_case(Text(a).view).starts_with(v.lowered);
}
bool iends_with(const Field& a, const Operand& v) {
  return !a.is_null() && lower_case(Text(a).view).ends_with(v.lowered);
}
bool inot_contains(const Field& a, const Operand& v) { return !icontains(a, v); }
bool inot_starts_with(const Field& a, const Operand& v) { return !istarts_with(a, v); }
bool inot_ends_with(const Field& a, const Operand& v) { return !iends_with(a, v); }

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }
bool like(const Field& a, const Operand& v) {
  return !a.is_null() && RE2::FullMatch(piece(Text(a).view), *v.re);
}
bool matches_pattern(const Field& a, const Operand& v) {
  return !a.is_null() && RE2::PartialMatch(piece(Text(a).view), *v.re);
}

constexpr Operator kOperators[] = {
    {"EQUALS", OperandKind::value, IndexUse::equal, equals, "the same number, or the same text"},
    {"NOT_EQUAL", OperandKind::value, IndexUse::none, not_equal,
     "not EQUALS; true for a missing field unless the value is null"},
    {"IS_NULL", OperandKind::nothing, IndexUse::none, is_null, "null or missing"},
    {"NOT_NULL", OperandKind::nothing, IndexUse::none, not_null, "present and not null"},
    {"GREATER_THAN", OperandKind::value, IndexUse::above, greater,
     "as numbers, otherwise by the bytes of the text"},
    {"LESS_THAN", OperandKind::value, IndexUse::below, less,
     "as numbers, otherwise by the bytes of the text"},
    {"GREATER_OR_EQUAL", OperandKind::value, IndexUse::above, greater_or_equal,
     "as numbers, otherwise by the bytes of the text"},
    {"LESS_OR_EQUAL", OperandKind::value, IndexUse::below, less_or_equal,
     "as numbers, otherwise by the bytes of the text"},
    {"BETWEEN", OperandKind::range, IndexUse::between, between,
     "a number from the first to the second, both included"},
    {"BETWEEN_INCLUSIVE", OperandKind::range, IndexUse::between, between, "the same as BETWEEN"},
    {"CONTAINS", OperandKind::value, IndexUse::none, contains, "the text contains the value"},
    {"NOT_CONTAINS", OperandKind::value, IndexUse::none, not_contains,
     "not CONTAINS; true for a missing field"},
    {"STARTS_WITH", OperandKind::value, IndexUse::prefix, starts_with,
     "the text begins with the value"},
    {"NOT_STARTS_WITH", OperandKind::value, IndexUse::none, not_starts_with,
     "not STARTS_WITH; true for a missing field"},
    {"ENDS_WITH", OperandKind::value, IndexUse::none, ends_with, "the text ends with the value"},
    {"NOT_ENDS_WITH", OperandKind::value, IndexUse::none, not_ends_with,
     "not ENDS_WITH; true for a missing field"},
    {"LIKE", OperandKind::like, IndexUse::none, like, "% matches any text, _ one character"},
    {"MATCHES_PATTERN", OperandKind::pattern, IndexUse::none, matches_pattern,
     "an RE2 expression found anywhere in the text"},
    {"IEQUALS", OperandKind::value, IndexUse::none, iequals, "the same text, ignoring case"},
    {"INOT_EQUAL", OperandKind::value, IndexUse::none, inot_equal, "not IEQUALS"},
    {"ICONTAINS", OperandKind::value, IndexUse::none, icontains, "CONTAINS, ignoring case"},
    {"INOT_CONTAINS", OperandKind::value, IndexUse::none, inot_contains, "not ICONTAINS"},
    {"ISTARTS_WITH", OperandKind::value, IndexUse::none, istarts_with,
     "STARTS_WITH, ignoring case"},
    {"INOT_STARTS_WITH", OperandKind::value, IndexUse::none, inot_starts_with, "not ISTARTS_WITH"},
    {"IENDS_WITH", OperandKind::value, IndexUse::none, iends_with, "ENDS_WITH, ignoring case"},
    {"INOT_ENDS_WITH", OperandKind::value, IndexUse::none, inot_ends_with, "not IENDS_WITH"},
};

Result<std::shared_ptr<const RE2>> regex(const std::string& pattern, std::string_view shown) {
  if (pattern.size() > kPatternBytes)
    return fail(Code::invalid, "BAD_REQUEST",
                fmt::format("the pattern has {} bytes; at most {} are allowed", pattern.size(),
                            kPatternBytes));
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemory);
  auto re = std::make_shared<const RE2>(pattern, options);
  if (!re->ok())
    return fail(Code::invalid, "BAD_REQUEST",
                fmt::format("the regular expression '{}' is not valid: {}", shown, re->error()));
  return re;
}

// The regular expression for a LIKE pattern, in which % matches any text and _ one character.
std::string like_pattern(std::string_view like) {
  std::string out;
  size_t from = 0;
  for (size_t i = 0; i <= like.size(); ++i) {
    if (i < like.size() && like[i] != '%' && like[i] != '_') continue;
    out += RE2::QuoteMeta(piece(like.substr(from, i - from)));
    if (i < like.size()) out += like[i] == '%' ? ".*" : ".";
    from = i + 1;
  }
  return out;
}

// Reads the bounds of BETWEEN: [1, 10] or "1,10".
Result<void> prepare_range(Operand& v, const json::Value* value) {
  std::vector<std::string> ends;
  if (value && value->is_array()) {
    for (const json::Value& e : value->array())
      ends.push_back(e.is_number() ? e.number_text() : e.is_string() ? e.string() : "?");
  } else if (value && value->is_string()) {
    const std::string& s = value->string();
    size_t comma = s.find(',');
    if (comma != s.npos) ends = {s.substr(0, comma), s.substr(comma + 1)};
  }
  auto trim = [](std::string s) {
    while (!s.empty() && s.front() == ' ')
      s.erase(0, 1);
    while (!s.empty() && s.back() == ' ')
      s.pop_back();
    return s;
  };
  if (ends.size() != 2 || !read_number(trim(ends[0]), v.low) || !read_number(trim(ends[1]), v.high))
    return fail(Code::invalid, "BAD_REQUEST",
                "BETWEEN needs two numbers: an array [low, high] or the text \"low,high\"");
  return {};
}

}  // namespace

bool read_number(std::string_view text, double& out) {
  if (text.empty()) return false;
  if (text[0] == '+') text.remove_prefix(1);
  auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (err == std::errc::result_out_of_range) {
    out = std::strtod(std::string(text).c_str(), nullptr);
    return true;
  }
  return err == std::errc() && end == text.data() + text.size() && std::isfinite(out);
}

std::string shortest(double number) {
  char buf[64];
  bool plain = number == 0 || (std::fabs(number) >= 1e-4 && std::fabs(number) < 1e21);
  auto end = std::to_chars(buf, buf + sizeof buf, number,
                           plain ? std::chars_format::fixed : std::chars_format::scientific)
                 .ptr;
  return {buf, end};
}

size_t program_size(const RE2& pattern) { return static_cast<size_t>(pattern.ProgramSize()); }

std::span<const Operator> operators() { return kOperators; }

const Operator* find_operator(std::string_view name) {
  for (const Operator& op : kOperators)
    if (op.name == name) return &op;
  return nullptr;
}

std::string operator_names() {
  std::string out;
  for (const Operator& op : kOperators) {
    if (!out.empty()) out += ", ";
    out += op.name;
  }
  return out;
}

Result<Operand> prepare(const Operator& op, const json::Value* value) {
  Operand v;
  if (op.operand_kind == OperandKind::nothing) return v;
  if (op.operand_kind == OperandKind::range) {
    TRY_OK(prepare_range(v, value));
    v.null = false;
    return v;
  }
  v.null = !value || value->is_null();
  // The contract compares null as this text with the text of a field.
  if (v.null) v.text = "<nil>";
  if (!v.null) {
    if (value->is_number()) {
      v.number = value->as_double();
      v.numeric = true;
      v.text = shortest(v.number);
    } else if (value->is_string()) {
      v.text = value->string();
      v.numeric = read_number(v.text, v.number);
    } else if (value->is_bool()) {
      v.text = value->boolean() ? "true" : "false";
    } else {
      v.text = json::print(*value);
    }
  }
  v.lowered = lower_case(v.text);
  v.folded = fold_case(v.text);
  if (op.operand_kind == OperandKind::pattern) {
    TRY(v.re, regex(v.text, v.text));
  } else if (op.operand_kind == OperandKind::like) {
    TRY(v.re, regex(like_pattern(v.text), v.text));
  }
  return v;
}

}  // namespace pawl::condition
