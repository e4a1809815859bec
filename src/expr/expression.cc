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

// Reading a byte costs about an eighth of making one.
constexpr size_t kReadPerMade = 8;

size_t work_of(const Arena& arena) {
  return arena.spent() * kValueBytes + arena.bytes_read() / kReadPerMade;
}

// An evaluation that read too much fails, whatever its result is: parts of it stop early then.
Result<void> check_read(const Arena& arena, const std::string& text) {
  if (!arena.exhausted()) return {};
  return fail(in_expression({Code::exhausted, "EXPRESSION_TOO_EXPENSIVE",
                             "the expression reads more than " + std::to_string(Arena::kMaxRead) +
                                 " bytes of its variables; search shorter texts or fewer elements"},
                            text));
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
  Result<json::Value> out = value && !run.arena.exhausted() ? to_json(*value, run.arena)
                                                            : Result<json::Value>(json::Value());
  if (work) *work += work_of(run.arena);
  TRY_OK(check_read(run.arena, text_));
  if (!value) return fail(in_expression(std::move(value.error()), text_));
  if (!out) return fail(in_expression(std::move(out.error()), text_));
  return out;
}

Result<bool> Expression::test(const json::Object& variables, Time now, size_t* work) const {
  if (!code_)
    return fail(problem_ ? *problem_ : Error{Code::internal, "BAD_EXPRESSION", "empty expression"});
  Evaluation run(*code_, variables, now);
  Result<Value> value = run.run();
  if (work) *work += work_of(run.arena);
  TRY_OK(check_read(run.arena, text_));
  if (!value) return fail(in_expression(std::move(value.error()), text_));
  if (value->kind != Kind::boolean)
    return fail(in_expression({Code::invalid, "NOT_BOOLEAN",
                               "the result is not bool but " + std::string(kind_name(value->kind)) +
                                   "; compare it with something"},
                              text_));
  return value->is_true();
}

}  // namespace pawl::expr
