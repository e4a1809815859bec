#pragma once
// The Machine takes a transaction through its stages: select a workflow, run the requested
// transition, follow the automated transitions (the cascade), save. When a compute member must be
// asked, the machine stops; it continues with the member's result. Between the two, only the
// Transaction is kept.

#include "faces/entities/flow/call.h"
#include "faces/entities/flow/options.h"
#include "faces/entities/flow/transaction.h"

namespace pawl::entities {

// A cascade of this many rounds is taken for an endless loop and refused.
inline constexpr int kMaxCascadeRounds = 100;
// Bytes of documents that the criteria of one run read, each document once for each condition.
inline constexpr uint64_t kMaxCriteriaWork = uint64_t{1} << 30;

class Machine {
 public:
  Machine(Turn& turn, Transaction& transaction, ProgramOptions options)
      : turn_(turn),
        transaction_(transaction),
        progress_(transaction.progress),
        options_(options) {}

  // Starts the transaction. Returns the caller's JSON answer, or empty bytes while a call is open.
  Result<Bytes> run();
  // Continues with the result of the open call.
  Result<Bytes> resume(const CallResult& result);
  // Runs the second transaction of a COMMIT_BEFORE_DISPATCH processor.
  Result<Bytes> run_second_transaction(const CallResult& result, const std::string& request);

 private:
  enum class Step : uint8_t { next, wait, done };
  enum class Match : uint8_t { yes, no, wait };

  // Runs steps until a call is open or the command is done.
  Result<Bytes> drive();
  Result<Step> step();
  // Ends a turn that must not fail: the effect is settled, the audit trail is kept, and the caller
  // gets the error.
  Bytes abort_turn(Error error);

  // Stage `begin`: creates or loads the entity of the item and finds where to continue.
  Result<Step> begin();
  Result<Step> begin_new(const Item& item);
  Result<Step> begin_existing(const Item& item);
  Result<Step> begin_due(const Item& item);
  // If-Match does not name the latest transaction: fails the command, or only the item when the
  // command is lenient.
  Result<Step> refuse_stale(const Item& item, const EntityView& stored);
  void note_aborted(const Item& item, const EntityView& stored);
  // True when an earlier item of this transaction has written the entity.
  bool written_before(const StoredEntity& found) const;
  void load_entity(const EntityView& stored, bool with_data);
  Result<void> set_data(const json::Value& value, std::string data);
  // Finds the workflow of an existing entity, and the requested transition in it.
  Result<Step> enter_workflow(const Item& item);
  Result<Step> start_transition(const Item& item);
  void warn_of_default();
  // One function for each of the other stages.
  Result<Step> select();
  Result<Step> guard();
  Result<Step> scan();
  Result<void> count_visit();
  Result<Step> process();
  Result<Step> finish();
  Result<Step> ask_schedules();
  // Ends an item whose timer has no effect.
  Result<Step> finish_without_write();
  Step finish_deleted();
  Step finish_item();
  Step enter_next_state(const Transition& t);
  // A joined write never commits by itself: the request that began the transaction does.
  bool commits_before(const Processor& processor) const {
    return processor.mode == Mode::commit_before_dispatch && !transaction_.joined;
  }

  // Calls to compute members, in processors.cc.

  // Takes over what callbacks of the answered call have written to the entity.
  Result<void> reload_entity();
  // Text and data of a criterion that did not match, with the member's explanation if it gave one.
  struct Mismatch {
    std::string text;
    std::string data;
  };
  Mismatch not_matched(std::string what,
                       const std::optional<condition::Condition>& criterion) const;
  // Evaluates a criterion; `wait` when a member was asked. `what` begins the message of a failure.
  Result<Match> evaluate(const std::optional<condition::Condition>& criterion,
                         std::string_view target, const std::string& what);
  // Calls a processor in the way of its execution mode.
  Result<void> dispatch(const Processor& processor);
  // Takes over the document that the processor returned, or fails the transaction.
  Result<void> apply_result(const Processor& processor);
  Result<void> take_data(const Processor& processor, const std::string& data);
  Result<void> commit_and_dispatch(const Processor& processor);
  Result<void> ask_processor(const Processor& processor, const std::string& request,
                             bool redelivered);
  // Makes the entity visible to callbacks and sets the savepoint of the call.
  Result<void> begin_call(const std::string& request);
  // Returns true, and undoes the failed attempt, when the retry policy allows another one.
  bool prepare_retry(std::string_view retry_policy);
  void ask_attempt(const Processor& processor);
  void ask_function(const condition::Function& function, Call::Kind kind, std::string_view target,
                    const Transition* transition);
  Call call_for(const Processor& processor, const std::string& request, std::string_view tx) const;
  void ask(Call call, const std::string& request);
  struct RequestFields {
    std::string_view kind;
    std::string_view name;
    std::string_view target{};               // for a criterion: WORKFLOW or TRANSITION
    const Transition* transition = nullptr;  // null for the criterion of a workflow
    std::string_view context{};
    bool attach = false;
  };
  std::string request_text(const RequestFields& fields, const std::string& request,
                           std::string_view tx) const;
  // `between`: the call was made between two transactions.
  Error member_error(const std::string& what, std::string_view tags, int64_t timeout_ms,
                     Call::Kind kind, bool between = false) const;
  void add_warnings();

  // Saves the entity with its unique values, index cell and audit trail.
  Result<void> save();
  // Notes the events of the entity, without a change to it.
  void note_events();
  // Gives everything this transaction wrote one time, that of its commit.
  void stamp_commit_time();
  Result<void> load_workflows();
  const Workflow& flow() const { return *progress_.flow; }
  // True while a member must still be asked when the state's transitions are due.
  bool needs_schedule() const;
  const Transition& transition() const {
    return flow().transitions(progress_.entity.state)[progress_.transition];
  }
  void record(EventKind kind, std::string details, std::string data = {}) {
    progress_.events.push_back({kind, progress_.entity.state, std::move(details), std::move(data)});
  }
  Bytes answer() const;

  Turn& turn_;
  Transaction& transaction_;
  Progress& progress_;
  ProgramOptions options_;
  const CallResult* result_ = nullptr;
  uint64_t criteria_work_ = 0;  // of this run
};

Result<WorkflowSet> decode_workflows(BytesView bytes);

}  // namespace pawl::entities
