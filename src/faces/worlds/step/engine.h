#pragma once
// The engine runs one world inside one turn: it takes an event, a receipt or a frame, steps the
// cells that it reaches, and works off what they emit, one event a cell in turn, until nothing is
// queued. Everything it does goes into the turn, so that it commits together or not at all.
//
//   Engine engine(turn, place, runtime);  TRY_OK(engine.open());  ... verbs ...
//   TRY_OK(engine.close());

#include <map>
#include <span>

#include "faces/worlds/air/patch.h"
#include "faces/worlds/snapshot/cell_index.h"
#include "faces/worlds/step/mailboxes.h"
#include "faces/worlds/step/modules.h"
#include "faces/worlds/store/blobs.h"
#include "faces/worlds/store/notes.h"
#include "faces/worlds/store/workspace.h"

namespace pawl::worlds {

struct Runtime {
  const Builtins& builtins;
  const Modules& modules;
};

// The recorded journal that a replay follows: stamps come from it, and every record must agree.
struct Recorded {
  uint64_t from = 0;  // seq of the first
  std::vector<Bytes> payloads;
  const Bytes* at(uint64_t seq) const {
    return seq >= from && seq - from < payloads.size() ? &payloads[seq - from] : nullptr;
  }
};

// Steps of one turn, and of all turns that follow from one input: past the first the rest waits for
// a further turn, past the second a step that emits events fails.
inline constexpr size_t kStepsPerTurn = 1024;
inline constexpr uint64_t kStepsPerInput = 100'000;
// A turn is one frame. Past the first, the steps that are left wait for a further turn; what waits
// is written down between two of them, so a step that would have more wait than the second fails.
inline constexpr size_t kBytesPerTurn = 64 * 1024 * 1024;
inline constexpr size_t kWaitingBytes = 64 * 1024 * 1024;
// Of a cell's workflow and key together: they are part of keys of the kernel, with the names of
// tenant and world.
inline constexpr size_t kCellNameBytes = 3600;
// What one turn of a snapshot brings into the index: changed cells, and about as many bytes of
// states and nodes. The rest waits for further turns, so that others have theirs in between.
inline constexpr size_t kCellsPerTurn = 2'000;
inline constexpr size_t kIndexBytesPerTurn = 8 * 1024 * 1024;

struct Accepted {
  std::string event_hash;
  uint64_t height = 0;
};

// What stands in the way of an apply.
struct Quiescence {
  uint64_t non_terminal = 0, waiting = 0, inflight = 0, queued = 0, timers = 0;
  bool strict_ok() const { return non_terminal == 0 && inflight == 0 && queued == 0; }
  bool relaxed_ok() const { return waiting == 0 && inflight == 0 && queued == 0; }
};

inline constexpr size_t kReportedError = 1000;  // bytes of one error in a shadow report
struct ShadowOptions {
  std::vector<Event> seeds{};  // events to try; values are any CBOR of their schema
};

class Engine {
 public:
  Engine(Turn& turn, Place place, const Runtime& runtime);

  Result<void> open();   // not_found when there is no such world
  Result<void> close();  // writes what changed; leaves the rest of the queue to a further turn
  void next_input() {
    steps_ = 0, fuel_ = 0, bytes_ = 0, head_.chain = 0;
  }  // of several in one turn: each has a budget of its own
  void retrace(const Recorded* recorded) { recorded_ = recorded; }  // null: live again

  // Inputs. Each fails without a trace when it is refused; `exhausted` while the queue is not
  // empty.
  Result<Accepted> accept_event(Event event);
  Result<void> accept_receipt(Receipt receipt);
  Result<bool> accept_frame(StreamFrame frame);  // false: dropped, with a record that says why
  Result<void> fire_timer(BytesView intent);
  Result<void> go_on();   // with what a former turn left queued
  Result<void> finish();  // in this turn, whatever follows from the last input
  Result<void> refuse_while_busy() const;

  // Governance.
  Result<Proposal> propose(const Patch& patch, std::optional<std::string> description);
  Result<Bytes> shadow(uint64_t id, const ShadowOptions& options);  // the report, canonical CBOR
  Result<Proposal> decide(uint64_t id, std::string approver, bool approve);
  Result<Proposal> apply(uint64_t id, bool strict);
  Result<Patch> compile(const json::Value& document) const;
  Quiescence quiescence() const;

