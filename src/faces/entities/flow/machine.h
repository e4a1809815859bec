#pragma once
// The machine takes a job through its stages: select a workflow, run the transition that was named,
// cascade through the automated ones, save. It stops where a member must be asked and goes on from
// there with the verdict; nothing of it lives between the two but the job.

#include "faces/entities/flow/call.h"
#include "faces/entities/flow/transaction.h"

namespace pawl::entities {

// A cascade that fires in each of this many rounds is one that never ends.
inline constexpr int kCascadeRounds = 100;

class Machine {
 public:
  Machine(Turn& turn, Job& job, int max_visits)
      : turn_(turn), job_(job), p_(job.p), max_visits_(max_visits) {}

  // From the beginning. The answer is the caller's JSON; it is empty while something is asked.
  Result<Bytes> run();
  // With what the job asked for.
  Result<Bytes> resume(const Verdict& verdict);
  // The second transaction of a COMMIT_BEFORE_DISPATCH processor.
  Result<Bytes> second(const Verdict& verdict, const std::string& request);

 private:
  enum class Step : uint8_t { go, wait, done };
  enum class Ruling : uint8_t { yes, no, wait };

  Result<Bytes> drive();
  Result<Step> step();
  // Ends a turn that must not fail: the caller gets the error, the effect is settled, the trail
  // kept.
  Bytes give_up(Error error);

  Result<Step> begin();
  Result<Step> begin_new(const Item& item);
  Result<Step> begin_old(const Item& item);
  Result<Step> begin_due(const Item& item);
  Result<Step> stale(const Item& item, const EntityView& stored);
  void note_aborted(const Item& item, const EntityView& stored);  // of a write that came too late
  void take_up(const EntityView& stored, bool with_data);
  Result<void> take_data(const json::Value& value, std::string data);
  Result<Step> enter_workflow(const Item& item);
  Result<Step> select();
  Result<Step> guard();
  Result<Step> scan();
  Result<Step> process();
  Result<Step> finish();
  Result<Step> time();
  bool commits_before(const Processor& processor) const {
    return processor.mode == Mode::commit_before_dispatch && !job_.joined;
  }
  Result<Step> skip();  // the item is done without a write
  Step gone();
  Step make(const Transition& t);

  // In processors.cc.
  // What callbacks of the call that was answered made of the entity.
  Result<void> look_again();
  // For the trail and the caller: "... criterion not matched", and why, if a member told.
  struct Refusal {
    std::string text, data;
  };
  Refusal not_matched(std::string what, const std::optional<condition::Condition>& criterion) const;
  Result<Ruling> judge(const std::optional<condition::Condition>& criterion,
                       std::string_view target, const std::string& what);
  Result<void> dispatch(const Processor& processor);
  Result<void> settle(const Processor& processor);
  Result<void> commit_and_open(const Processor& processor);
  Result<void> ask_processor(const Processor& processor, const std::string& request, bool again);
  Result<void> begin_call(const std::string& request);
  bool try_again(
      std::string_view retry_policy);  // true: whoever was asked is to be asked once more
  void ask_attempt(const Processor& processor);
  void ask_function(const condition::Function& function, Call::Kind kind, std::string_view target,
                    const Transition* transition);
  Call call_for(const Processor& processor, const std::string& request, std::string_view tx) const;
  void ask(Call call, const std::string& request);
  struct Question {
    std::string_view kind, name;
    std::string_view target{};               // of a criterion
    const Transition* transition = nullptr;  // none for the criterion of a workflow
    std::string_view context{};
    bool attach = false;
  };
  std::string request_text(const Question& question, const std::string& request,
                           std::string_view tx) const;
  // `outside`: the call was made between two transactions.
  Error member_error(const std::string& what, std::string_view tags, int64_t timeout_ms,
                     Call::Kind kind, bool outside = false) const;

  Result<void> save();  // the entity with its trail so far
  void stamp();         // before the commit of a turn that has asked somebody
  Result<void> load_workflow();
  const Workflow& flow() const { return *p_.flow; }
  // Whether a member must still say when the state's transitions are due.
  bool untimed() const;
  const Transition& transition() const {
    return flow().transitions(p_.entity.state)[p_.transition];
  }
  void record(EventKind kind, std::string details, std::string data = {}) {
    p_.events.push_back({kind, p_.entity.state, std::move(details), std::move(data)});
  }
  Bytes answer() const;

  Turn& turn_;
  Job& job_;
  Progress& p_;
  int max_visits_;
  const Verdict* verdict_ = nullptr;
};

Result<Flows> decode_flows(BytesView bytes);

}  // namespace pawl::entities
