// Worlds as a whole: create, list, look at, snapshot, fork.

#include <algorithm>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

// A fork carries the records after the snapshot in its input.
constexpr size_t kForkRecords = 100'000;
constexpr size_t kForkBytes = 64u << 20;
constexpr size_t kListed = 1000;

json::Object world_json(const World& w, const WorldHead& h) {
  json::Value runtime = runtime_json(w, h);
  json::Object out = std::move(runtime.object());
  out.add("height", h.height);
  out.add("world_epoch", w.epoch);
  out.add("snapshot_ref", w.snapshot_ref);
  out.add("snapshot_height", w.snapshot_height);
  out.add("retained_from", w.retained_from);
  out.add("engine", w.engine);
  out.add("limits",
          json::object({{"fuel", w.limits.fuel}, {"memory_bytes", w.limits.memory_bytes}}));
  if (!w.parent.empty())
    out.add("parent", json::object({{"world_id", w.parent},
                                    {"height", w.parent_height},
                                    {"effects", w.detached ? "detached" : "live"}}));
  return out;
}

// It is a part of paths, where dots alone lead elsewhere.
bool is_world_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && id != "." && id != ".." &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

Result<json::Value> Service::health(const Request&) {
  return json::object({{"status", "ok"},
                       {"service", "pawl"},
                       {"version", options_.version},
                       {"durable_seq", static_cast<uint64_t>(kernel_.durable())}});
}

Result<json::Value> Service::list_worlds(const Request& request) {
  const ReadSnapshot snapshot = kernel_.snapshot();
  TRY(uint64_t limit, query_number(request, "limit", 100, kListed));
  const std::string after = request.query_param("after").value_or("");
  json::Array worlds;
  Result<void> bad;
  TRY_OK(snapshot.scan(
      worlds_prefix(request.caller.tenant),
      [&](BytesView, const Cell& cell) {
        auto world = decode_world(cell.value());
        if (worlds.size() >= limit) return false;
        if (world && world->id <= after) return true;
        auto cell_of_head = world ? snapshot.read(head_key({request.caller.tenant, world->id}))
                                  : Result<Cell>(fail(world.error()));
        auto head = cell_of_head ? decode_head(cell_of_head->value())
                                 : Result<WorldHead>(fail(cell_of_head.error()));
        if (!head) {
          bad = fail(head.error());
          return false;
        }
        worlds.push_back(json::Value(world_json(*world, *head)));
        return true;
      },
      after.empty() ? Key() : world_key({request.caller.tenant, after})));
  TRY_OK(bad);
  return json::Value(std::move(worlds));
}

// The world's own members, and what it would be restored from.
Result<json::Value> Service::world_page(const Request& request) const {
  TRY(WorldSnapshot s, open_snapshot(request));
  json::Object out = world_json(s.world, s.head);
  out.add("runtime", runtime_json(s.world, s.head));
  TRY(json::Value baseline, baseline_json(s.snapshot, s.world_id, s.world));
  out.add("active_baseline", std::move(baseline));
  return json::Value(std::move(out));
}

Result<json::Value> Service::get_world(const Request& request) { return world_page(request); }

Result<json::Value> Service::get_manifest(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  return json::object(
      {{"journal_head", s.head.height},
       {"manifest_hash", s.loaded->hash},
       {"summary", summary_json(s.loaded->manifest)},
       {"manifest", plain_json(to_value(s.loaded->manifest, false))},
       {"routing_pre_hash", hash_text(cbor::hash_of(subscriptions_value(s.loaded->manifest)))}});
}

