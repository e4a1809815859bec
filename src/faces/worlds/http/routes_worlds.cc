// Worlds as a whole over HTTP: create, list, read, snapshot, fork.

#include <algorithm>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "faces/worlds/http/peer_forms.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

constexpr size_t kMaxListed = 1000;

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

// The world's own members, and what it would be restored from.
Result<json::Object> world_page(const WorldSnapshot& s) {
  json::Object out = world_json(s.world, s.head);
  out.add("runtime", runtime_json(s.world, s.head));
  TRY(json::Value baseline, baseline_json(s.snapshot, s.world_id, s.world));
  out.add("active_baseline", std::move(baseline));
  return out;
}

Result<uint64_t> limit_field(const json::Value& limits, const wire::Member& row,
                             uint64_t default_value) {
  const json::Value* v = limits.find(row);
  const uint64_t max = static_cast<uint64_t>(*row.max);
  if (!v) return default_value;
  auto n = v->is_number() ? v->as_uint64() : std::nullopt;
  if (!n || *n == 0 || *n > max)
    return bad_request("limits." + std::string(row.name) + " is a number from 1 to " +
                       std::to_string(max));
  return *n;
}

Result<void> parse_limits(const json::Value& body, wasm::Limits& out) {
  const json::Value* limits = body.find(http::kNewWorld["limits"]);
  if (!limits || limits->is_null()) return {};
  if (!limits->is_object())
    return bad_request("limits is {\"fuel\": number, \"memory_bytes\": number}");
  TRY(out.fuel, limit_field(*limits, http::kLimits["fuel"], out.fuel));
  TRY(out.memory_bytes, limit_field(*limits, http::kLimits["memory_bytes"], out.memory_bytes));
  return {};
}

// WASM that comes with the request, by module name.
Result<std::map<std::string, Bytes>> parse_modules(const json::Value& body) {
  std::map<std::string, Bytes> out;
  const json::Value* modules = body.find(http::kNewWorld["modules"]);
  if (!modules || modules->is_null()) return out;
  if (!modules->is_object()) return bad_request("modules maps module names to WASM in base64");
  for (const auto& [name, value] : modules->object()) {
    if (!value.is_string()) return bad_request("modules maps module names to WASM in base64");
    TRY(out[name], unbase64(value.string()));
  }
  return out;
}

// A manifest with nodes, or the hash of one in the store. The peer writes the hash into
// {"source": {"kind": "manifest", "manifest_hash": ...}}.
json::Value manifest_source(const json::Value& body) {
  json::Object out;
  for (std::string_view name : {http::kNewWorld["manifest"], http::kNewWorld["nodes"]})
    if (const json::Value* given = body.find(name)) out.add(std::string(name), *given);
  const json::Value* source = body.find(http::kNewWorld["source"]);
  const wire::Member& row = http::kSource["manifest_hash"];
  if (const json::Value* hash = (source ? *source : body).find(row))
    out.add(std::string(row.name), *hash);
  return json::Value(std::move(out));
}

}  // namespace

Result<json::Value> HttpRoutes::health(const Request&) {
  return json::object({{"status", "ok"},
                       {"service", "pawl"},
                       {"version", service_.options().version},
                       {"durable_seq", static_cast<uint64_t>(service_.kernel().durable())}});
}

