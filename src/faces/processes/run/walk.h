#pragma once
// A walk moves the tokens of one instance as far as they go by themselves: it enters steps, forks,
// joins, fails, ends. It is pure: jobs and timers go to an Outlet, what happened goes to a note.

#include "faces/processes/state/instance.h"
#include "faces/processes/state/note.h"
#include "kernel/effect.h"

namespace pawl::processes {

inline constexpr std::string_view kProgram = "processes";

// Where jobs and timers go: the turn, or nowhere in a dry run.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void open(Effect effect) = 0;
  virtual void withdraw(const std::string& effect_id) = 0;
  // The body of an open effect; empty when there is none.
  virtual Bytes body_of(const std::string&) { return {}; }
};

class Walk {
 public:
  // `steps` counts the steps of the whole turn, over all its walks.
  Walk(Outlet& outlet, Time now, std::string tenant, Instance& instance,
       const Definition& definition, size_t& steps);

  void begin(uint32_t step = 0, std::string refused = {});  // refused: why it fails at that step
  // The token's execution is done: on where its branches say, if it has any, else to its next step.
  void complete(uint32_t execution);
  // The token leaves its step undone and stands before `target`; a failed instance needs retry()
  // then.
  void move(Token& token, uint32_t target, const std::string& reason);
  void fire(uint32_t execution, uint32_t timer);
  // A worker failed the job: offered again when retries are left and it may, else the instance
  // fails.
  void fail_job(uint32_t execution, const std::string& reason, bool retryable);
  void fail(uint32_t execution, const std::string& reason);
  void cancel(const std::string& reason);
  void pause();
  void resume();
  // A failed instance goes on: failed steps are entered again, everything else as it stood.
  void retry();
  // As another version; `steps` maps each old step to a new one or to kNoStep.
  void migrate(const Definition& from, const std::vector<uint32_t>& steps);

  const json::Object& variables() const { return edited_ ? *edited_ : instance_.variables->object; }
  // The variables to change in place; printed once, when a job or the end of the turn needs their
  // text.
  json::Object& edit();
  // What a step of the engine's own gives to variables: it can be undone, for those who restart
  // before it.
  void set(const json::Object& outputs);
  void tell(std::string event, std::string step = {});

  Token* token(uint32_t execution);
  Token* token_at(uint32_t step);      // the oldest running one
  Token* any_token_at(uint32_t step);  // in whatever state
  Token* failed_token();
  bool reached_end() const { return end_step_ != kNoStep; }
  uint32_t end_step() const { return end_step_; }

  // For steps, while they are entered. What their expressions cost is added to work().
  size_t& work() { return work_; }
  void open_job(Token& token, const Step& step);
  void arm_timers(Token& token, const Step& step);
  Time now() const { return now_; }

  // What happened, with the status as it now is.
  Note finish(uint8_t status_before);

 private:
  struct Place {  // a token on its way
    uint32_t step, scope, branch;
  };
  void run();
  void enter(const Place& place);
  void fork(const Place& place, const Step& step);
  bool arrive(const Place& place);
  void end_instance(uint32_t step);
  void drop_effects(Token& token);
  void quiesce();
  void revive();
  void entered(const Token& token);
  void ended(const Token& token, Execution status, const std::string& reason = {});
  void remove(uint32_t execution);
  void forget_scopes();
  Token::Armed* armed(Token& token, uint32_t index);
  void settle_variables();
  void offer(const Token& token, const Step& step, Time not_before, const std::string& variables);
  std::string id_of(uint32_t ordinal) const { return ordinal_id(instance_.id, ordinal); }

  Outlet& outlet_;
  const Time now_;
  const std::string tenant_;
  Instance& instance_;
  const Definition& definition_;
  size_t& steps_;
  std::vector<Place> todo_;  // the last is next
  uint32_t end_step_ = kNoStep;
  std::string refused_{};
  std::optional<json::Object> edited_;
  std::string undo_;  // of the step that is being entered
  size_t work_ = 0;
  std::vector<Fact> facts_;
};

}  // namespace pawl::processes
