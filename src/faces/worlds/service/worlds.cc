// Worlds as a whole: create, snapshot, compact, fork.

#include <algorithm>

#include "faces/worlds/air/entrypoints.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/service/service.h"
#include "faces/worlds/store/notes.h"
#include "faces/worlds/store/world_journal.h"
#include "json/text.h"
#include "wasm/inspect.h"

namespace pawl::worlds {
namespace {

// A fork carries the records after the snapshot in its input.
constexpr size_t kMaxForkRecords = 100'000;
constexpr size_t kMaxForkBytes = 64u << 20;

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "invalid_request", std::move(why));
}

// The id is a part of paths, where "." and ".." lead elsewhere.
bool is_world_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && id != "." && id != ".." &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

// Modules that come with a request must be those that the manifest names.
Result<void> check_modules(const LoadedManifest& loaded,
                           const std::map<std::string, std::string>& artifacts) {
  for (const auto& [name, hash] : artifacts) {
    const Module* module = loaded.module(name);
    if (!module) return bad("modules names '" + name + "', which the manifest does not list");
    if (module->def.artifact != hash)
      return bad("the bytes of module '" + name + "' have hash " + hash +
                 ", and its definition says " + module->def.artifact);
  }
  return {};
}

// The newest snapshot whose record lies before the height.
Result<uint64_t> snapshot_before(const WorldSnapshot& s, uint64_t height) {
  std::optional<uint64_t> found;
  TRY_OK(scan_pointers(s.snapshot, s.world_id, "s", {}, [&](uint64_t at) {
    if (at < height && at >= s.world.retained_from) found = at;
    return at < height;
  }));
  if (!found)
    return fail(Code::not_found, "snapshot.unavailable",
                "no snapshot before height " + std::to_string(height) + " is kept");
  return *found;
}

}  // namespace

// Nodes of the request are preferred over those in the store: they may not be stored yet.
Result<LoadedManifest> Service::load_stored(const std::string& tenant,
                                            const json::Value& source) const {
  auto stored = [&](const std::string& hash) -> Result<json::Value> {
    TRY(Bytes digest, parse_hash(hash));
    auto bytes = blob(tenant, digest);
    if (!bytes && bytes.error().code == Code::not_found)
      return fail(Code::not_found, "manifest.error",
                  "manifest loader error: " + bytes.error().message);
    if (!bytes) return fail(std::move(bytes.error()));
    TRY(cbor::Value value, cbor::decode(*bytes));
    return plain_json(value);
  };
  json::Value manifest;
  const json::Value* hash = source.find("manifest_hash");
  if (const json::Value* given = source.find("manifest")) {
    manifest = *given;
  } else if (hash && hash->is_string()) {
    TRY(manifest, stored(hash->string()));
  } else {
    return bad("say what the world runs: air, manifest with nodes, or manifest_hash");
  }
  std::vector<Node> extra;
  if (const json::Value* given = source.find("nodes"); given && given->is_array()) {
    for (const json::Value& item : given->array()) {
      TRY(Node node, parse_node(item));
      extra.push_back(std::move(node));
    }
  }
  TRY(Manifest parsed, parse_manifest(manifest));
  fill_hashes(parsed, extra, program_.builtins());
  const FindNode given_node = finder(extra);
  return load(
      parsed,
      [&](const std::string& node_hash) -> Result<Node> {
        if (auto node = given_node(node_hash)) return node;
        TRY(json::Value node, stored(node_hash));
        return parse_node(node);
      },
      program_.builtins());
}

// A module whose bytes are neither given nor stored is left alone: its steps fail until they are.
Result<void> Service::check_exports(const std::string& tenant, const LoadedManifest& loaded,
                                    const std::map<std::string, Bytes>& given) const {
  for (const auto& [name, entrypoints] : entrypoints_of(loaded)) {
    const Module* module = loaded.module(name);
    if (program_.runtime().modules.is_native(name) || module->def.runtime != "wasm") continue;
    Bytes stored;
    auto brought = given.find(name);
    if (brought == given.end()) {
      if (module->def.artifact == kNoHash) continue;
      TRY(Bytes digest, parse_hash(module->def.artifact));
      auto found = blob(tenant, digest);
      if (!found) continue;
      stored = std::move(*found);
    }
    auto checked =
        wasm::check_module(brought == given.end() ? stored : brought->second, entrypoints);
    if (checked) continue;
    checked.error().message = "module '" + name + "': " + checked.error().message;
    return fail(std::move(checked.error()));
  }
  return {};
}

