#pragma once
// The program of the processes face: what each command and each timer does to instances.

#include "faces/processes/run/commands.h"
#include "faces/processes/run/walk.h"
#include "faces/processes/state/cells.h"
#include "kernel/program.h"

namespace pawl::processes {

class Program final : public pawl::Program {
 public:
  std::string_view name() const override { return kProgram; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override;
  uint32_t view_version() const override { return 1; }
};

using InstancePtr = std::shared_ptr<const Instance>;

inline constexpr Reason kNoInstance{"NO_INSTANCE"};
inline constexpr Reason kKeyTaken{"BUSINESS_KEY_TAKEN"};

// One turn of the program and what all its walks share.
class TurnContext final : public EffectSink {
 public:
  TurnContext(Turn& turn, const Input& input)
      : turn(turn), input(input), tenant(input.caller.tenant) {}
  void open(Effect effect) override { turn.open(std::move(effect)); }
  void withdraw(const std::string& effect_id) override { turn.withdraw(effect_id); }
  Bytes body_of(const std::string& effect_id) override;
  void open_limited(const LimitUse& use, Effect effect) override;
  void withdraw_limited(const LimitUse& use, const std::string& effect_id) override;
  VariablesPtr subscribe(const Subscription& subscription,
                         const std::string& execution_id) override;
  void unsubscribe(const Subscription& subscription, const std::string& execution_id) override;

  Turn& turn;
  const Input& input;
  std::string tenant;
  std::string reason{};  // the reason that an operator gave
  WalkBudget budget{};
  bool existing = false;   // see start()
  size_t chained = 0;      // instances that were chained in this turn
  size_t chain_depth = 0;  // instances that were chained before this turn without a wait
  // The first failure of a limiter or a signal, which close() returns: sinks cannot fail.
  Result<void> limits{};

  Result<std::shared_ptr<const DefinitionHead>> head(std::string_view definition_id);
  Result<std::shared_ptr<const Definition>> definition(std::string_view id, uint32_t version);
  // Refuses with kNoInstance when there is none.
  Result<std::shared_ptr<const Instance>> instance(std::string_view id);
  // The other instance that keeps the business key; null when it is free. An instance that has
  // ended gives its key to its successor.
  Result<InstancePtr> key_holder(const Definition& definition, std::string_view business_key,
                                 std::string_view successor_of);
  // Refuses with kKeyTaken when another instance has the key.
  Result<void> take_key(const Instance& instance, const Definition& definition);
  Result<void> release_key(const Instance& instance);
  // Takes the key of an instance that begins or goes on, and releases that of one that has ended.
  Result<void> update_key(const Instance& instance, const Definition& definition,
                          uint8_t status_before);
  // Starts an instance and the instances that are chained to it; returns the first one. `existing`
  // is true afterwards when the policy of its business key returned another one instead.
  // An instance that is chained to `ended` has its priority and fairness key unless its own
  // definition sets them.
  Result<InstancePtr> start(const StartCommand& command, std::shared_ptr<const Definition>* used,
                            const Instance* ended = nullptr);
  // Writes the instance and the note of the walk, and starts the instance that is chained to it.
  // `instance` is moved from; the result is the instance as it was written.
  Result<InstancePtr> close(Instance& instance, Walk& walk, const Definition& definition,
                            uint8_t status_before);
  // Refuses variables that do not match. `what` names the schema.
  Result<void> check_schema(const schema::Schema& schema, const json::Object& variables,
                            const std::string& what);
  InstancePtr put(Instance instance, Note note);
  // Opens the timer of an instance that has ended, and withdraws that of one that goes on.
  Result<void> update_retention(const Instance& instance, const Definition& definition,
                                uint8_t status_before);
  // Starts the next workflow of an instance that has ended, in this turn or a later one.
  Result<void> chain(Instance& ended, const Definition& definition, Note& note);
  // Continues the chains that wait for this definition.
  Result<void> start_awaited(std::string_view definition_id);
  // Why no further instance may be chained; empty when one may.
  std::string chain_refused() const;
};

// The command of the input: the object that the service made, or one decoded from the body.
template <class T, class Decode>
Result<std::shared_ptr<const T>> command(const Input& input, Decode&& decode) {
  if (input.decoded) return std::static_pointer_cast<const T>(input.decoded);
  TRY(T value, decode(input.body));
  return std::make_shared<const T>(std::move(value));
}

// Loads an instance and its definition, runs `act` on a walk, and writes the instance if it returns
// true.
template <class Act>
Result<void> walk_instance(TurnContext& context, std::string_view id, Act&& act) {
  TRY(std::shared_ptr<const Instance> before, context.instance(id));
  TRY(std::shared_ptr<const Definition> definition,
      context.definition(before->definition_id, before->version));
  Instance instance = *before;
  Walk walk(context, context.turn.now(), context.tenant, instance, *definition, context.budget);
  TRY(bool changed, act(walk, instance, *definition));
  if (!changed) return {};
  TRY_OK(context.close(instance, walk, *definition, static_cast<uint8_t>(before->status)));
  return {};
}

// The verbs of operators; the body names the operation.
Result<Bytes> operate(TurnContext& context);
Result<Bytes> pause_definition(TurnContext& context);
Result<Bytes> pause_type(TurnContext& context);
// Stores a definition. `upload` is the `deploy` of earlier versions.
Result<Bytes> upload(TurnContext& context);
Result<Bytes> deploy(TurnContext& context);
// Activates a version, retires or deletes a definition.
Result<Bytes> manage_definition(TurnContext& context);
// Refuses the result of a job, a user task or a WAIT that the step's outputsSchema does not allow.
Result<void> check_outputs(TurnContext& context, const Step& step, const Variables& result);
// Delivers a signal to the WAIT that has waited longest for it, or keeps it.
Result<Bytes> publish_signal(TurnContext& context);
// A kept signal is dropped by an operator, or because its time is over.
Result<Bytes> drop_signal(TurnContext& context);
Result<void> expire_signal(TurnContext& context, std::string_view signal_id);
// Erases an instance that has ended, by command or because its retention is over.
Result<Bytes> forget(TurnContext& context);
Result<void> forget_instance(TurnContext& context, const Instance& instance);
// Sets the default retention of the tenant; the body is its JSON.
Result<Bytes> set_retention(TurnContext& context);
// The turns between a CALL and its child.
Result<Bytes> call_child(TurnContext& context);
Result<Bytes> child_ended(TurnContext& context);
Result<Bytes> cancel_child(TurnContext& context);
// Continues a chain that did not end in its own turn.
Result<Bytes> chain_on(TurnContext& context);

}  // namespace pawl::processes
