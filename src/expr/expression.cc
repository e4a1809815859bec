#include "expr/expression.h"

#include "expr/code.h"

namespace pawl::expr {

namespace {

// What making or looking at one value costs, beside the bytes of a result.
constexpr size_t kValueBytes = 32;

Error named(Error error, const std::string& text) {
  constexpr size_t shown = 200;
  error.message = "expression \"" + (text.size() > shown ? text.substr(0, shown) + "..." : text) +
                  "\": " + error.message;
  return error;
}
}  // namespace

Expression::Expression(std::string_view text) : text_(text) {
  Result<Compiled> code = compile(text_);
  if (code)
    code_ = std::make_shared<const Compiled>(std::move(*code));
  else
    problem_ = std::make_shared<const Error>(named(std::move(code.error()), text_));
}

std::span<const std::string> Expression::variables() const {
  return code_ ? std::span<const std::string>(code_->variables) : std::span<const std::string>();
}

Result<json::Value> Expression::evaluate(const json::Object& variables, Time now,
                                         size_t* work) const {
  if (!code_)
    return fail(problem_ ? *problem_ : Error{Code::internal, "BAD_EXPRESSION", "empty expression"});
  Evaluation run(*code_, variables, now);
  Result<Value> value = run.run();
  if (work) *work += run.arena.spent() * kValueBytes;
  if (!value) return fail(named(std::move(value.error()), text_));
  Result<json::Value> out = to_json(*value);
  if (!out) return fail(named(std::move(out.error()), text_));
  return out;
}

Result<bool> Expression::test(const json::Object& variables, Time now, size_t* work) const {
  if (!code_)
    return fail(problem_ ? *problem_ : Error{Code::internal, "BAD_EXPRESSION", "empty expression"});
  Evaluation run(*code_, variables, now);
  Result<Value> value = run.run();
  if (work) *work += run.arena.spent() * kValueBytes;
  if (!value) return fail(named(std::move(value.error()), text_));
  if (value->kind != Kind::boolean)
    return fail(named({Code::invalid, "NOT_BOOLEAN",
                       "the result is not bool but " + std::string(kind_name(value->kind)) +
                           "; compare it with something"},
                      text_));
  return value->truth();
}

}  // namespace pawl::expr