Result<json::Value> Service::list_defs(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  const std::vector<std::string> kinds = kinds_of(request);
  const std::string prefix = request.query_param("prefix").value_or("");
  json::Array defs;
  auto add = [&](const Node& node, const std::string& hash) {
    const std::string_view kind = kind_of(node);
    // A kind is also known without its "def".
    if (!kinds.empty() && std::none_of(kinds.begin(), kinds.end(), [&](const std::string& k) {
          return k == kind || k == kind.substr(3);
        }))
      return;
    if (!node_name(node).starts_with(prefix)) return;
    defs.push_back(json::object({{"kind", kind}, {"name", node_name(node)}, {"hash", hash}}));
  };
  for (const Node& node : s.loaded->nodes)
    add(node, node_hash(node));
  if (prefix.starts_with("sys/"))
    for (const auto& [name, row] : program_.builtins().all())
      add(row.node, row.ref_hash);
  return json::object({{"journal_head", s.head.height},
                       {"manifest_hash", s.loaded->hash},
                       {"defs", json::Value(std::move(defs))}});
}

Result<json::Value> Service::get_def(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  const std::string& kind = request.params.at(1);
  const std::string& name = request.params.at(2);
  auto shown = [&](const Node& node, const std::string& hash) {
    return json::object({{"journal_head", s.head.height},
                         {"manifest_hash", s.loaded->hash},
                         {"kind", kind_of(node)},
                         {"name", name},
                         {"hash", hash},
                         {"node_hash", node_hash(node)},
                         {"def", plain_json(to_value(node, true))}});
  };
  auto fits = [&](const Node& node) {
    return node_name(node) == name && (kind_of(node) == kind || kind_of(node) == "def" + kind);
  };
  for (const Node& node : s.loaded->nodes)
    if (fits(node)) return shown(node, node_hash(node));
  if (const Builtin* row = program_.builtins().find(name); row && fits(row->node))
    return shown(row->node, row->ref_hash);
  return fail(Code::not_found, "not_found",
              kind + " '" + name + "' is not in the manifest of world '" + s.world.id + "'");
}

Result<json::Value> Service::get_runtime(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  const WorldHead& h = s.head;
  TRY(json::Array pending, pending_json(s.snapshot, s.world_id, h, kListed));
  TRY(json::Array instances, instances_json(s.snapshot, s.world_id, h, kListed));
  json::Value runtime = runtime_json(s.world, h);
  json::Object out = std::move(runtime.object());
  out.add("height", h.height);
  out.add("logical_now_ns", h.logical_now);
  out.add("workflows", json::object({{"total", h.running + h.waiting + h.completed + h.failed},
                                     {"running", h.running},
                                     {"waiting", h.waiting},
                                     {"completed", h.completed},
                                     {"failed", h.failed},
                                     {"inflight_intents", h.inflight}}));
  out.add("quiescence", quiescence_json(h));
  out.add("steps", h.steps);
  out.add("steps_failed", h.steps_failed);
  out.add("pending_workflow_receipts", json::Value(std::move(pending)));
  out.add("workflow_instances", json::Value(std::move(instances)));
  return json::Value(std::move(out));
}