Result<CreateWorld> Service::plan_world(const std::string& tenant, const NewWorld& world) const {
  CreateWorld out;
  out.world = world.id;
  out.limits = world.limits;
  out.engine = program_.runtime().modules.engine();
  out.check_state = world.check_state;
  AuthorOptions options;
  for (const auto& [name, wasm] : world.modules) {
    options.artifacts[name] = hash_text(sha256(wasm));
    TRY_OK(wasm::check_upload(wasm));
  }
  auto authored = [&]() -> Result<LoadedManifest> {
    TRY(Authored air, author(*world.air, program_.builtins(), options));
    return load(air.manifest, finder(air.nodes), program_.builtins());
  };
  TRY(LoadedManifest loaded, world.air ? authored() : load_stored(tenant, world.manifest));
  TRY_OK(check_modules(loaded, options.artifacts));
  TRY_OK(check_exports(tenant, loaded, world.modules));
  // Compiles the modules now, so that the first event does not wait for them.
  for (const auto& [name, wasm] : world.modules)
    program_.runtime().modules.warm(wasm);
  out.bundle = encode_bundle(loaded.manifest, loaded.nodes);
  return out;
}

// One turn per blob, one after the other, so that a large upload is not one frame. Blobs of a
// creation that fails later are garbage, which collect_garbage() erases after their grace.
void Service::put_all(const Caller& caller, std::vector<Bytes> blobs, Done<void> done) {
  if (blobs.empty()) return done({});
  Bytes blob = std::move(blobs.back());
  blobs.pop_back();
  submit(caller, "put_blob", std::move(blob),
         [this, caller, blobs = std::move(blobs),
          done = std::move(done)](Result<Answer> answer) mutable {
           if (!answer) return done(fail(std::move(answer.error())));
           put_all(caller, std::move(blobs), std::move(done));
         });
}

void Service::create_world(const Caller& caller, NewWorld world, Reply done) {
  if (world.id.empty()) world.id = new_id("world");
  if (!is_world_id(world.id))
    return done(bad("world_id takes letters, digits, '-', '_' and '.', at most 128 of them"));
  if (world.modules.empty()) return create_planned(caller, std::move(world), std::move(done));
  size_t bytes = 0;
  for (const auto& [name, wasm] : world.modules)
    bytes += wasm.size();
  compile_then(caller.tenant, bytes, std::move(done),
               [this, caller, world = std::move(world)](Reply answer) mutable {
                 create_planned(caller, std::move(world), std::move(answer));
               });
}

// The modules go into the store first, then the world is created.
void Service::create_planned(const Caller& caller, NewWorld world, Reply done) {
  auto plan = plan_world(caller.tenant, world);
  if (!plan) return done(fail(std::move(plan.error())));
  std::vector<Bytes> blobs;
  for (auto& [name, wasm] : world.modules)
    blobs.push_back(std::move(wasm));
  put_all(
      caller, std::move(blobs),
      [this, caller, body = encode(*plan), done = std::move(done)](Result<void> stored) mutable {
        if (!stored) return done(fail(std::move(stored.error())));
        submit(caller, "create", std::move(body), std::move(done));
      });
}

void Service::take_snapshot(const Caller& caller, const std::string& world, Reply done) {
  submit(caller, "snapshot", world, std::move(done));
}

struct Service::Unpointing {
  Caller caller;
  std::string world;
  ReadSnapshot snapshot;
  uint64_t next, to;  // records that are left
};

void Service::compact(const Caller& caller, const std::string& world, uint64_t through,
                      Reply done) {
  Bytes body;
  Writer w(body);
  w.str(world);
  w.uint(through);
  auto work =
      std::make_shared<Unpointing>(Unpointing{caller, world, kernel_.snapshot(), 0, through + 1});
  submit(caller, "compact", std::move(body),
         [this, work, done = std::move(done)](Result<Answer> answer) mutable {
           if (answer) run_in_compiler([this, work] { unpoint(work); });
           done(std::move(answer));
         });
}

void Service::unpoint(const std::shared_ptr<Unpointing>& work) {
  // Pointers and bytes of one turn.
  constexpr size_t kPointers = 2000, kBytes = 256 * 1024;
  const WorldId world_id{work->caller.tenant, work->world};
  std::vector<Bytes> pointers;
  size_t bytes = 0;
  auto read = work->snapshot.rows(
      kProgram, records_prefix(world_id),
      [&](BytesView key, BytesView note) {
        const uint64_t seq = read_ordered64(key.substr(key.size() - 8));
        if (seq >= work->to || pointers.size() >= kPointers || bytes >= kBytes) return false;
        each_pointer(note, [&](BytesView pointer) {
          bytes += pointer.size();
          pointers.emplace_back(pointer);
        });
        work->next = seq + 1;
        return true;
      },
      record_row(world_id, work->next));
  if (!read || pointers.empty()) return;
  Bytes body;
  Writer w(body);
  w.str(work->world);
  w.uint(pointers.size());
  for (const Bytes& pointer : pointers)
    w.str(pointer);
  submit(work->caller, "unpoint", std::move(body), [this, work](Result<Answer> answer) {
    if (answer) run_in_compiler([this, work] { unpoint(work); });
  });
}

