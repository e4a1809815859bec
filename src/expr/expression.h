#pragma once
// An expression of a process step. It is compiled once and can then be evaluated any number of
// times from any thread. A text that does not compile is kept with its error, because a definition
// with such a text is valid and fails only when the step runs.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "json/value.h"

namespace pawl::expr {

struct Compiled;

class Expression {
 public:
  Expression() = default;
  explicit Expression(std::string_view text);

  // Errors name the expression, the position in it and the variable that caused them.
  // `work`, when given, grows by the number of bytes that the evaluation created, and by an eighth
  // of the bytes that it read. An evaluation that reads too much fails with `exhausted`.
  Result<json::Value> evaluate(const json::Object& variables, Time now,
                               size_t* work = nullptr) const;
  // As evaluate(), but the result must be a boolean; otherwise the error says "not bool".
  Result<bool> test(const json::Object& variables, Time now, size_t* work = nullptr) const;

  const std::string& text() const { return text_; }
  // Why the text does not compile; null when it does.
  const Error* problem() const { return problem_ ? problem_.get() : nullptr; }
  std::span<const std::string> variables() const;

 private:
  std::string text_;
  // Both are shared by the copies of this expression, and never changed.
  std::shared_ptr<const Compiled> code_;
  std::shared_ptr<const Error> problem_;
};

}  // namespace pawl::expr
