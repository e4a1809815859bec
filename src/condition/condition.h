#pragma once
// A condition is a question about one entity, compiled once and asked many times: workflow criteria
// and search use the same one. It reads the stored JSON text; it knows no model.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "condition/operators.h"
#include "condition/path.h"

namespace pawl::condition {

// Groups around a leaf; deeper conditions are refused.
inline constexpr size_t kNesting = 50;

struct Subject {
  std::string_view data;  // compact JSON
  std::string_view state;
  Time created = 0;
  std::string_view transition;  // recorded for the latest save
};

// A call to a compute member that decides: only as the whole of a criterion.
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
  json::Value value;                             // simple: as it was given, for the model check
  std::vector<std::pair<bool, Operand>> values;  // array: asked?, then what
  std::vector<json::Value> given;                // array: as they were given
  std::vector<Node> conditions;
  Function call;
};

class Condition {
 public:
  // Errors are `invalid` BAD_REQUEST and name the operator, field or expression at fault.
  static Result<Condition> compile(const json::Value& text);
  // Functions are not asked here: see function().
  bool matches(const Subject& subject) const;
  // The member's call when the whole condition is one, else null.
  const Function* function() const { return root_.kind == Node::function ? &root_.call : nullptr; }
  const Node& root() const { return root_; }

 private:
  Node root_;
};

}  // namespace pawl::condition