  // Snapshots.
  Result<std::string> snapshot();  // its ref
  // Brings changed cells into the index; says where to go on, in a further turn, when there are
  // more than one turn should take. The first turn has nothing to go on from; later ones wait while
  // the world is busy.
  Result<std::optional<Key>> prepare_snapshot(std::optional<BytesView> from);
  Result<void> restore(std::string_view ref);
  Result<void> replay(
      uint64_t until);       // the recorded journal, up to a height or the last input before it
  Result<void> offer_all();  // after a replay: what is still open goes out again
  Result<void> compact(uint64_t through);

  // Creation: a world that is not there yet.
  Result<void> create(World world, const Authored& air);
  Result<void> adopt(World world);            // for a fork: everything else comes from restore()
  void attach() { edit().detached = false; }  // its effects go out from now on

  const World& world() const { return *world_; }
  const Head& head() const { return head_; }
  const Loaded& loaded() const { return *loaded_; }

 private:
  struct Prepared {  // an event that passed every check, with whom it reaches
    Event event;
    std::vector<std::pair<const Workflow*, Event>> deliveries{};
  };
  struct Cells {  // an instance, what it was, and where it stands
    Key where;
    std::shared_ptr<const Instance> before;
    Instance now;
  };
  using Named = std::pair<std::string, Bytes>;  // workflow, key

  // engine.cc
  World& edit();
  Result<void> take_queued();
  Moment next_moment();
  Result<void> record(BytesView payload, const Pointers& pointers = {});
  Result<void> agree(BytesView payload) const;  // with what a replay follows
  void keep_blobs(BytesView value, const std::string& schema, std::string_view but = {});
  Result<Cells> read_cell(const Workflow& workflow, BytesView key);
  void save(std::string_view workflow, BytesView key, Cells cells);
  Result<void> use_manifest(Loaded loaded);
  Result<Loaded> load_manifest(const Manifest& manifest, const std::vector<Node>& extra) const;
  Result<Bytes> fetch(const Module& module) const;

  // ingress.cc
  Result<Prepared> prepare(Event event) const;
  Result<Bytes> key_of(const Binding& binding, const Event& event, BytesView value) const;
  Result<Accepted> admit(Prepared prepared);

  // step.cc
  Result<void> drain();
  Result<void> step(Delivery item);
  Result<Bytes> call(const Delivery& item, const Cells& cells);
  Result<void> check_artifact(const Module& module) const;
  struct Staged;
  Result<Staged> stage(const Delivery& item, const StepOutput& output) const;
  Result<void> commit(const Delivery& item, Cells cells, Staged staged);
  Result<void> fail_step(const Delivery& item, Cells cells, const Error& why);

  // effects.cc
  Result<Pending> admit_effect(const Delivery& item, const Emitted& emitted, uint64_t index) const;
  Result<void> open_effect(const Pending& intent, Cells& cells);
  Result<void> offer(const Pending& intent);  // to whoever does it
  static bool is_done_here(
      std::string_view effect);  // by this process, not by an executor that polls
  Result<void> drop_pending(Cells& cells);

  // receipts.cc
  Result<void> settle_receipt(const Pending& intent, Receipt receipt);
  Result<void> check_receipt(const Pending& intent, Receipt& receipt) const;
  Result<std::optional<Event>> receipt_event(const Workflow& workflow, const Pending& intent,
                                             const Receipt& receipt) const;
  Result<void> fault(const Pending& intent, const Receipt& receipt, const Moment& moment,
                     std::string code, std::string message);
  std::optional<Event> fit(const Workflow& workflow, std::string_view schema,
                           const cbor::Value& value) const;
  Result<void> check_signature(const Pending& intent, const Receipt& receipt) const;
  void unlist(Cells& cells, BytesView intent);
  static cbor::Map envelope(const Pending& intent);

  // internal.cc: effects that the engine answers itself
  struct Internal {
    std::string_view effect;
    Result<cbor::Value> (Engine::*act)(const cbor::Value& params);
    Result<cbor::Value> (Workspace::*tree)(const cbor::Value& params) const =
        nullptr;  // instead, for trees
  };
  static const Internal* internal(std::string_view effect);
  Result<void> answer_internal(const Pending& intent);
  std::optional<Bytes> recorded_refusal(BytesView intent) const;
  cbor::Value read_meta() const;
  Result<cbor::Value> do_blob_put(const cbor::Value& params);
  Result<cbor::Value> do_blob_get(const cbor::Value& params);
  Result<cbor::Value> do_introspect_head(const cbor::Value& params);
  Result<cbor::Value> do_introspect_manifest(const cbor::Value& params);
  Result<cbor::Value> do_introspect_state(const cbor::Value& params);
  Result<cbor::Value> do_introspect_cells(const cbor::Value& params);
  Result<cbor::Value> do_propose(const cbor::Value& params);
  Result<cbor::Value> do_shadow(const cbor::Value& params);
  Result<cbor::Value> do_approve(const cbor::Value& params);
  Result<cbor::Value> do_apply(const cbor::Value& params);
  Result<cbor::Value> do_workspace_resolve(const cbor::Value& params);
  Result<cbor::Value> do_workspace_root(const cbor::Value& params);

