#pragma once
// A condition tests one entity. It is compiled once and evaluated many times, by workflow criteria
// and by search. It reads the stored JSON text directly and does not know the model.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "condition/operators.h"
#include "condition/path.h"

namespace pawl::condition {

// Number of groups that may be nested in each other. Deeper conditions are refused.
inline constexpr size_t kNesting = 50;
// Number of conditions in one request, groups included. Larger requests are refused.
inline constexpr size_t kMaxConditions = 1'000;
// Number of patterns (LIKE, MATCHES_PATTERN) in one condition. Compiling one may take milliseconds.
// More are refused.
inline constexpr size_t kMaxPatterns = 500;

// The entity that a condition is evaluated for.
struct Subject {
  std::string_view data;  // as json::print wrote it
  std::string_view state;
  Time created = 0;
  std::string_view transition;  // the transition of the latest save
};

// A condition that a compute member decides. It must be the whole criterion.
struct Function {
  std::string name;
  std::string tags;
  bool attach_entity = true;
  int64_t timeout_ms = 0;  // 0: the server's default
  std::string retry_policy;
  std::string context;
};

enum class Lifecycle : uint8_t { state, creation_date, previous_transition };

struct Node {
  enum Kind : uint8_t { simple, lifecycle, all, any, array, function };
  Kind kind = all;
  Path path{""};
  Lifecycle field = Lifecycle::state;
  const Operator* op = nullptr;
  Operand operand;
  json::Value value;  // simple: the value in the text, for the check against the model
  // array: the operand for each position, and whether that position is tested
  std::vector<std::pair<bool, Operand>> values;
  std::vector<Node> conditions;        // all, any
  Function call;                       // function
  std::optional<Error> bad_operand{};  // simple, lifecycle: why the operator cannot take its value
};

class Condition {
 public:
  // Errors: BAD_REQUEST (`invalid`), which names the operator, field or expression that is wrong.
  static Result<Condition> compile(const json::Value& text);
  // The same without check_operands(): a search checks the values against the model first, and the
  // error of that check comes first. The condition must not be tested before check_operands().
  static Result<Condition> compile_for_search(const json::Value& text);
  // Fails when a value is not one that its operator takes.
  Result<void> check_operands() const;
  // Always false for a function, which only a compute member can evaluate.
  bool matches(const Subject& subject) const;
  // The function when the condition is one, otherwise null.
  const Function* function() const { return root_.kind == Node::function ? &root_.call : nullptr; }
  const Node& root() const { return root_; }
  // Refuses a condition with more than kMaxConditions. For requests: a stored workflow may have
  // more.
  Result<void> check_size() const;
  // The work of testing this subject, in bytes that are read: each condition reads the document.
  uint64_t work(const Subject& subject) const { return (subject.data.size() + 64) * cost_; }

 private:
  Node root_;
  size_t size_ = 0;  // conditions, groups included
  size_t cost_ = 0;  // as size_, but patterns count by their length
};

}  // namespace pawl::condition
