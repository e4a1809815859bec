#pragma once
// A definition is an uploaded workflow in the form that steps run from: references are indexes,
// expressions are compiled, durations are parsed. It keeps its document, without empty optional
// members.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "expr/expression.h"
#include "faces/processes/definition/limit.h"
#include "json/value.h"
#include "schema/schema.h"

namespace pawl::processes {

// The order is that of `kTypes` in steps.cc, and the numbers are stored in notes: append only.
enum class Kind : uint8_t {
  service_task,
  user_task,
  decision,
  decision_table,
  transformation,
  wait,
  parallel_gateway,
  join_gateway,
  end,
  call
};
inline constexpr size_t kKinds = 10;

inline constexpr uint32_t kNoStep = ~0u;

// One member of conditionalNextSteps. The branches keep the order of the document.
struct Branch {
  expr::Expression when;
  std::string target_id;
  uint32_t target = kNoStep;
};

// The value that a TRANSFORMATION or a rule sets for one variable.
struct Output {
  std::string name;
  std::optional<expr::Expression> expression;
  bool is_now = false;  // `now()` alone: the current second
  json::Value literal;
};

enum class HitPolicy : uint8_t { unique, first, any, rule_order, collect, sum, count, max, min };

// One row of a decision table.
struct Rule {
  struct Column {
    std::string name;
    expr::Expression when;
  };
  std::vector<Column> when;  // without blank cells
  std::vector<Output> outputs;
};

// A boundary event. `target_id` is as written, `target` its index once validate() has run; so with
// all pairs of an id and an index below.
struct Timer {
  std::string type, duration_text, target_id;
  Duration duration;
  bool interrupting = false;
  uint32_t target = kNoStep;
};

// How long a failed job waits before it is offered again.
struct Backoff {
  Duration initial;
  // An integer, so that the wait is the same on every machine.
  int64_t multiplier_thousandths = 1000;
  std::optional<Duration> max;
};

// What a CALL starts: an instance of another definition.
struct Call {
  std::string definition_id;
  uint32_t version = 0;  // 0: the active one
  bool waits = true;     // for the end of the child
  // Over the variables of the parent; without them the child gets all of them.
  std::optional<std::vector<Output>> variables;
  // Over the variables of the child; without them the parent gets all of them.
  std::optional<std::vector<Output>> outputs;
  std::optional<expr::Expression> business_key;  // over the variables of the parent
};

// Which instances of a definition may have the same business key.
struct KeyPolicy {
  enum class Unique : uint8_t {
    running,  // one instance that has not ended
    always,   // one instance, also after it has ended
  };
  enum class Conflict : uint8_t {
    refuse,           // the start is refused
    return_existing,  // the start answers with the instance that has the key
  };
  Unique unique = Unique::running;
  Conflict conflict = Conflict::refuse;
};

// How long an instance stays after its end, by its last status. A status without a duration: for
// ever, or as long as the tenant's default says.
struct Retention {
  std::optional<Duration> completed, failed, cancelled;
};

// An expression over the variables of an instance, which callers evaluate by its name.
struct Query {
  std::string name;
  expr::Expression expression;
};

struct Step {
  std::string id, name, type;
  Kind kind = Kind::end;
  std::string next_id;
  uint32_t next = kNoStep;
  std::string job_type, delegate_class;
  uint32_t retries = 0;
  bool names_retries = false;  // retryCount is given and not 0
  std::optional<Backoff> backoff;
  // SERVICE_TASK: how long a worker may take for one attempt. The text is as written.
  std::optional<Duration> attempt_timeout;
  std::string attempt_timeout_text;
  std::optional<Limit> limit;  // SERVICE_TASK: its own or else that of the definition
  std::vector<Branch> branches;
  std::vector<Output> outputs;
  std::string hit_policy_text;
  HitPolicy hit_policy = HitPolicy::unique;
  std::vector<Rule> rules;
  std::vector<std::string> parallel_ids;
  std::vector<uint32_t> parallel;
  std::string join_id;
  uint32_t join = kNoStep;
  std::vector<Timer> timers;
  // SERVICE_TASK, USER_TASK, WAIT: what the variables of a completion must match.
  std::optional<schema::Schema> outputs_schema;
  // WAIT: the name of the signals that continue it, empty for none. They must have the value of the
  // expression, or else the business key of the instance.
  std::string signal;
  std::optional<expr::Expression> correlation_key;
  std::optional<Call> call;  // CALL
  // What undoes the step after it was done: a SERVICE_TASK with an id of its own, which no step
  // leads to, and the variables of its job. Shared by the copies of a definition; never changed.
  std::shared_ptr<const Step> compensation;
  std::optional<std::vector<Output>> compensation_variables;
  std::optional<bool> chains;  // END: overrides the definition's autoStartNextWorkflow
};

struct Definition {
  std::string id, name, description;
  uint32_t version = 0;
  Time uploaded = 0;
  bool chains = false;
  std::string next_workflow;
  // Evaluated over the variables when an instance starts.
  std::optional<expr::Expression> priority, fairness_key;
  // The schema that the variables of a start must match.
  std::optional<schema::Schema> input_schema;
  std::optional<KeyPolicy> key_policy;
  Retention retention;
  bool compensates_failures = false;  // onFailure: a failure undoes the steps that were done
  std::vector<Query> queries;         // in the order of the document
  std::vector<Step> steps;
  // The first of two steps with one id; check_step() reports the second.
  std::unordered_map<std::string, uint32_t> by_id;
  // As tidy_document() leaves it. `version` and `uploaded` are set when it is stored.
  json::Value document;

  uint32_t find(std::string_view step_id) const;  // kNoStep when there is none
};

using Problems = std::vector<std::string>;

// Reads a document. `problems` gets what cannot be read: unknown members and wrong JSON types.
// `broken` gets what can be read but is refused: members that were removed from the format, and
// malformed values. References stay unresolved.
Definition read_definition(const json::Value& document, Problems& problems, Problems& broken);
// Checks every rule of the format and resolves the references. Needs a document without `problems`.
void validate(Definition& definition, Problems& problems);
// Warnings: parts of the definition that are valid but probably a mistake.
std::vector<std::string> warnings(const Definition& definition);

// Reads and validates a document. The error lists every problem.
Result<Definition> make_definition(const json::Value& document);

// Equal for equal content. The order of members does not matter, except between branches, nor does
// the spelling of numbers.
std::string content_digest(const json::Value& document);
// The document without its empty optional members and without `version`.
json::Value tidy_document(const json::Value& document);

// The cell of one version: its number, the time of its upload, and its document.
Bytes encode_version(uint32_t version, Time uploaded, const json::Value& document);
// Error: corrupt BAD_DEFINITION_CELL.
Result<Definition> decode_version(BytesView bytes);
// The document with `version` as its second member.
std::string document_text(const Definition& definition);

}  // namespace pawl::processes
