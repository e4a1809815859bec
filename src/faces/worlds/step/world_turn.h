#pragma once
// WorldTurn is the state of one world inside one kernel turn: its head, manifest, queued deliveries
// and budget. The parts that act on a world (ingress, stepping, settlement, governance, snapshots)
// share one WorldTurn. Everything they do goes into the kernel's turn, so it commits together or
// not at all.

#include <map>

#include "faces/worlds/air/patch.h"
#include "faces/worlds/step/mailboxes.h"
#include "faces/worlds/step/modules.h"
#include "faces/worlds/store/blobs.h"
#include "faces/worlds/store/notes.h"

namespace pawl::worlds {

// The world still works off deliveries of a former input: retry.
inline constexpr Reason kWorldBusy{"busy"};
// The turn has used all its fuel.
inline constexpr Reason kFuelUsedUp{"fuel_used_up"};

// The parts that every world of this process shares.
struct WorldRuntime {
  const Builtins& builtins;
  const Modules& modules;
};

// The recorded journal that a replay follows: stamps come from it, and every record must agree.
struct RecordedJournal {
  uint64_t from = 0;  // seq of the first payload
  std::vector<Bytes> payloads;
  const Bytes* at(uint64_t seq) const {
    return seq >= from && seq - from < payloads.size() ? &payloads[seq - from] : nullptr;
  }
};

// Limits of one input in one turn. When its steps, its bytes or four times the world's fuel are
// reached, the deliveries that are left wait for a further turn.
inline constexpr size_t kMaxStepsPerTurn = 1024;
inline constexpr size_t kMaxBytesPerTurn = 64 * 1024 * 1024;
// Fuel of all steps of one turn together, about two seconds, and of one step. No step begins unless
// its fuel is left: its delivery waits for a further turn, and a turn that cannot wait (a batch of
// events, a migration, a shadow run, a fork) fails with `exhausted`. A world may ask for less.
inline constexpr uint64_t kMaxFuelPerTurn = 2'000'000'000;
inline constexpr uint64_t kMaxFuelPerStep = 1'000'000'000;
// Memory of one instance of a module. A world may ask for less.
inline constexpr uint64_t kMaxMemoryPerStep = 256 * 1024 * 1024;
// Deliveries that wait are written down between two turns: a step that would make more bytes wait
// fails.
inline constexpr size_t kMaxWaitingBytes = 64 * 1024 * 1024;
// Steps that may follow from one input, over all its turns. Past it a step that emits events fails.
inline constexpr uint64_t kMaxStepsPerInput = 100'000;
// Bytes of a cell's workflow name and key together. They are part of the kernel's keys, beside the
// names of tenant and world.
inline constexpr size_t kMaxCellNameBytes = 3600;

// The resources that the steps of one input have used in this turn.
struct TurnBudget {
  size_t steps = 0;
  uint64_t fuel = 0;
  size_t bytes = 0;  // output of steps and answers of internal effects
};

// A cell of a workflow while it is changed.
struct CellEdit {
  Key where;
  std::shared_ptr<const Instance> before;  // null: the cell is new
  Instance now;
};

using CellName = std::pair<std::string, Bytes>;  // workflow, key

// The observations of a shadow run.
struct ShadowLog {
  std::map<CellName, std::optional<Bytes>> touched{};  // cells written, with their new state
  std::vector<PendingIntent> predicted{};              // effects opened
};

class WorldTurn {
 public:
  WorldTurn(Turn& kernel_turn, WorldId world_id, const WorldRuntime& world_runtime);

  Result<void> open();   // not_found when there is no such world
  Result<void> close();  // writes the head; deliveries that are left go to a further turn
  // Begins a world that does not exist yet; refused with `conflict` when it does.
  Result<void> begin(World world);
  // Starts the budget anew, for the next of several inputs in one turn.
  void next_input();

  const World& world() const { return *world_; }
  const LoadedManifest& loaded() const { return *loaded_; }
  std::shared_ptr<const LoadedManifest> shared_manifest() const { return loaded_; }
  World& edit_world();  // a copy of its own: readers that share the old one never see a change

  // `exhausted` while deliveries of a former input wait, or when the turn's fuel is used up.
  Result<void> refuse_while_busy() const;
  // Limits of the next call of a module, and whether the turn has that much fuel left.
  wasm::Limits step_limits() const;
  bool has_fuel() const;
  Result<void> check_fuel() const;  // `exhausted` when has_fuel() is false
  void use_fuel(uint64_t fuel);

  // A point in this turn that can be returned to.
  struct Savepoint {
    Turn::Mark mark;
    WorldHead head;
    std::shared_ptr<const World> world;
    std::shared_ptr<const LoadedManifest> loaded;
  };
  Savepoint savepoint() const { return {kernel.mark(), head, world_, loaded_}; }
  void rewind(const Savepoint& to);

  // Records. Each takes the height of the head.
  Moment next_moment();
  Result<void> record(BytesView payload, const Pointers& pointers = {});
  // During a replay, refuses a payload that is not the one recorded at this height.
  Result<void> check_replay(BytesView payload) const;
  // The record that a replay follows at this height; null when there is none.
  cbor::Value recorded_here() const;
  // Keeps the blobs that a value of the next record refers to, so that the record can be run again.
  // The blob named `except` is left out.
  void keep_blobs(BytesView value, const std::string& schema, std::string_view except = {});

  // Cells.
  Result<CellEdit> read_cell(const Workflow& workflow, BytesView key);
  void save(std::string_view workflow, BytesView key, CellEdit edit);
  Result<std::shared_ptr<const PendingIntent>> pending(BytesView intent);
  Result<std::vector<PendingIntent>> all_pending(size_t max = SIZE_MAX);

  // Manifests.
  Result<LoadedManifest> load_manifest(const Manifest& manifest,
                                       const std::vector<Node>& extra) const;
  // Makes the manifest the world's own. Its definitions go into the store, so that a later patch or
  // fork finds them by hash.
  Result<void> use_manifest(LoadedManifest loaded);
  // Runs under another manifest for the length of a shadow run.
  void borrow_manifest(LoadedManifest loaded);
  Result<Bytes> fetch(const Module& module) const;

  Turn& kernel;
  const WorldId id;
  const WorldRuntime& runtime;
  mutable Blobs blobs;
  WorldHead head;
  Mailboxes mail;
  TurnBudget budget;
  const RecordedJournal* recorded = nullptr;  // null: live
  ShadowLog* shadow = nullptr;                // null: not a shadow run

 private:
  Result<void> take_queued();

  const Key head_at_;
  std::shared_ptr<const World> world_;            // shared with the cell's cache
  std::shared_ptr<const LoadedManifest> loaded_;  // shared with the cell's cache
  bool world_changed_ = false;
  uint64_t turn_fuel_ = 0;  // used by all inputs of this turn
};

// True for errors of this server, which end the turn. All others are errors of a module and of its
// output: they are recorded.
inline bool is_server_error(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::corrupt ||
         error.code == Code::internal;
}

// The bundle that a world's `air` cell holds.
Bytes encode_bundle(const Manifest& manifest, const std::vector<Node>& nodes);
Result<LoadedManifest> decode_bundle(BytesView bytes, const Builtins& builtins);

}  // namespace pawl::worlds
