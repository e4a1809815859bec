#pragma once
// A walk moves the tokens of one instance until each waits for something from outside, and records
// what happened in a note. It is pure: jobs and timers go to an EffectSink.

#include "faces/processes/state/instance.h"
#include "faces/processes/state/note.h"
#include "kernel/effect.h"

namespace pawl::processes {

// Receives the jobs and timers of a walk: the turn, or nothing in a dry run.
class EffectSink {
 public:
  virtual ~EffectSink() = default;
  virtual void open(Effect effect) = 0;
  virtual void withdraw(const std::string& effect_id) = 0;
  // The body of an open effect; empty when there is none.
  virtual Bytes body_of(const std::string&) { return {}; }
  // The same for a job under a limit, which may have to wait before it is opened.
  virtual void open_limited(const LimitUse&, Effect effect) { open(std::move(effect)); }
  virtual void withdraw_limited(const LimitUse&, const std::string& id) { withdraw(id); }
  // Takes the oldest kept signal for the subscription. Without one it registers the WAIT and
  // returns null.
  virtual VariablesPtr subscribe(const Subscription&, const std::string&) { return nullptr; }
  virtual void unsubscribe(const Subscription&, const std::string&) {}
};

// The work that the walks of one turn have used together. The limits are kStepsPerTurn and
// kWorkPerTurn.
struct WalkBudget {
  size_t steps = 0;  // entered
  size_t work = 0;   // bytes that expressions made, and an eighth of those they read
};

// The id of a job's next attempt. Frames of earlier versions kept the id.
enum class NextAttempt : uint8_t { new_job, same_job };

class Walk {
 public:
  // The turn may have several walks, which share one budget.
  Walk(EffectSink& effects, Time now, std::string tenant, Instance& instance,
       const Definition& definition, WalkBudget& budget);

  // Starts the instance at `step`. When `refused` is not empty the step fails with it as the
  // reason.
  void begin(uint32_t step = 0, std::string refused = {});
  // The execution is done. Its token goes on to the branch that is true, or else to the next step.
  void complete(uint32_t execution);
  // Takes the token away from its unfinished step and puts it before `target`. A failed instance
  // needs retry() afterwards.
  void move(Token& token, uint32_t target, const std::string& reason);
  void fire(uint32_t execution, uint32_t timer);
  // A worker failed the job. The job is offered again when it is retryable and retries are left;
  // otherwise the instance fails.
  // The next attempt has a new id, so that a late or repeated result of this one finds no job.
  void fail_job(uint32_t execution, const std::string& reason, bool retryable,
                NextAttempt next = NextAttempt::new_job);
  // A worker has taken the job of a step with an attemptTimeout: its time begins now.
  void begin_attempt(Token& token, const std::string& worker);
  void fail(uint32_t execution, const std::string& reason);
  // Takes all tokens away and undoes the steps that are done, the last one first. The instance
  // fails with `reason` when all are undone.
  void compensate(const std::string& reason);
  // Gives up the compensation that runs or has failed, and goes on with the one before.
  void skip_compensation(const std::string& reason);
  void cancel(const std::string& reason);
  void pause();
  void resume();
  // Continues a failed instance: failed steps are entered again, all other tokens go on.
  void retry();
  // Continues the instance under another version of its definition. `steps` maps each old step to a
  // new one or to kNoStep.
  void migrate(const Definition& from, const std::vector<uint32_t>& steps);

  const json::Object& variables() const { return edited_ ? *edited_ : instance_.variables->object; }
  // The variables to change in place. Their JSON text is made when a job or the end of the turn
  // needs it.
  json::Object& edit();
  // Sets the outputs of a TRANSFORMATION or DECISION_TABLE. The note records how to undo them, for
  // a restart before this step.
  void set(const json::Object& outputs);
  void record_event(std::string event, std::string step = {});

  Token* token(uint32_t execution);
  Token* token_at(uint32_t step);      // the oldest running token
  Token* any_token_at(uint32_t step);  // in any state
  Token* failed_token();
  bool reached_end() const { return end_step_ != kNoStep; }
  uint32_t end_step() const { return end_step_; }