  // governance.cc, shadow.cc
  Result<Proposal> proposal(uint64_t id) const;
  Result<Patch> stored_patch(const Proposal& proposal) const;
  void save(Proposal& proposal);
  Result<Bytes> migrated(const Workflow& next, const Schemas& schemas, const Instance& instance,
                         bool migrates) const;
  Result<void> migrate(const Loaded& next, std::vector<cbor::Value>* report);
  std::optional<Bytes> recorded_report(uint64_t proposal) const;
  Result<Bytes> run_shadow(const Proposal& proposal, Loaded next, const ShadowOptions& options);
  Result<void> answer_with_stubs();
  bool report(cbor::Array& list, cbor::Value item);  // false: it has no room
  Result<cbor::Map> shadow_report(const Proposal& proposal, cbor::Array seed_errors);
  Result<void> add_deltas(cbor::Map& out, const std::map<Named, std::optional<Bytes>>& after);

  // snapshot.cc, restore.cc
  IndexStore index_store();
  struct Marked {  // a changed cell and the mark that says so
    Key mark;
    std::string workflow;
    Bytes key;
  };
  Result<std::optional<Key>> materialize(BytesView from, size_t max, size_t budget);
  Result<std::optional<Key>> take_epoch(uint64_t epoch, BytesView from, size_t& max,
                                        size_t& budget);
  Result<size_t> bring_in(const std::string& workflow, std::span<const Marked> cells,
                          size_t& budget);
  Result<Bytes> snapshot_blob();
  Result<void> list_cells(cbor::Map& blob, std::string_view name, const Key& prefix);
  Result<void> record_snapshot();
  cbor::Value recorded_here()
      const;  // what a replay follows at this height; null when there is nothing
  Result<void> replay_one(const cbor::Value& rec);
  Result<void> replay_governance(const cbor::Value& rec);

  Turn& turn_;
  Place place_;
  const Key head_at_;
  const Runtime& runtime_;
  mutable Blobs blobs_;
  std::shared_ptr<const World> world_;  // shared with the cell's cache; edit() makes a copy
  Head head_;
  std::shared_ptr<const Loaded> loaded_;  // shared with the cell's cache
  bool world_changed_ = false;
  const Recorded* recorded_ = nullptr;
  bool shadowing_ = false;

  Mailboxes mail_;
  size_t steps_ = 0;  // of this turn
  uint64_t fuel_ = 0;
  size_t bytes_ = 0;  // that its steps gave
  std::map<Named, std::optional<Bytes>>
      touched_;                     // cells written while shadowing, with their state
  std::vector<Pending> predicted_;  // effects opened while shadowing
  size_t report_left_ = 0;          // bytes that its report may still take
};

// Failures of a module and of its output are its own and recorded; only what this machine cannot do
// at all ends the turn.
inline bool is_ours(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::corrupt ||
         error.code == Code::internal;
}

// The items of a list of a snapshot. A long list lies in blobs of its own, which `part` is told of.
Result<void> walk_list(const IndexStore& store, const cbor::Value& snapshot,
                       const std::string& name,
                       const std::function<Result<void>(BytesView item)>& visit,
                       const std::function<void(BytesView digest)>& part = {});

// What a receipt's signature covers: SHA-256 of the canonical {intent_hash, status, payload}.
Bytes signed_bytes(const Receipt& receipt);
bool verify_ed25519(BytesView public_key, BytesView message, BytesView signature);

// The bundle that a world's `air` cell holds.
Bytes encode_bundle(const Manifest& manifest, const std::vector<Node>& nodes);
Result<Loaded> decode_bundle(BytesView bytes, const Builtins& builtins);

// What governance comes to, as the receipts of its effects say it.
cbor::Value proposed_receipt(const Proposal& proposal, const std::string& base);
cbor::Value shadowed_receipt(uint64_t proposal, const cbor::Value& report);
cbor::Value decided_receipt(const Proposal& proposal, bool approve, cbor::Value reason);
cbor::Value applied_receipt(const Proposal& proposal);

}  // namespace pawl::worlds
