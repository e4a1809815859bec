// The "set" of an action changes fields in the same write as the phase: {"note": "landed",
// "retries": {"op": "increment"}, "drone_id": "$message.drone", "owner": null}. Null sets the zero
// value.

#include "faces/lifecycle/rule/rules.h"

#include <fmt/format.h>

#include <cmath>

#include "json/text.h"

namespace pawl::lifecycle {

namespace {

// increment and decrement, always by one.
Result<value> step_by(const dynamic_type::field_def& f, value v, bool up) {
  const kind_row& row = row_of(f.k);
  auto over = [&] {
    return refuse(
        errc::type_mismatch,
        fmt::format("field '{}' is at the end of {} and cannot be stepped", f.name, row.name));
  };
  if (row.is_signed) {
    int64_t n = std::get<int64_t>(v.v);
    if (up ? n >= 0 && static_cast<uint64_t>(n) >= row.max : n <= row.min) return over();
    v.v = up ? n + 1 : n - 1;
    return v;
  }
  if (row.is_unsigned) {
    uint64_t n = std::get<uint64_t>(v.v);
    if (up && n >= row.max) return over();
    // A decrement stops at 0, as in the original. An increment at the top is refused; there it
    // wrapped.
    v.v = up ? n + 1 : n == 0 ? 0 : n - 1;
    return v;
  }
  if (f.k != kind::real)
    return refuse(errc::type_mismatch,
                  fmt::format("field '{}' is a {}: only numbers can be stepped", f.name, row.name));
  v.v = std::get<double>(v.v) + (up ? 1.0 : -1.0);
  return v;
}

// A text that came from a variable may become a number or a boolean: rules have texts only.
Result<value> coerce_resolved(const dynamic_type::field_def& f, const js::Value& given,
                              const js::Value& resolved) {
  if (f.k == kind::string && given.is_string() && !resolved.is_string())
    return value(js::print(resolved));
  bool number_text = given.is_string() && resolved.is_string() && f.k != kind::string &&
                     f.k != kind::json_value && given != resolved;
  if (number_text) return coerce_text(f.name, f.k, resolved.string());
  return coerce(f.name, f.k, resolved);
}

}  // namespace

Result<value> set_value(const dynamic_type::field_def& f, const js::Value& given,
                        std::string_view bytes, Variables& variables) {
  std::string what = "set of '" + f.name + "'";
  const js::Value* op = given.find("op");
  if (!op || !op->is_string()) {
    if (given.is_object() && f.k != kind::json_value)
      return bad_rule(what + ": an object needs an \"op\": set, increment or decrement");
    TRY(js::Value done, resolved_value(what, given, variables));
    return coerce_resolved(f, given, done);
  }
  if (op->string() == "set") {
    const js::Value* v = given.find("value");
    js::Value literal = v ? *v : js::Value();
    TRY(js::Value done, resolved_value(what, literal, variables));
    return coerce_resolved(f, literal, done);
  }
  if (op->string() != "increment" && op->string() != "decrement")
    return bad_rule(
        fmt::format("{}: unknown op '{}'; known: set, increment, decrement", what, op->string()));
  auto now = read_field(bytes, f);
  if (!now)
    return refuse(errc::corrupt_value,
                  fmt::format("field '{}' is not stored as a {}", f.name, row_of(f.k).name));
  return step_by(f, std::move(*now), op->string() == "increment");
}

Result<FieldValues> apply_set(const js::Value& set, const WorkflowType& type,
                              std::string_view bytes, Variables& variables) {
  FieldValues out;
  if (set.is_null()) return out;
  if (!set.is_object()) return bad_rule("\"set\" must be an object of fields");
  // All names are checked before any value is resolved.
  for (const auto& [field_name, given] : set.object()) {
    TRY_OK(check_rule_writable(type, field_name));
  }
  for (const auto& [field_name, given] : set.object()) {
    const auto& f = *type.def.find(field_name);
    TRY(value v, set_value(f, given, bytes, variables));
    if (f.k == kind::real && !std::isfinite(std::get<double>(v.v)))
      return refuse(errc::type_mismatch,
                    fmt::format("field '{}' would not be a finite number", f.name));
    out.emplace_back(field_name, std::move(v));
  }
  return out;
}

}  // namespace pawl::lifecycle
