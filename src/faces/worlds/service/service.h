#pragma once
// Service has the verbs of worlds and no wire: HTTP routes and gRPC both call it. It turns typed
// arguments into inputs of the program and reads durable cells and rows. It keeps no state of its
// own. A verb that writes calls `done` once, after the turn is durable, from an unspecified thread.

#include <atomic>
#include <mutex>

#include "base/memory_budget.h"
#include "faces/worlds/program.h"
#include "faces/worlds/service/followers.h"
#include "faces/worlds/service/late_compiler.h"
#include "faces/worlds/store/reads.h"
#include "kernel/work_queue.h"
#include "runtime/background.h"

namespace pawl::worlds {

struct FaceOptions {
  // Hosts that sys/http.request may reach, as host or host:port; "*.example.com" stands for its
  // subdomains. Loopback and private addresses are reached only when they are listed.
  std::vector<std::string> http_allow{};
  // Key of 32 bytes that seals stored secrets. Without it only env: bindings work.
  Bytes secret_key{};
  // Returns an environment variable for bindings env:NAME; nothing when the operator has not
  // allowed this tenant to read it, or when it is not set.
  std::function<std::optional<std::string>(const std::string& tenant, const std::string& name)>
      environment{};
  wasm::Limits limits{};  // default of new worlds
  std::string version{};  // of the server
  ChargeFor charge{};     // counts modules that wait for the compiler
};

// One consistent view of a world.
struct WorldSnapshot {
  ReadSnapshot snapshot;
  WorldId world_id;
  World world;
  WorldHead head;
  std::shared_ptr<const LoadedManifest> loaded;
};

// The part of a world that an input needs. It is read by key, without a snapshot of the rows, and
// is never stale.
struct WorldRef {
  WorldId world_id;
  std::shared_ptr<const World> world;
  std::shared_ptr<const LoadedManifest> loaded;
};

// A value that a caller gives as CBOR, or as JSON that is read by its schema.
struct GivenValue {
  std::optional<Bytes> cbor{};
  std::optional<json::Value> json{};
};

// Answer of a receipt or a stream frame.
struct InputOutcome {
  std::string status;   // settled, ignored; accepted, dropped
  uint64_t height = 0;  // of the world; 0 when the input was ignored
  Seq seq = 0;          // of the frame that was written; 0 when nothing was written
};

// A new world. Its definitions come as AIR nodes, as {manifest, nodes}, or as {manifest_hash}.
struct NewWorld {
  std::string id{};  // empty: an id is made
  wasm::Limits limits{};
  bool check_state = true;
  std::optional<json::Value> air{};
  json::Value manifest{};                  // without `air`: see Service::load_stored
  std::map<std::string, Bytes> modules{};  // WASM by module name
};

struct NewFork {
  std::string id{};                  // empty: an id is made
  std::optional<uint64_t> height{};  // nothing: the newest
  bool live = false;                 // true: its effects go out
  bool stub_receipts = false;        // true: answers open intents with what came later
};

struct NewSecret {
  std::string binding;
  std::string info{};            // JSON; empty: as it was
  std::optional<Bytes> plain{};  // a new version
};

// The request of an executor that polls.
struct WorkRequest {
  std::string worker{};  // empty: the caller's user
  std::vector<std::string> effects{};
  uint64_t limit = 1;
  uint64_t lease_ms = 30'000;
  uint64_t wait_ms = 0;
};
// An open intent under a lease.
struct OpenWork {
  std::string world;
  PendingIntent intent;
  Time leased_until = 0;
  Result<cbor::Value> params;  // with secrets in their place
};

// Records of a world.
struct RecordQuery {
  WorldId world_id{};
  std::optional<uint64_t> from{};  // nothing: records to come
  uint64_t limit = 0;
  std::vector<std::string> kinds{};  // empty: all
};
// `next` is where the following page begins, also when no record of the wanted kinds was found.
struct RecordPage {
  uint64_t from = 0, next = 0, head = 0, retained_from = 0;
  bool gap = false;  // the first record that was asked for is compacted away
  std::vector<std::pair<uint64_t, Bytes>> entries{};  // seq and payload
};

class Service {
 public:
  Service(KernelAccess& kernel, WorkQueue& work, const WorldsProgram& program,
          Background& background, FaceOptions options);
  template <class T>
  using Done = std::move_only_function<void(Result<T>)>;

