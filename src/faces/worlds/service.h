#pragma once
// The service turns requests into inputs and looks into answers. It keeps nothing: what it knows,
// it reads from durable cells and rows.

#include <atomic>

#include "faces/worlds/followers.h"
#include "faces/worlds/program.h"
#include "faces/worlds/store/reads.h"
#include "kernel/access.h"
#include "kernel/work_queue.h"
#include "wire/route.h"

namespace pawl::worlds {

struct FaceOptions {
  // What sys/http.request may reach, as host or host:port; "*.example.com" takes its subdomains.
  // Loopback and private addresses only when listed.
  std::vector<std::string> http_allow{};
  // 32 bytes that seal stored secrets; without it only env: bindings work.
  Bytes secret_key{};
  // The value of an environment variable, for bindings env:NAME; nothing when it is not set.
  std::function<std::optional<std::string>(const std::string& name)> environment{};
  wasm::Limits limits{};  // of new worlds that do not say
  std::string version{};  // of the server
};

class Service {
 public:
  Service(KernelAccess& kernel, WorkQueue& work, const WorldsProgram& program, FaceOptions options);
  std::vector<wire::Route> routes();
  static wire::Response refuse(const Error& error);

  // The plain value of a secret for an executor.
  Result<Bytes> reveal(const std::string& tenant, const SecretDef& secret, uint64_t version) const;
  // A copy of the params with every secret put in its place; for executors only.
  Result<cbor::Value> inject_secrets(const WorldId& world_id, const LoadedManifest& loaded,
                                     cbor::Value params) const;
  Result<std::shared_ptr<const LoadedManifest>> loaded(const WorldId& world_id) const;
  KernelAccess& kernel() const { return kernel_; }
  void stop() { followers_.stop(); }  // who waits for records is answered

  // Records of a world that somebody wants, and what there is.
  struct RecordQuery {
    WorldId world_id{};
    std::optional<uint64_t> from{};  // nothing: those that come
    uint64_t limit = 0;
    std::vector<std::string> kinds{};
  };
  struct RecordPage {
    uint64_t from = 0, next = 0, head = 0, retained_from = 0;
    bool gap = false;  // the first that was wanted is not kept any more
    std::vector<std::pair<uint64_t, Bytes>> entries{};  // seq and payload
    json::Value json() const;
  };
  const FaceOptions& options() const { return options_; }

 private:
  using Request = wire::Request;
  using Respond = wire::Respond;
  using Handle = void (Service::*)(Request, Respond);
  using Read = Result<json::Value> (Service::*)(const Request&);
  struct WorldSnapshot {  // one consistent look at a world
    ReadSnapshot snapshot;
    WorldId world_id;
    World world;
    WorldHead head;
    std::shared_ptr<const LoadedManifest> loaded;
  };

  // What an input needs to know of its world: cells by key, which are never behind; no look at
  // rows.
  struct WorldRef {
    WorldId world_id;
    std::shared_ptr<const World> world;
    std::shared_ptr<const LoadedManifest> loaded;
  };

  Result<WorldSnapshot> open_snapshot(const WorldId& world_id) const;
  Result<WorldSnapshot> open_snapshot(const Request& request) const {
    return open_snapshot(WorldId{request.caller.tenant, request.params.at(0)});
  }
  Result<WorldRef> world_ref(const Request& request) const;
  void submit(const Request& request, std::string verb, Bytes body, Reply reply,
              std::string settles = {}, std::string once = {});
  void answer_json(Respond respond, int status, Result<Answer> answer);
  // What the program says of something accepted, and what the peer says of it: under which id it
  // was taken (the caller's, or where it stands) and where it stands. `more`: further members, each
  // after its comma.
  void answer_accepted(Respond respond, int status, Result<Answer> answer,
                       std::string_view submission = {}, std::string_view more = {});
  wire::Handler bind(Handle handle);
  wire::Handler bind(Read read);
  std::string fresh_id(std::string_view what);

  // routes_worlds.cc
  Result<json::Value> health(const Request&);
  Result<json::Value> list_worlds(const Request&);
  Result<json::Value> get_world(const Request&);
  Result<json::Value> get_manifest(const Request&);
  Result<json::Value> list_defs(const Request&);
  Result<json::Value> get_def(const Request&);
  Result<json::Value> get_runtime(const Request&);
  void create_world(Request, Respond);
  void checkpoint(Request, Respond);
  void compact(Request, Respond);
  void fork_world(Request, Respond);
  Result<ForkWorld> plan_fork(const Request& request);
  Result<uint64_t> snapshot_named(const WorldSnapshot& open_snapshot,
                                  const json::Value& which) const;
  Result<json::Value> world_page(const Request& request) const;
  Result<CreateWorld> plan_world(const Request& request, std::vector<Bytes>& blobs);
  Result<std::map<std::string, std::string>> take_modules(const json::Value& body,
                                                          std::vector<Bytes>& blobs) const;
  Result<LoadedManifest> load_stored(const std::string& tenant, const json::Value& body) const;
  void put_then(Request request, std::vector<Bytes> blobs,
                std::move_only_function<void(Request, Result<void>)> then);

  // routes_inputs.cc
  void send_event(Request, Respond);
  void send_receipt(Request, Respond);
  void send_frame(Request, Respond);
  Result<SendEvent> parse_event(const WorldRef& at, const json::Value& body) const;
  Result<SendEvents> parse_events(const WorldRef& at, const json::Array& list) const;
  bool once_known(const WorldId& world_id, BytesView intent) const;

