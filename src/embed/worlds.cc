// Worlds in process: the routes of the face, called without a socket.

#include <fmt/format.h>

#include "cbor/cbor.h"
#include "embed/engine_parts.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"
#include "pawl/version.h"
#include "runtime/ready_signal.h"

namespace pawl {

WorldsParts::WorldsParts(const worlds::WorldsOptions& options) {
  for (const auto& [name, module] : options.modules)
    modules.add(name, module);
}

void WorldsParts::open(Shard& shard, const worlds::WorldsOptions& options) {
  workers = std::make_unique<Workers>(shard, background);
  worlds::FaceOptions of_face;
  of_face.http_allow = options.http_allow;
  of_face.version = PAWL_VERSION;
  if (!options.http_allow.empty())
    outgoing = std::make_unique<worlds::Outgoing>(options.http_timeout_seconds);
  face = std::make_unique<worlds::Face>(shard, *workers, program, background, std::move(of_face),
                                        outgoing.get());
  shard.connect(To::worker, *workers);
  shard.connect(To::member, face->executors());
  router.add(face->routes(), face->dialects());
}

void WorldsParts::stop() {
  if (workers) workers->stop();
  if (face) face->stop();
}

namespace worlds {

namespace {

// The error of an answer in the face's dialect: {code, message}.
Error error_of(const wire::Response& answer) {
  auto body = json::parse(answer.body);
  const json::Value value = body ? *body : json::Value();
  return {wire::code_of_http(answer.status), std::string(value.string_or("code", "REFUSED")),
          std::string(value.string_or("message", answer.body))};
}

}  // namespace

Result<std::string> Worlds::call(std::string_view method, std::string_view path,
                                 std::string_view body) {
  Engine::Parts& parts = engine_.parts();
  if (!parts.worlds)
    return fail(Code::unsupported, "NO_WORLDS",
                "this engine was opened without worlds: set EngineOptions::worlds");
  wire::Request request;
  request.method = method;
  const size_t mark = path.find('?');
  request.path = path.substr(0, mark);
  if (mark != std::string_view::npos) request.query = path.substr(mark + 1);
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  request.body = body;
  request.caller = parts.caller();
  // Shared with the reply, which may still use the slot when this thread wakes.
  struct Slot {
    wire::Response answer;
    ReadySignal answered;
  };
  auto slot = std::make_shared<Slot>();
  parts.worlds->router.dispatch(std::move(request), [slot](wire::Response answer) {
    slot->answer = std::move(answer);
    slot->answered.set();
  });
  parts.shard->work(Shard::Commit::here);
  slot->answered.wait();
  if (slot->answer.stream || slot->answer.socket)
    return fail(Code::unsupported, "STREAM",
                std::string(path) + " is a stream; read the pages of /journal instead");
  if (slot->answer.status >= 400) return fail(error_of(slot->answer));
  return std::move(slot->answer.body);
}

Result<void> Worlds::create(std::string_view world, std::string_view air) {
  TRY(json::Value nodes, json::parse(air));
  const json::Value body = json::object({{"world_id", world}, {"air", std::move(nodes)}});
  TRY_OK(call("POST", "/v1/worlds", json::print(body)));
  return {};
}

Result<void> Worlds::send(std::string_view world, std::string_view schema, std::string_view value) {
  TRY(json::Value parsed, json::parse(value));
  const json::Value body = json::object({{"schema", schema}, {"value", std::move(parsed)}});
  TRY_OK(call("POST", fmt::format("/v1/worlds/{}/events", wire::percent_encode(world)),
              json::print(body)));
  return {};
}

Result<std::string> Worlds::state(std::string_view world, std::string_view workflow,
                                  std::string_view key) {
  std::string path = fmt::format("/v1/worlds/{}/state/{}", wire::percent_encode(world),
                                 wire::percent_encode(workflow));
  if (!key.empty()) {
    TRY(json::Value parsed, json::parse(key));
    path += "?key_b64=" + wire::percent_encode(base64(cbor::canonical(to_cbor(parsed))));
  }
  TRY(std::string page, call("GET", path));
  TRY(json::Value answer, json::parse(page));
  const json::Value* state = answer.find("state");
  if (!state || state->is_null())
    return fail(Code::not_found, "not_found",
                fmt::format("workflow '{}' of world '{}' has no cell {}", workflow, world, key));
  return json::print(*state);
}

namespace {

// The JSON of a member that holds CBOR in a byte string; empty when it is absent or null.
Result<std::string> json_member(const cbor::Value& envelope, std::string_view name) {
  const cbor::Value* member = envelope.find(name);
  if (!member || !member->is_bytes()) return std::string();
  TRY(cbor::Value value, cbor::decode(member->bytes()));
  return json::print(plain_json(value));
}

Result<cbor::Value> packed(std::string_view text, std::string_view what) {
  auto value = json::parse(text);
  if (!value)
    return fail(Code::invalid, "workflow.output_invalid",
                fmt::format("{} is not JSON: {}", what, value.error().message));
  return cbor::Value(cbor::Octets{cbor::canonical(to_cbor(*value))});
}

}  // namespace

Result<std::string> JsonModule::step(std::string_view entrypoint, std::string_view input) const {
  TRY(cbor::Value envelope, cbor::decode(input));
  JsonInput in;
  TRY(in.state, json_member(envelope, "state"));
  TRY(in.context, json_member(envelope, "ctx"));
  if (const cbor::Value* event = envelope.find("event")) {
    TRY(in.event, json_member(*event, "value"));
    TRY(in.key, json_member(*event, "key"));
    if (const cbor::Value* schema = event->find("schema"); schema && schema->is_text())
      in.schema = schema->text();
  }
  TRY(JsonOutput out, run(entrypoint, in));
  cbor::Array events, effects;
  for (const JsonOutput::Event& e : out.events) {
    TRY(cbor::Value value, packed(e.value, "event '" + e.schema + "'"));
    events.push_back(cbor::Value(cbor::Map{{"schema", e.schema}, {"value", std::move(value)}}));
  }
  for (const JsonOutput::Effect& e : out.effects) {
    TRY(cbor::Value params, packed(e.params, "params of effect '" + e.name + "'"));
    cbor::Map effect{{"effect", e.name}, {"params", std::move(params)}};
    if (!e.idempotency_key.empty())
      effect.emplace_back("idempotency_key", cbor::Value(cbor::Octets{e.idempotency_key}));
    effects.push_back(cbor::Value(std::move(effect)));
  }
  cbor::Value state;
  if (out.state) {
    TRY(state, packed(*out.state, "the state"));
  }
  cbor::Map all{{"state", std::move(state)},
                {"domain_events", cbor::Value(std::move(events))},
                {"effects", cbor::Value(std::move(effects))}};
  if (out.completed) all.emplace_back("status", "completed");
  return cbor::canonical(cbor::Value(std::move(all)));
}

}  // namespace worlds

}  // namespace pawl