  // Reads.
  // open_snapshot() pins a snapshot of the rows: drop it soon. It and world_ref() fail with
  // not_found when there is no such world, and with `corrupt` when its definitions are missing.
  Result<WorldSnapshot> open_snapshot(const WorldId& world_id) const;
  Result<WorldRef> world_ref(const WorldId& world_id) const;
  // Null when the world has no definitions. Shared with the cell cache, which parses it once.
  Result<std::shared_ptr<const LoadedManifest>> loaded(const WorldId& world_id) const;
  // Worlds of a tenant by id, behind `after`.
  Result<std::vector<std::pair<World, WorldHead>>> list_worlds(const std::string& tenant,
                                                               const std::string& after,
                                                               uint64_t limit) const;
  // A page ends at `limit` records, at kShownBytes, or after a bounded number of records read.
  Result<RecordPage> records(const RecordQuery& query) const;
  // Loads {"manifest": ...} or {"manifest_hash": ...}; nodes from "nodes", else from the store.
  Result<LoadedManifest> load_stored(const std::string& tenant, const json::Value& source) const;
  // The same world under the manifest that a proposal leads to.
  Result<WorldRef> under_proposal(WorldRef world, uint64_t proposal) const;
  // The outcome of a govern() call by the id that its caller chose.
  Result<GovernanceCommand> command(const WorldId& world_id, const std::string& id) const;
  Result<std::vector<Proposal>> proposals(const WorldId& world_id) const;
  // not_found, or `corrupt` when the stored bytes do not have this digest.
  Result<Bytes> blob(const std::string& tenant, BytesView digest) const;
  IndexStore read_store(const std::string& tenant) const;  // read only
  Result<SecretBinding> secret(const std::string& tenant, const std::string& binding) const;
  Result<std::vector<SecretBinding>> secrets(const std::string& tenant) const;
  // Digest of the plain value of a version, counted from 1; fails without the key.
  Result<std::string> secret_digest(const SecretBinding& secret, size_t version) const;
  // The plain value of a secret, for an executor.
  Result<Bytes> reveal(const std::string& tenant, const SecretDef& secret, uint64_t version) const;
  // A copy of the params with every secret in its place, for an executor.
  Result<cbor::Value> inject_secrets(const WorldId& world_id, const LoadedManifest& loaded,
                                     cbor::Value params) const;

  // Worlds. The answers are those of the program, as JSON (program.h). Modules that come with a
  // world or as a blob are compiled before the answer, on a thread of their own: no turn and no I/O
  // thread waits for the compiler.
  void create_world(const Caller& caller, NewWorld world, Reply done);
  void take_snapshot(const Caller& caller, const std::string& world, Reply done);
  void compact(const Caller& caller, const std::string& world, uint64_t through, Reply done);
  void fork_world(const Caller& caller, const WorldSnapshot& source, NewFork fork, Reply done);
  // Height of a snapshot's record, by the snapshot's ref or by the height itself.
  Result<uint64_t> snapshot_by_ref(const WorldSnapshot& world, const std::string& ref) const;
  Result<uint64_t> snapshot_by_height(const WorldSnapshot& world, uint64_t height) const;

  // Inputs. `once` is an idempotency key; empty: none.
  Result<Bytes> event_value(const WorldRef& world, const std::string& schema,
                            const GivenValue& value) const;
  void send_event(const Caller& caller, const SendEvent& event, std::string once, Reply done);
  void send_events(const Caller& caller, const SendEvents& events, std::string once, Reply done);
  // The open intent; nothing when it is not open.
  Result<std::optional<PendingIntent>> find_intent(const WorldRef& world, BytesView intent) const;
  // The payload of a receipt as it is recorded. One that does not fit its schema is taken as it is:
  // it becomes a fault of the receipt, not of the request.
  Result<Bytes> receipt_payload(const WorldRef& world, const PendingIntent& intent,
                                const GivenValue& payload) const;
  void settle(const Caller& caller, const WorldRef& world, IntentReceipt receipt,
              Done<InputOutcome> done);
  // The outcome of a receipt for an intent that is not open: ignored when it was settled before.
  Result<InputOutcome> settled_before(const WorldId& world_id, BytesView intent) const;
  void send_frame(const Caller& caller, const SendFrame& frame, Done<InputOutcome> done);
  void govern(const Caller& caller, Govern action, Done<GovernanceCommand> done);

