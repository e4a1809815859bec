#pragma once
// The program of the processes face: what each command and each timer does to instances. Pure.

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

// One turn of the program: the turn itself and what all its walks share.
class Scene final : public Outlet {
 public:
  Scene(Turn& turn, const Input& input) : turn(turn), input(input), tenant(input.caller.tenant) {}
  void open(Effect effect) override { turn.open(std::move(effect)); }
  void withdraw(const std::string& effect_id) override { turn.withdraw(effect_id); }
  Bytes body_of(const std::string& effect_id) override;

  Turn& turn;
  const Input& input;
  std::string tenant;
  std::string reason{};  // that an operator gave
  size_t steps = 0;
  size_t chained = 0;      // in this turn
  size_t chain_depth = 0;  // before it, without a wait

  Result<std::shared_ptr<const Head>> head(std::string_view definition_id);
  Result<std::shared_ptr<const Definition>> definition(std::string_view id, uint32_t version);
  Result<std::shared_ptr<const Instance>> instance(
      std::string_view id);  // not_found when there is none
  // Starts an instance and everything chained behind it; the first one is returned.
  Result<InstancePtr> start(const StartCommand& command, std::shared_ptr<const Definition>* used);
  // Writes the instance and the note of the walk; starts what is chained behind it. The instance is
  // spent: it comes back as it was written.
  Result<InstancePtr> close(Instance& instance, Walk& walk, const Definition& definition,
                            uint8_t status_before);
  InstancePtr put(Instance instance, Note note);
  // Starts the workflow behind an instance that has ended, now or later.
  Result<void> chain(Instance& ended, const Definition& definition, Note& note);
  // Goes on with the chains that wait for this definition.
  Result<void> start_awaited(std::string_view definition_id);
  std::string chain_refused() const;  // why no instance may follow any more; empty when it may
};

// Loads an instance with its definition, walks, and writes what came of it.
template <class Act>
Result<void> walk_instance(Scene& scene, std::string_view id, Act&& act) {
  TRY(std::shared_ptr<const Instance> before, scene.instance(id));
  TRY(std::shared_ptr<const Definition> definition,
      scene.definition(before->definition_id, before->version));
  Instance instance = *before;
  Walk walk(scene, scene.turn.now(), scene.tenant, instance, *definition, scene.steps);
  TRY(bool changed, act(walk, instance, *definition));
  if (!changed) return {};
  TRY_OK(scene.close(instance, walk, *definition, static_cast<uint8_t>(before->status)));
  return {};
}

// An operator's verb; the body says which.
Result<Bytes> operate(Scene& scene);
Result<Bytes> pause_definition(Scene& scene);
Result<Bytes> pause_type(Scene& scene);
// StaleRead an instance whose chain did not end in its own turn.
Result<Bytes> chain_on(Scene& scene);

}  // namespace pawl::processes
