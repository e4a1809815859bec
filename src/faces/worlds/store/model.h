#pragma once
// The stored state of a world. Each struct is one kind of cell; keys.h says where it stands.

#include <map>
#include <memory>
#include <optional>

#include "faces/worlds/step/abi.h"
#include "kernel/cell.h"
#include "wasm/runner.h"

namespace pawl::worlds {

struct LoadedManifest;

// The head of a world: changed by creation, apply and snapshots only.
struct World {
  std::string id;
  Time created = 0;
  std::string manifest_hash{};
  std::string engine{};  // of the WASM calls, as recorded at creation
  wasm::Limits limits{};
  bool check_state = true;  // states must fit their schema; false only for worlds of older hosts
  std::string parent{};     // the world it was forked from
  uint64_t parent_height = 0;
  bool detached = false;       // a fork whose effects do not go out
  uint64_t epoch = 1;          // grows with every applied manifest
  uint64_t retained_from = 0;  // records before it are compacted away
  std::string snapshot_ref{};  // newest snapshot
  uint64_t snapshot_height = 0;
  struct Roots {
    Bytes cells, instances;  // digests; empty: no cells
    bool operator==(const Roots&) const = default;
  };
  std::map<std::string, Roots> roots{};  // by workflow
};

// The part of a world that changes with every turn. It is kept small.
struct WorldHead {
  uint64_t height = 0;  // seq of the next record
  // Nanoseconds; never goes back, also when the clock does.
  uint64_t logical_now = 0;
  uint64_t marks = 0;  // the epoch of new dirty marks: grows when those of one go into the index
  uint64_t next_proposal = 0;
  uint64_t queued = 0;  // deliveries that wait for a further turn
  uint64_t chain = 0;   // steps since the last input from outside
  uint64_t running = 0, waiting = 0, completed = 0, failed = 0,
           inflight = 0;  // instances; open intents
  uint64_t timers = 0;
  uint64_t events = 0, intents = 0, receipts_ok = 0, receipts_error = 0, receipts_timeout = 0,
           frames = 0;
  uint64_t steps = 0, steps_failed = 0;
  uint64_t proposed = 0, shadowed = 0, approved = 0, applied = 0;

  // Not encoded: kept beside the decoded cell, to save reading two more cells. A turn that changes
  // the world or its manifest also writes the head, so these are never stale.
  std::shared_ptr<const World> world{};
  std::shared_ptr<const LoadedManifest> loaded{};
};

enum class InstanceStatus : uint8_t { running, waiting, completed, failed };
std::string_view name_of(InstanceStatus status);

struct InflightIntent {
  Bytes intent;  // 32 bytes
  std::string effect;
  uint64_t emitted_at_seq = 0;
  // Frames up to this one were accepted; a frame must have a higher seq.
  uint64_t last_stream_seq = 0;
  bool operator==(const InflightIntent&) const = default;
};

// A cell of a workflow: its state and the status of its instance. An unkeyed workflow has one cell,
// with an empty key.
struct Instance {
  std::optional<Bytes> state{};
  // waiting while `inflight` is not empty; completed and failed still take events.
  InstanceStatus status = InstanceStatus::running;
  uint64_t last_seq = 0;  // height of the last event it took
  std::string module_version{};
  std::vector<InflightIntent> inflight{};  // by emission
  std::string failure{};                   // why it failed
  uint64_t dirty = 0;  // Head::marks when it was marked for the next snapshot, plus one
};

// An intent whose receipt has not come yet.
struct PendingIntent {
  Bytes intent;
  std::string workflow, workflow_hash;
  Bytes key;
  bool keyed = false;
  IntentIdentity identity{};
  Bytes params{};
  // The derived key of 32 bytes, and the key that the module asked for (any length, may be empty).
  Bytes idempotency_key{}, requested_key{};
  std::optional<std::string> issuer_ref{};
  uint64_t emitted_at_seq = 0;
  std::string module_version{};
};

enum class ProposalState : uint8_t { submitted, shadowed, approved, rejected, applied };
std::string_view name_of(ProposalState state);  // "Submitted"

struct Proposal {
  uint64_t id = 0;
  ProposalState state = ProposalState::submitted;
  std::string patch_hash, description;
  // False: no description was given. An empty one is recorded differently.
  bool described = false;
  std::string approver{};
  std::string manifest_hash{};  // of the manifest that it leads to
  Bytes report{};               // of its last shadow, canonical CBOR
  uint64_t height = 0;          // of its newest record
};

// A delivery that waits for a further turn.
struct QueuedDelivery {
  std::string workflow;
  Bytes key;
  Event event;
  Moment moment;
};

// The outcome of a governance command, for callers that poll it.
struct GovernanceCommand {
  std::string id, kind;
  bool done = false;
  std::string code{}, message{};  // of a failure
  Bytes result{};                 // JSON
  Time at = 0;
  Bytes receipt{};  // the outcome in the form of the effect's receipt, CBOR
  uint64_t height = 0;
  std::string manifest_hash{};
};

// Decoders fail with `corrupt` and store.error.
Bytes encode(const World& v);
Bytes encode(const WorldHead& v);
Bytes encode(const Instance& v);
Bytes encode_for_snapshot(const Instance& v);  // without state and dirty mark
Bytes encode(const PendingIntent& v);
Bytes encode(const Proposal& v);
Bytes encode(const QueuedDelivery& v);
Bytes encode(const GovernanceCommand& v);
Result<World> decode_world(BytesView in);
Result<WorldHead> decode_head(BytesView in);
Result<Instance> decode_instance(BytesView in);
Result<PendingIntent> decode_pending(BytesView in);
Result<Proposal> decode_proposal(BytesView in);
Result<QueuedDelivery> decode_queued(BytesView in);
Result<GovernanceCommand> decode_command(BytesView in);

std::string instance_id(std::string_view workflow, BytesView key);  // "w/main@1::d9d9f76161"

}  // namespace pawl::worlds
