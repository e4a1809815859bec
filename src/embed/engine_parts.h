#pragma once
// The parts of an engine: shard, clock, and the programs that run on them.

#include "faces/lifecycle/read/reads.h"
#include "faces/lifecycle/read/watch_hub.h"
#include "faces/lifecycle/run/program.h"
#include "faces/worlds/face.h"
#include "faces/worlds/outgoing.h"
#include "pawl/engine.h"
#include "runtime/clock.h"
#include "runtime/shard.h"
#include "runtime/workers.h"
#include "wasm/host.h"
#include "wire/route.h"

namespace pawl {

// The worlds of an engine, as the server has them.
struct WorldsParts {
  explicit WorldsParts(const worlds::WorldsOptions& options);
  // Before the shard starts: it reports open effects at once.
  void open(Shard& shard, const worlds::WorldsOptions& options);
  void stop();

  wasm::Host wasm{{wasm::usual_libraries(), {}}};
  worlds::Modules modules{&wasm};
  worlds::WorldsProgram program{modules};
  BackgroundThreads background;  // before the face, which uses it until it is destroyed
  std::unique_ptr<Workers> workers;
  std::unique_ptr<worlds::Outgoing> outgoing;  // null: no host is allowed
  std::unique_ptr<worlds::Face> face;
  wire::Router router;
};

struct Engine::Parts {
  EngineOptions options;
  lifecycle::Program program;
  std::unique_ptr<WorldsParts>
      worlds;  // null: the engine has none. Before the shard, which uses it
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Clock> clock;
  // Shared with subscriptions, which may outlive the engine.
  std::shared_ptr<lifecycle::WatchHub> hub;

  // Stops the parts in the order in which they feed each other: clock, hub, shard.
  ~Parts();
  std::vector<const Program*> programs() const;
  // The application itself is trusted, so its writes have the role of an operator.
  Caller caller() const { return {options.tenant, options.user, "operator"}; }
};

}  // namespace pawl