// The definitions come as {"air": [nodes]}, as {"manifest": ..., "nodes": [...]}, or by the hash of
// a manifest in the store; module bytes in "modules" by name, or in the store under their hash.
static Result<void> take_limits(const json::Value& body, wasm::Limits& out) {
  const json::Value* limits = body.find("limits");
  if (!limits || limits->is_null()) return {};
  if (!limits->is_object())
    return fail(Code::invalid, "invalid_request",
                "limits is {\"fuel\": number, \"memory_bytes\": number}");
  auto take = [&](std::string_view name, uint64_t& into, uint64_t max) -> Result<void> {
    const json::Value* v = limits->find(name);
    if (!v) return {};
    auto n = v->is_number() ? v->as_uint64() : std::nullopt;
    if (!n || *n == 0 || *n > max)
      return fail(Code::invalid, "invalid_request",
                  "limits." + std::string(name) + " is a number from 1 to " + std::to_string(max));
    into = *n;
    return {};
  };
  TRY_OK(take("fuel", out.fuel, 100'000'000'000));
  return take("memory_bytes", out.memory_bytes, uint64_t{4} << 30);
}

// The WASM that came with the request: its hashes by module name, its bytes for the store.
Result<std::map<std::string, std::string>> Service::take_modules(const json::Value& body,
                                                                 std::vector<Bytes>& blobs) const {
  std::map<std::string, std::string> out;
  const json::Value* modules = body.find("modules");
  if (!modules || modules->is_null()) return out;
  if (!modules->is_object())
    return fail(Code::invalid, "invalid_request", "modules maps module names to WASM in base64");
  for (const auto& [name, value] : modules->object()) {
    if (!value.is_string())
      return fail(Code::invalid, "invalid_request", "modules maps module names to WASM in base64");
    TRY(Bytes wasm, unbase64(value.string()));
    out[name] = hash_text(sha256(wasm));
    program_.runtime().modules.warm(wasm);
    blobs.push_back(std::move(wasm));
  }
  return out;
}

// A manifest in the body or by its hash; nodes in the body or, by their hashes, in the store.
Result<LoadedManifest> Service::load_stored(const std::string& tenant,
                                            const json::Value& body) const {
  auto stored = [&](const std::string& hash) -> Result<json::Value> {
    TRY(Bytes digest, parse_hash(hash));
    auto bytes = stored_blob(tenant, digest);
    if (!bytes && bytes.error().code == Code::not_found)
      return fail(Code::not_found, "manifest.error",
                  "manifest loader error: " + bytes.error().message);
    if (!bytes) return fail(std::move(bytes.error()));
    TRY(cbor::Value value, cbor::decode(*bytes));
    return plain_json(value);
  };
  json::Value manifest;
  const json::Value* source =
      body.find("source");  // {"kind": "manifest", "manifest_hash": ...}, as the original says it
  const json::Value* hash = source ? source->find("manifest_hash") : body.find("manifest_hash");
  if (const json::Value* given = body.find("manifest"))
    manifest = *given;
  else if (hash && hash->is_string()) {
    TRY(manifest, stored(hash->string()));
  } else {
    return fail(Code::invalid, "invalid_request",
                "say what the world runs: air, manifest with nodes, or manifest_hash");
  }
  std::vector<Node> extra;
  if (const json::Value* given = body.find("nodes"); given && given->is_array()) {
    for (const json::Value& item : given->array()) {
      TRY(Node node, parse_node(item));
      extra.push_back(std::move(node));
    }
  }
  TRY(Manifest parsed, parse_manifest(manifest));
  const FindNode near = finder(extra);
  return load(
      parsed,
      [&](const std::string& hash) -> Result<Node> {
        if (auto node = near(hash)) return node;
        TRY(json::Value node, stored(hash));
        return parse_node(node);
      },
      program_.builtins());
}

Result<CreateWorld> Service::plan_world(const Request& request, std::vector<Bytes>& blobs) {
  TRY(json::Value body, body_of(request));
  CreateWorld out;
  TRY(out.world, text_field(body, "world_id"));
  if (out.world.empty()) out.world = fresh_id("world");
  if (!is_world_id(out.world))
    return fail(Code::invalid, "invalid_request",
                "world_id takes letters, digits, '-', '_' and '.', at most 128 of them");
  out.limits = options_.limits;
  out.engine = program_.runtime().modules.engine();
  TRY_OK(take_limits(body, out.limits));
  if (const json::Value* check = body.find("check_state"); check && !check->is_null()) {
    if (!check->is_bool())
      return fail(Code::invalid, "invalid_request", "check_state is true or false");
    out.check_state = check->boolean();
  }
  AuthorOptions options;
  TRY(options.artifacts, take_modules(body, blobs));
  auto authored_here = [&](const json::Value& air) -> Result<LoadedManifest> {
    TRY(Authored authored, author(air, program_.builtins(), options));
    return load(authored.manifest, finder(authored.nodes), program_.builtins());
  };
  const json::Value* air = body.find("air");
  TRY(LoadedManifest checked, air ? authored_here(*air) : load_stored(request.caller.tenant, body));
  for (const auto& [name, hash] : options.artifacts) {
    const Module* module = checked.module(name);
    if (!module)
      return fail(Code::invalid, "invalid_request",
                  "modules names '" + name + "', which the manifest does not list");
    if (module->def.artifact != hash)
      return fail(Code::invalid, "invalid_request",
                  "the bytes of module '" + name + "' have hash " + hash +
                      ", and its definition says " + module->def.artifact);
  }
  out.bundle = encode_bundle(checked.manifest, checked.nodes);
  return out;
}

void Service::put_then(Request request, std::vector<Bytes> blobs,
                       std::move_only_function<void(Request, Result<void>)> then) {
  if (blobs.empty()) return then(std::move(request), {});
  Bytes blob = std::move(blobs.back());
  blobs.pop_back();
  const Caller caller = request.caller;
  Request shell;
  shell.caller = caller;
  submit(shell, "put_blob", std::move(blob),
         [this, request = std::move(request), blobs = std::move(blobs),
          then = std::move(then)](Result<Answer> answer) mutable {
           if (!answer) return then(std::move(request), fail(std::move(answer.error())));
           put_then(std::move(request), std::move(blobs), std::move(then));
         });
}

void Service::create_world(Request request, Respond respond) {
  std::vector<Bytes> blobs;
  auto plan = plan_world(request, blobs);
  if (!plan) return respond(refuse(plan.error()));
  request.body.clear();
  put_then(std::move(request), std::move(blobs),
           [this, body = encode(*plan), respond = std::move(respond)](Request r,
                                                                      Result<void> ready) mutable {
             if (!ready) return respond(refuse(ready.error()));
             submit(r, "create", std::move(body),
                    [this, respond = std::move(respond)](Result<Answer> answer) mutable {
                      answer_accepted(std::move(respond), 201, std::move(answer));
                    });
           });
}

void Service::checkpoint(Request request, Respond respond) {
  submit(request, "snapshot", request.params.at(0),
         [this, request, respond = std::move(respond)](Result<Answer> answer) mutable {
           auto taken =
               answer ? json::parse(answer->body) : Result<json::Value>(fail(answer.error()));
           auto page = taken ? world_page(request) : Result<json::Value>(fail(taken.error()));
           if (!page) return respond(refuse(page.error()));
           for (const json::Member& m : taken->object())
             page->object().set(m.name, m.value);
           respond(wire::json_response(200, json::print(*page)));
         });
}

void Service::compact(Request request, Respond respond) {
  auto body = body_of(request);
  const json::Value* through = body ? body->find("through") : nullptr;
  auto height = through && through->is_number() ? through->as_uint64() : std::nullopt;
  if (!height)
    return respond(
        refuse({Code::invalid, "invalid_request", "compact wants {\"through\": height}"}));
  Bytes bytes;
  Writer w(bytes);
  w.str(request.params.at(0)), w.uint(*height);
  submit(request, "compact", std::move(bytes),
         [this, respond = std::move(respond)](Result<Answer> answer) mutable {
           answer_json(std::move(respond), 200, std::move(answer));
         });
}

// The height of a snapshot by {"kind": "active_baseline" | "by_height" | "by_ref", ...}.
Result<uint64_t> Service::snapshot_named(const WorldSnapshot& s, const json::Value& which) const {
  TRY(std::string kind, choice_field(which, "kind", {"active_baseline", "by_height", "by_ref"}));
  if (kind == "active_baseline") return s.world.snapshot_height;
  TRY(std::optional<uint64_t> height, number_field(which, "height"));
  TRY(std::string ref, text_field(which, "snapshot_ref"));
  std::optional<uint64_t> found;
  TRY_OK(scan_pointers(s.snapshot, s.world_id, "s", {}, [&](uint64_t at) {
    auto payload = kind == "by_ref" ? record_at(s.snapshot, s.world_id, at)
                                    : Result<std::optional<Bytes>>(std::nullopt);
    auto record =
        payload && *payload ? cbor::decode(**payload) : Result<cbor::Value>(cbor::Value());
    if (kind == "by_height" ? at == height
                            : record && !ref.empty() && record->text_or("snapshot_ref") == ref)
      found = at;
    return !found;
  }));
  if (!found)
    return fail(Code::not_found, "not_found",
                "world '" + s.world.id + "' has no snapshot " +
                    (kind == "by_ref" ? "'" + ref + "'"
                                      : "at height " + std::to_string(height.value_or(0))));
  return *found;
}

Result<ForkWorld> Service::plan_fork(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  TRY(json::Value body, body_of(request));
  ForkWorld out;
  out.source = s.world.id;
  TRY(out.world, text_field(body, body.find("world_id") ? "world_id" : "new_world_id"));
  if (out.world.empty()) out.world = fresh_id("world");
  if (!is_world_id(out.world))
    return fail(Code::invalid, "invalid_request",
                "fork wants {\"world_id\": a new id, \"height\": where}");
  TRY(std::optional<uint64_t> height, number_field(body, "height"));
  if (const json::Value* snapshot = body.find("src_snapshot"); snapshot && !snapshot->is_null()) {
    TRY(uint64_t at, snapshot_named(s, *snapshot));
    height = at + 1;  // with its own record
  }
  out.until = height.value_or(s.head.height);
  if (out.until < 2 || out.until > s.head.height)
    return fail(Code::invalid, "invalid_request",
                "height " + std::to_string(out.until) + " is outside the journal of world '" +
                    out.source + "', which reaches from 2 to " + std::to_string(s.head.height));
  TRY(std::string effects, choice_field(body, "effects", {"detached", "live"}));
  out.live = effects == "live";
  // The newest snapshot whose record lies before the height.
  uint64_t from = 0;
  bool found = false;
  TRY_OK(scan_pointers(s.snapshot, s.world_id, "s", {}, [&](uint64_t at) {
    if (at < out.until && at >= s.world.retained_from) from = at, found = true;
    return at < out.until;
  }));
  if (!found)
    return fail(Code::not_found, "snapshot.unavailable",
                "no snapshot before height " + std::to_string(out.until) + " is kept");
  out.recorded.from = from;
  size_t bytes = 0;
  TRY(std::string receipts, choice_field(body, "receipts", {"open", "stub"}));
  const bool stub = receipts == "stub";  // answer what is open with what came later
  TRY_OK(scan_records(s.snapshot, s.world_id, from, [&](uint64_t at, BytesView payload) {
    // One more: the record before it may be the first half of what it says.
    if (at <= out.until) out.recorded.payloads.emplace_back(payload);
    if (at < out.until) {
      bytes += payload.size();
      return out.recorded.payloads.size() <= kForkRecords && bytes <= kForkBytes;
    }
    if (!stub) return false;
    auto record = cbor::decode(payload);
    if (record && record_kind(*record) == "effect_receipt")
      if (auto receipt = receipt_of(*record)) out.stubs.push_back(std::move(*receipt));
    return out.stubs.size() < kForkRecords;
  }));
  if (out.recorded.payloads.size() > kForkRecords || bytes > kForkBytes)
    return fail(Code::too_large, "snapshot.unavailable",
                "too many records lie between the snapshot at height " + std::to_string(from) +
                    " and height " + std::to_string(out.until) + ": take snapshots more often");
  auto first = out.recorded.payloads.empty() ? Result<cbor::Value>(cbor::Value())
                                             : cbor::decode(out.recorded.payloads.front());
  if (!first || record_kind(*first) != "snapshot")
    return fail(Code::corrupt, "snapshot.decode",
                "the record at height " + std::to_string(from) + " is no snapshot");
  out.snapshot_ref = first->text_or("snapshot_ref");
  return out;
}

void Service::fork_world(Request request, Respond respond) {
  auto plan = plan_fork(request);
  if (!plan) return respond(refuse(plan.error()));
  submit(request, "fork", encode(*plan),
         [this, respond = std::move(respond)](Result<Answer> answer) mutable {
           answer_accepted(std::move(respond), 201, std::move(answer));
         });
}

}  // namespace pawl::worlds