  // For step types while they are entered. The cost of expressions is added to work().
  size_t& work() { return budget_.work; }
  // Fails when the key of the step's limit cannot be evaluated, or when the turn has used its work.
  Result<void> open_job(Token& token, const Step& step);
  void arm_timers(Token& token, const Step& step);
  // CALL: asks for the start of the child. Fails when its variables cannot be evaluated.
  Result<void> open_call(Token& token, const Step& step);
  // The child of a waiting CALL was started, has ended, or could not be started.
  void child_started(Token& token, const std::string& child_id);
  void child_completed(Token& token, const Variables& child);
  void child_failed(Token& token, const std::string& reason);
  // WAIT: merges a signal that was kept for it and returns true. Without one it registers the WAIT
  // for signals of its name.
  Result<bool> take_kept_signal(Token& token, const Step& step);
  // Keeps a signal for the next time that a token enters the WAIT.
  void keep_signal(uint32_t step, const VariablesPtr& variables);
  Time now() const { return now_; }

  // Sets the final status and returns the note of the walk.
  Note finish(uint8_t status_before);

 private:
  // A token that enters its step next.
  struct PendingToken {
    uint32_t step, scope, branch;
  };
  // The gateway that a join belongs to, as seen from a token that reaches the join.
  struct JoinScope {
    Scope* scope;       // null: no gateway around the token has this join
    uint32_t branch;    // the branch of that gateway, or kNoBranch
    bool already_done;  // the gateway had this join, and the join has fired
  };
  void run();
  Result<void> check_work() const;
  void enter(const PendingToken& pending);
  void fork(const PendingToken& pending, const Step& step);
  JoinScope join_scope_of(const PendingToken& pending);
  bool arrive_at_join(const PendingToken& pending);
  std::vector<Token>::iterator record_arrival(uint32_t join, const Scope& scope, uint32_t branch);
  void fire_join(std::vector<Token>::iterator waiting, const Scope& scope);
  void end_instance(uint32_t step);
  void drop_effects(Token& token);
  void drop_attempt(Token& token);
  void unsubscribe(Token& token);
  const Step& step_of(const Token& token) const {
    return processes::step_of(instance_, definition_, token.step);
  }
  // Remembers that the step is done and how to undo it.
  Result<void> remember_done(const Token& token, const Step& step);
  void compensate_next();
  void compensation_done(Execution status, const std::string& reason = {});
  // The CALL is left before its child has ended: the child is cancelled.
  void drop_call(Token& token);
  // Looks whether the child of a CALL ended while the instance was suspended.
  void recheck_child(const Token& token);
  Result<VariablesPtr> next_kept_signal(Token& token, const Step& step);
  // Registers the WAITs again, and completes those for which a signal was kept meanwhile.
  void resume_waits(const std::vector<uint32_t>& executions);
  void withdraw_job(Token& token);
  // Withdraws jobs and timers, and keeps the remaining time of each timer.
  void suspend();
  // Offers the jobs and timers again and enters the steps of held tokens.
  void reactivate();
  void record_entered(const Token& token);
  void record_ended(const Token& token, Execution status, const std::string& reason = {});
  void remove(uint32_t execution);
  void drop_empty_scopes();
  Token::ArmedTimer* armed(Token& token, uint32_t index);
  void settle_variables();
  void offer(const Token& token, const Step& step, Time not_before, const std::string& variables);
  std::string id_of(uint32_t ordinal) const { return ordinal_id(instance_.id, ordinal); }

  EffectSink& effects_;
  const Time now_;
  const std::string tenant_;
  Instance& instance_;
  const Definition& definition_;
  WalkBudget& budget_;
  std::vector<PendingToken> pending_;  // the last one is entered next
  uint32_t end_step_ = kNoStep;
  std::string refused_{};
  std::optional<json::Object> edited_;
  std::string undo_;  // how to undo the variables of the step that is being entered
  std::vector<Fact> facts_;
};

}  // namespace pawl::processes