Result<json::Value> HttpRoutes::list_worlds(const Request& request) {
  TRY(uint64_t limit, query_number(request, http::kWorldsQuery["limit"], kMaxListed));
  TRY(auto worlds,
      service_.list_worlds(request.caller.tenant,
                           request.query_param(http::kWorldsQuery["after"]).value_or(""), limit));
  json::Array out;
  for (const auto& [world, head] : worlds)
    out.push_back(json::Value(world_json(world, head)));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::get_world(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  TRY(json::Object page, world_page(s));
  return json::Value(std::move(page));
}

Result<json::Value> HttpRoutes::get_manifest(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  return json::object(
      {{"journal_head", s.head.height},
       {"manifest_hash", s.loaded->hash},
       {"summary", summary_json(s.loaded->manifest)},
       {"manifest", plain_json(to_value(s.loaded->manifest, false))},
       {"routing_pre_hash", hash_text(cbor::hash_of(subscriptions_value(s.loaded->manifest)))}});
}

Result<json::Value> HttpRoutes::list_defs(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  const std::vector<std::string> kinds = kinds_of(request);
  const std::string prefix = request.query_param(http::kDefsQuery["prefix"]).value_or("");
  json::Array defs;
  auto add = [&](const Node& node, const std::string& hash) {
    const std::string_view kind = kind_of(node);
    // A kind may be given without its "def".
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
    for (const auto& [name, row] : service_.program().builtins().all())
      add(row.node, row.ref_hash);
  return json::object({{"journal_head", s.head.height},
                       {"manifest_hash", s.loaded->hash},
                       {"defs", json::Value(std::move(defs))}});
}

Result<json::Value> HttpRoutes::get_def(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
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
  if (const Builtin* row = service_.program().builtins().find(name); row && fits(row->node))
    return shown(row->node, row->ref_hash);
  return fail(Code::not_found, "not_found",
              kind + " '" + name + "' is not in the manifest of world '" + s.world.id + "'");
}

Result<json::Value> HttpRoutes::get_runtime(const Request& request) {
  TRY(WorldSnapshot s, snapshot_of(request));
  const WorldHead& h = s.head;
  TRY(json::Array pending, pending_json(s.snapshot, s.world_id, h, kMaxListed));
  TRY(json::Array instances, instances_json(s.snapshot, s.world_id, h, kMaxListed));
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

Result<NewWorld> HttpRoutes::parse_world(const Request& request) const {
  TRY(wire::BodyReader body, body_of(request));
  NewWorld out;
  TRY(out.id, body.text(http::kNewWorld["world_id"]));
  out.limits = service_.options().limits;
  TRY_OK(parse_limits(body.value(), out.limits));
  TRY(out.check_state, body.flag(http::kNewWorld["check_state"].name, out.check_state));
  TRY(out.modules, parse_modules(body.value()));
  if (const json::Value* air = body.value().find(http::kNewWorld["air"]))
    out.air = *air;
  else
    out.manifest = manifest_source(body.value());
  return out;
}

void HttpRoutes::create_world(Request request, Respond respond) {
  auto world = parse_world(request);
  if (!world) return respond(refuse(world.error()));
  service_.create_world(request.caller, std::move(*world),
                        answer_accepted(std::move(respond), 201));
}

void HttpRoutes::checkpoint(Request request, Respond respond) {
  service_.take_snapshot(
      request.caller, request.params.at(0),
      [this, request, respond = std::move(respond)](Result<Answer> answer) mutable {
        auto page = [&]() -> Result<json::Object> {
          if (!answer) return fail(std::move(answer.error()));
          TRY(json::Value taken, json::parse(answer->body));
          TRY(WorldSnapshot s, snapshot_of(request));
          TRY(json::Object out, world_page(s));
          for (const json::Member& m : taken.object())
            out.set(m.name, m.value);
          return out;
        }();
        if (!page) return respond(refuse(page.error()));
        respond(wire::json_response(200, json::print(json::Value(std::move(*page)))));
      });
}

void HttpRoutes::compact(Request request, Respond respond) {
  auto body = body_of(request);
  const json::Value* through = body ? body->value().find(http::kCompact["through"]) : nullptr;
  auto height = through && through->is_number() ? through->as_uint64() : std::nullopt;
  if (!height) return respond(refuse(bad_request("compact wants {\"through\": height}").error()));
  service_.compact(request.caller, request.params.at(0), *height,
                   answer_json(std::move(respond), 200));
}

Result<NewFork> HttpRoutes::parse_fork(const WorldSnapshot& source,
                                       const MemberReader& body) const {
  NewFork out;
  TRY(out.id, body.text(body.value().find(http::kFork["world_id"]) ? http::kFork["world_id"]
                                                                   : http::kFork["new_world_id"]));
  TRY(out.height, body.count(http::kFork["height"]));
  if (const json::Value* which = body.find(http::kFork["src_snapshot"])) {
    TRY(uint64_t at, snapshot_height(source, members_of(*which)));
    out.height = at + 1;  // with the snapshot's own record
  }
  TRY(std::string effects, body.choice(http::kFork["effects"]));
  out.live = effects == "live";
  TRY(std::string receipts, body.choice(http::kFork["receipts"]));
  out.stub_receipts = receipts == "stub";
  return out;
}

// The snapshot that {"kind": "active_baseline" | "by_height" | "by_ref", ...} names.
Result<uint64_t> HttpRoutes::snapshot_height(const WorldSnapshot& source,
                                             const MemberReader& which) const {
  TRY(std::string kind, which.choice(http::kSnapshotChoice["kind"]));
  if (kind == "active_baseline") return source.world.snapshot_height;
  TRY(std::optional<uint64_t> height, which.count(http::kSnapshotChoice["height"]));
  TRY(std::string ref, which.text(http::kSnapshotChoice["snapshot_ref"]));
  if (kind == "by_ref") return service_.snapshot_by_ref(source, ref);
  return service_.snapshot_by_height(source, height.value_or(0));
}

void HttpRoutes::fork_world(Request request, Respond respond) {
  auto source = snapshot_of(request);
  auto body = source ? body_of(request) : Result<wire::BodyReader>(fail(source.error()));
  auto fork = body ? parse_fork(*source, *body) : Result<NewFork>(fail(body.error()));
  if (!fork) return respond(refuse(fork.error()));
  service_.fork_world(request.caller, *source, std::move(*fork),
                      answer_accepted(std::move(respond), 201));
}

}  // namespace pawl::worlds
