#pragma once
// An expression of a process step: compiled once, run as often as wanted, from any thread. A text
// that does not compile is kept with its error, because the format refuses it only when the step
// runs.

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

  // Errors name the expression, the position in it and the variable at fault.
  // `work`, when given, grows by the bytes of what the evaluation made and looked at; a comparison
  // costs nothing.
  Result<json::Value> evaluate(const json::Object& variables, Time now,
                               size_t* work = nullptr) const;
  // As evaluate, and the result must be a boolean: the message says "not bool" otherwise.
  Result<bool> test(const json::Object& variables, Time now, size_t* work = nullptr) const;

  const std::string& text() const { return text_; }
  // Why it does not compile; null when it does.
  const Error* problem() const { return problem_ ? problem_.get() : nullptr; }
  std::span<const std::string> variables() const;

 private:
  std::string text_;
  std::shared_ptr<const Compiled> code_;  // shared with copies; never changed
  std::shared_ptr<const Error> problem_;  // the same
};

}  // namespace pawl::expr
