#include "expr/expression.h"

#include "expr/code.h"

namespace pawl::expr {

namespace {

// Bytes that one created or visited value counts in `work`.
constexpr size_t kValueBytes = 32;

// The error with the expression in front of its message.
Error in_expression(Error error, const std::string& text) {
  constexpr size_t kShownBytes = 200;
  std::string shown = text.size() > kShownBytes ? text.substr(0, kShownBytes) + "..." : text;
  error.message = "expression \"" + shown + "\": " + error.message;
  return error;
}

}  // namespace

Expression::Expression(std::string_view text) : text_(text) {
  Result<Compiled> code = compile(text_);
  if (code)
    code_ = std::make_shared<const Compiled>(std::move(*code));
  else
    problem_ = std::make_shared<const Error>(in_expression(std::move(code.error()), text_));
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
  if (!value) return fail(in_expression(std::move(value.error()), text_));
  Result<json::Value> out = to_json(*value);
  if (!out) return fail(in_expression(std::move(out.error()), text_));
  return out;
}

Result<bool> Expression::test(const json::Object& variables, Time now, size_t* work) const {
  if (!code_)
    return fail(problem_ ? *problem_ : Error{Code::internal, "BAD_EXPRESSION", "empty expression"});
  Evaluation run(*code_, variables, now);
  Result<Value> value = run.run();
  if (work) *work += run.arena.spent() * kValueBytes;
  if (!value) return fail(in_expression(std::move(value.error()), text_));
  if (value->kind != Kind::boolean)
    return fail(in_expression({Code::invalid, "NOT_BOOLEAN",
                               "the result is not bool but " + std::string(kind_name(value->kind)) +
                                   "; compare it with something"},
                              text_));
  return value->is_true();
}

}  // namespace pawl::expr