  // Store.
  void put_blob(const Caller& caller, Bytes bytes, Reply done);
  void collect_garbage(const Caller& caller, std::optional<Time> grace, Reply done);
  void put_secret(const Caller& caller, const NewSecret& secret, Done<SecretBinding> done);
  void delete_secret(const Caller& caller, const std::string& binding, Reply done);
  // `order` as WorldsProgram::workspace takes it.
  void edit_workspace(const Caller& caller, const json::Value& order, Reply done);

  // Work. `poll` returns a number for give_up(); 0 when the answer was given at once.
  Result<uint64_t> poll(const Caller& caller, WorkRequest request,
                        std::move_only_function<void(std::vector<OpenWork>)> done);
  void give_up(uint64_t poll) { work_.give_up(poll); }
  void release(const WorldId& world_id, BytesView intent);

  // A UUID that is unique in this process; `what` only keeps different uses apart.
  std::string new_id(std::string_view what);
  KernelAccess& kernel() const { return kernel_; }
  const WorldsProgram& program() const { return program_; }
  const FaceOptions& options() const { return options_; }
  Followers& followers() { return followers_; }
  // Callers that wait for records are answered. Waits for the compilation that runs.
  void stop();
  ~Service() { stop(); }

 private:
  void submit(const Caller& caller, std::string verb, Bytes body, Reply done,
              std::string settles = {}, std::string once = {});
  Result<Bytes> stored_value(const std::string& tenant, const SecretDef& secret,
                             uint64_t version) const;
  // Runs `next` on a thread where compilation may take long. `done` is `next`'s own answer; it gets
  // the error when too many modules wait already, or too many bytes of them.
  void compile_then(const std::string& tenant, size_t bytes, Reply done,
                    std::move_only_function<void(Reply)> next);
  void create_planned(const Caller& caller, NewWorld world, Reply done);
  Result<CreateWorld> plan_world(const std::string& tenant, const NewWorld& world) const;
  Result<void> check_exports(const std::string& tenant, const LoadedManifest& loaded,
                             const std::map<std::string, Bytes>& given) const;
  Result<void> check_proposal(const WorldId& world_id, std::string_view patch) const;
  void put_all(const Caller& caller, std::vector<Bytes> blobs, Done<void> done);
  Result<ForkWorld> plan_fork(const WorldSnapshot& source, NewFork fork);
  Result<void> add_records(const WorldSnapshot& source, bool stub_receipts, ForkWorld& out) const;
  OpenWork open_work(const Leased& leased, WorldId world_id, PendingIntent intent) const;

  KernelAccess& kernel_;
  WorkQueue& work_;
  const WorldsProgram& program_;
  FaceOptions options_;
  std::atomic<uint64_t> made_{0};
  Followers followers_;
  bool run_in_compiler(BackgroundPool::Task task);
  // Removes the pointers to the records that a compaction removed, page by page: the records are
  // read from a snapshot of before. Pointers that are left by a crash are skipped by readers.
  struct Unpointing;
  void unpoint(const std::shared_ptr<Unpointing>& work);

  std::mutex compiler_mutex_;
  std::unique_ptr<BackgroundPool> compiler_;  // null after stop()
  std::shared_ptr<LateCompiler> late_;        // shared with the modules and with its tasks
};

// An intent's hash as "sha256:hex" or as the bare hex.
Result<Bytes> parse_intent(std::string_view text);
// The payload of a stream frame has no schema.
Bytes frame_payload(const GivenValue& payload);
Result<void> check_payload_ref(const StreamFrame& frame);
// The wire's name of an error: the reason where it is one of ours, else the name of its code.
std::string_view error_name(const Error& error);
// {"inline_cbor": bytes} or {"cbor_ref": hash, ...}: a payload in the envelope of the peer.
bool is_payload_envelope(const json::Value& value);
Result<Bytes> open_payload(const json::Value& envelope, const FindBlob& blob);

}  // namespace pawl::worlds