  // routes_governance.cc
  void govern(Request, Respond);
  Result<json::Value> get_command(const Request&);
  Result<json::Value> list_proposals(const Request&);
  Result<Govern> parse_govern(const WorldRef& at, const Request& request, const json::Value& body);
  Result<Bytes> patch_text(const std::string& tenant, const json::Value& patch) const;
  Result<WorldRef> proposed(WorldRef at, uint64_t proposal) const;

  // routes_state.cc
  Result<json::Value> get_state(const Request&);
  Result<json::Value> list_cells(const WorldSnapshot& open_snapshot, const Request& request,
                                 const std::string& workflow);
  Result<json::Value> journal_head(const Request&);

  // routes_journal.cc
  void journal(Request, Respond);
  void journal_wait(Request, Respond);
  void journal_stream(Request, Respond);
  Result<RecordQuery> asked_of(const Request& request) const;
  Result<RecordPage> records_from(const RecordQuery& asked) const;

  // routes_trace.cc
  Result<json::Value> trace(const Request&);
  Result<json::Value> trace_summary(const Request&);
  Result<json::Value> diagnose(const Request&);

  // routes_store.cc
  Result<Bytes> stored_blob(const std::string& tenant, BytesView digest) const;
  void put_blob(Request, Respond);
  void get_blob(Request, Respond);
  void collect(Request, Respond);
  Result<json::Value> list_secrets(const Request&);
  Result<json::Value> get_secret(const Request&);
  Result<json::Value> get_secret_version(const Request&);
  Result<json::Value> list_secret_versions(const Request&);
  Result<SecretBinding> secret_of(const Request& request) const;
  Result<PutSecret> parse_secret(const Request& request) const;
  json::Value secret_json(const SecretBinding& secret) const;
  json::Value version_json(const SecretBinding& secret, size_t number) const;
  void put_secret(Request, Respond);
  void delete_secret(Request, Respond);

  // routes_workspace.cc
  IndexStore store_of(const std::string& tenant) const;
  Result<json::Value> workspace_resolve(const Request&);
  Result<json::Value> workspace_entries(const Request&);
  Result<json::Value> workspace_entry(const Request&);
  Result<json::Value> workspace_annotations(const Request&);
  Result<json::Value> workspace_diff(const Request&);
  Result<Bytes> file_bytes(const Request&) const;
  void workspace_bytes(Request, Respond);
  void workspace_apply(Request, Respond);

  // routes_work.cc
  void poll(Request, Respond);
  void release(Request, Respond);
  json::Value work_json(const Leased& leased) const;

  KernelAccess& kernel_;
  WorkQueue& work_;
  const WorldsProgram& program_;
  FaceOptions options_;
  std::atomic<uint64_t> made_{0};
  Followers followers_{kernel_};
};

Result<json::Value> body_of(const wire::Request& request);
// A member of a body when it is there and not null; of another type it is refused, never passed
// over.
Result<std::string> text_field(const json::Value& body, std::string_view name,
                               std::string_view default_value = {});
Result<std::optional<uint64_t>> number_field(const json::Value& body, std::string_view name);
// Text that is one of these; the first is for bodies that do not say.
Result<std::string> choice_field(const json::Value& body, std::string_view name,
                                 std::initializer_list<std::string_view> choices);
// Kinds by kind= again and again, or as kinds=a,b; none: all.
std::vector<std::string> kinds_of(const wire::Request& request);
// A number of the query, no more than `most`; what is no number is refused.
Result<uint64_t> query_number(const wire::Request& request, std::string_view name,
                              uint64_t default_value, uint64_t max);

// AES-256-GCM under a key of 32 bytes; the name is bound to the text.
Result<Bytes> seal_secret(BytesView key, BytesView name, BytesView plain);
Result<Bytes> open_secret(BytesView key, BytesView name, BytesView sealed);

// A world's records from one seq on, or from the last back; and the seqs of those that `what`
// points to.
Result<void> scan_records(const ReadSnapshot& snapshot, const WorldId& world_id, uint64_t from,
                          const std::function<bool(uint64_t seq, BytesView record)>& visit);
Result<void> scan_records_back(const ReadSnapshot& snapshot, const WorldId& world_id,
                               const std::function<bool(uint64_t seq, BytesView record)>& visit);
Result<std::optional<Bytes>> record_at(const ReadSnapshot& snapshot, const WorldId& world_id,
                                       uint64_t seq);
Result<void> scan_pointers(const ReadSnapshot& snapshot, const WorldId& world_id,
                           std::string_view kind, BytesView what,
                           const std::function<bool(uint64_t seq)>& visit);
Result<void> scan_pointers_back(const ReadSnapshot& snapshot, const WorldId& world_id,
                                std::string_view kind, BytesView what,
                                const std::function<bool(uint64_t seq)>& visit);

// What a world waits for, as traces and the runtime page show it.
json::Value quiescence_json(const WorldHead& head);
json::Value meta_json(const World& world, const WorldHead& head);  // of what a read is
Result<json::Array> pending_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                 const WorldHead& head, size_t limit);
Result<json::Array> instances_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                   const WorldHead& head, size_t limit);
json::Value bytes_json(const std::optional<Bytes>& value);  // decoded CBOR, or null

}  // namespace pawl::worlds