Result<uint64_t> Service::snapshot_by_height(const WorldSnapshot& s, uint64_t height) const {
  bool found = false;
  TRY_OK(scan_pointers(s.snapshot, s.world_id, "s", {}, [&](uint64_t at) {
    found = at == height;
    return !found;
  }));
  if (!found)
    return fail(Code::not_found, "not_found",
                "world '" + s.world.id + "' has no snapshot at height " + std::to_string(height));
  return height;
}

Result<uint64_t> Service::snapshot_by_ref(const WorldSnapshot& s, const std::string& ref) const {
  std::optional<uint64_t> found;
  TRY_OK(scan_pointers(s.snapshot, s.world_id, "s", {}, [&](uint64_t at) {
    auto payload = record_at(s.snapshot, s.world_id, at);
    auto record =
        payload && *payload ? cbor::decode(**payload) : Result<cbor::Value>(cbor::Value());
    if (record && !ref.empty() && record->text_or("snapshot_ref") == ref) found = at;
    return !found;
  }));
  if (!found)
    return fail(Code::not_found, "not_found",
                "world '" + s.world.id + "' has no snapshot '" + ref + "'");
  return *found;
}

// Adds the records from out.recorded.from up to and including out.until: the record before the last
// may be the first half of what the last one says. With `stub_receipts` it also adds the receipts
// that came later.
Result<void> Service::add_records(const WorldSnapshot& s, bool stub_receipts,
                                  ForkWorld& out) const {
  size_t bytes = 0;
  std::vector<Bytes>& payloads = out.recorded.payloads;
  TRY_OK(
      scan_records(s.snapshot, s.world_id, out.recorded.from, [&](uint64_t at, BytesView payload) {
        if (at <= out.until) payloads.emplace_back(payload);
        if (at < out.until) {
          bytes += payload.size();
          return payloads.size() <= kMaxForkRecords && bytes <= kMaxForkBytes;
        }
        if (!stub_receipts) return false;
        auto record = cbor::decode(payload);
        if (record && record_kind(*record) == "effect_receipt")
          if (auto receipt = receipt_of(*record)) out.stubs.push_back(std::move(*receipt));
        return out.stubs.size() < kMaxForkRecords;
      }));
  if (payloads.size() > kMaxForkRecords || bytes > kMaxForkBytes)
    return fail(Code::too_large, "snapshot.unavailable",
                "too many records lie between the snapshot at height " +
                    std::to_string(out.recorded.from) + " and height " + std::to_string(out.until) +
                    ": take snapshots more often");
  return {};
}

Result<ForkWorld> Service::plan_fork(const WorldSnapshot& s, NewFork fork) {
  ForkWorld out;
  out.source = s.world.id;
  out.world = fork.id.empty() ? new_id("world") : std::move(fork.id);
  out.until = fork.height.value_or(s.head.height);
  out.live = fork.live;
  // A world begins with two records, its manifest and its first snapshot, which every fork needs.
  if (out.until < 2 || out.until > s.head.height)
    return bad("height " + std::to_string(out.until) + " is outside the journal of world '" +
               out.source + "', which reaches from 2 to " + std::to_string(s.head.height));
  TRY(out.recorded.from, snapshot_before(s, out.until));
  TRY_OK(add_records(s, fork.stub_receipts, out));
  auto first = out.recorded.payloads.empty() ? Result<cbor::Value>(cbor::Value())
                                             : cbor::decode(out.recorded.payloads.front());
  if (!first || record_kind(*first) != "snapshot")
    return fail(Code::corrupt, "snapshot.decode",
                "the record at height " + std::to_string(out.recorded.from) + " is no snapshot");
  out.snapshot_ref = first->text_or("snapshot_ref");
  return out;
}

void Service::fork_world(const Caller& caller, const WorldSnapshot& source, NewFork fork,
                         Reply done) {
  if (!fork.id.empty() && !is_world_id(fork.id))
    return done(bad("fork wants {\"world_id\": a new id, \"height\": where}"));
  auto plan = plan_fork(source, std::move(fork));
  if (!plan) return done(fail(std::move(plan.error())));
  submit(caller, "fork", encode(*plan), std::move(done));
}

}  // namespace pawl::worlds
