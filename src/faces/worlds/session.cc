#include "faces/worlds/session.h"

namespace pawl::worlds {

Result<void> WorldSession::create(World world, const Authored& air) {
  world.created = turn.kernel.now();
  TRY_OK(turn.begin(std::move(world)));
  TRY(LoadedManifest loaded, load(air.manifest, finder(air.nodes), turn.runtime.builtins));
  TRY_OK(turn.use_manifest(std::move(loaded)));
  TRY_OK(turn.record(manifest_record(turn.world().manifest_hash)));
  TRY_OK(snapshots.take());
  return {};
}

}  // namespace pawl::worlds
