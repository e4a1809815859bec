#include "faces/worlds/service.h"

#include <algorithm>

#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::worlds {

Service::Service(KernelAccess& kernel, WorkQueue& work, const WorldsProgram& program,
                 FaceOptions options)
    : kernel_(kernel), work_(work), program_(program), options_(std::move(options)) {}

// {code, message}: the code is the peer's where it has one.
wire::Response Service::refuse(const Error& error) {
  static constexpr struct {
    Code code;
    int status;
    std::string_view name;
  } kKinds[] = {
      {Code::invalid, 400, "invalid_request"},
      {Code::unauthenticated, 401, "unauthenticated"},
      {Code::denied, 403, "forbidden"},
      {Code::not_found, 404, "not_found"},
      {Code::conflict, 409, "conflict"},
      {Code::precondition, 409, "conflict"},
      {Code::too_large, 413, "invalid_request"},
      {Code::unprocessable, 422, "validation_failed"},
      {Code::unsupported, 501, "not_implemented"},
      {Code::exhausted, 503, "busy"},
      {Code::unavailable, 503, "unavailable"},
      {Code::corrupt, 500, "internal_error"},
      {Code::internal, 500, "internal_error"},
  };
  int status = 500;
  std::string_view name = "internal_error";
  for (const auto& kind : kKinds)
    if (kind.code == error.code) status = kind.status, name = kind.name;
  // Our own reasons are the peer's words, in small letters; those of the kernel are not.
  const bool worded =
      !error.reason.empty() &&
      error.reason.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string::npos;
  if (error.reason == "METHOD_NOT_ALLOWED") status = 405;
  json::Object body;
  body.add("code", worded ? json::Value(error.reason) : json::Value(name));
  body.add("message", error.message);
  if (!error.detail.empty())
    if (auto detail = json::parse(error.detail)) body.add("detail", std::move(*detail));
  wire::Response response = wire::json_response(status, json::print(json::Value(std::move(body))));
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Result<json::Value> body_of(const wire::Request& request) {
  if (request.body.empty()) return json::Value(json::Object{});
  TRY(json::Value body, json::parse(request.body));
  if (!body.is_object()) return fail(Code::invalid, "invalid_request", "the body is a JSON object");
  return body;
}

static const json::Value* given(const json::Value& body, std::string_view name) {
  const json::Value* v = body.find(name);
  return v && !v->is_null() ? v : nullptr;
}

Result<std::string> text_field(const json::Value& body, std::string_view name,
                               std::string_view default_value) {
  const json::Value* v = given(body, name);
  if (!v) return std::string(default_value);
  if (!v->is_string())
    return fail(Code::invalid, "invalid_request", "'" + std::string(name) + "' is text");
  return v->string();
}

Result<std::optional<uint64_t>> number_field(const json::Value& body, std::string_view name) {
  const json::Value* v = given(body, name);
  if (!v) return std::optional<uint64_t>();
  auto number = v->is_number() ? v->as_uint64() : std::nullopt;
  if (!number)
    return fail(Code::invalid, "invalid_request",
                "'" + std::string(name) + "' is a whole number from 0 on");
  return number;
}

Result<std::string> choice_field(const json::Value& body, std::string_view name,
                                 std::initializer_list<std::string_view> choices) {
  TRY(std::string text, text_field(body, name, *choices.begin()));
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  std::string all;
  for (std::string_view choice : choices)
    all += (all.empty() ? "" : " or ") + std::string(choice);
  return fail(Code::invalid, "invalid_request",
              "'" + std::string(name) + "' is " + all + ", not '" + text.substr(0, 80) + "'");
}

std::vector<std::string> kinds_of(const wire::Request& request) {
  std::vector<std::string> out = request.query_params("kind");
  const std::string list = request.query_param("kinds").value_or("");
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<uint64_t> query_number(const wire::Request& request, std::string_view name,
                              uint64_t default_value, uint64_t max) {
  auto text = request.query_param(name);
  if (!text) return default_value;
  auto number = whole_number(*text);
  if (!number)
    return fail(Code::invalid, "invalid_request",
                std::string(name) + " is a whole number, not '" + text->substr(0, 80) + "'");
  return std::min(*number, max);
}

Result<std::shared_ptr<const LoadedManifest>> Service::loaded(const WorldId& world_id) const {
  return read_as<LoadedManifest>(kernel_, air_key(world_id), [&](BytesView in) {
    return decode_bundle(in, program_.builtins());
  });
}

static std::unexpected<Error> no_world(const std::string& id) {
  return fail(Code::not_found, "not_found",
              "world '" + id + "' does not exist; list them with GET /v1/worlds");
}

Result<Service::WorldRef> Service::world_ref(const Request& request) const {
  WorldRef out{{request.caller.tenant, request.params.at(0)}, {}, {}};
  TRY(out.world, read_as<World>(kernel_, world_key(out.world_id), decode_world));
  if (!out.world) return no_world(out.world_id.world);
  TRY(out.loaded, loaded(out.world_id));
  if (!out.loaded)
    return fail(Code::corrupt, "store.error",
                "world '" + out.world_id.world + "' has lost its definitions");
  return out;
}

Result<Service::WorldSnapshot> Service::open_snapshot(const WorldId& world_id) const {
  WorldSnapshot s{kernel_.snapshot(), world_id, {}, {}, {}};
  TRY(Cell world, s.snapshot.read(world_key(world_id)));
  if (!world.exists()) return no_world(world_id.world);
  TRY(s.world, decode_world(world.value()));
  TRY(Cell head, s.snapshot.read(head_key(world_id)));
  TRY(s.head, decode_head(head.value()));
  TRY(s.loaded, loaded(world_id));
  if (!s.loaded)
    return fail(Code::corrupt, "store.error",
                "world '" + world_id.world + "' has lost its definitions");
  return s;
}

void Service::submit(const Request& request, std::string verb, Bytes body, Reply reply,
                     std::string settles, std::string once) {
  Input input;
  input.program = kProgram;
  input.verb = std::move(verb);
  input.body = std::move(body);
  input.caller = request.caller;
  input.settles = std::move(settles);
  input.once = std::move(once);
  kernel_.submit(std::move(input), std::move(reply));
}

void Service::answer_json(Respond respond, int status, Result<Answer> answer) {
  if (!answer) return respond(refuse(answer.error()));
  respond(wire::json_response(status, std::move(answer->body)));
}

void Service::answer_accepted(Respond respond, int status, Result<Answer> answer,
                              std::string_view submission, std::string_view more) {
  if (answer) {
    const std::string offset = std::to_string(answer->seq);
    answer->body.pop_back();
    answer->body.append(more)
        .append(",\"submission_id\":")
        .append(json::quote(submission.empty() ? offset : submission));
    answer->body.append(",\"submission_offset\":")
        .append(offset)
        .append(",\"effective_partition\":0}");
  }
  answer_json(std::move(respond), status, std::move(answer));
}

wire::Handler Service::bind(Handle handle) {
  return [this, handle](Request request, Respond respond) {
    (this->*handle)(std::move(request), std::move(respond));
  };
}

wire::Handler Service::bind(Read read) {
  return [this, read](Request request, Respond respond) {
    auto answer = (this->*read)(request);
    respond(answer ? wire::json_response(200, json::print(*answer)) : refuse(answer.error()));
  };
}

// Names that nobody else has: the time, and a number that this process gives out once.
std::string Service::fresh_id(std::string_view what) {
  return uuid5(kUrlSpace, std::string(what) + "/" + std::to_string(kernel_.now()) + "/" +
                              std::to_string(made_++));
}

json::Value bytes_json(const std::optional<Bytes>& value) {
  if (!value) return {};
  auto decoded = cbor::decode(*value);
  return decoded ? plain_json(*decoded) : json::Value();
}

json::Value quiescence_json(const WorldHead& h) {
  return json::object(
      {{"non_terminal_workflow_instances", h.running + h.waiting},
       {"inflight_workflow_intents", h.inflight},
       {"pending_workflow_receipts", h.inflight},
       {"queued_effects", uint64_t{0}},
       {"workflow_queue_pending", h.queued > 0},
       {"mailbox_len", h.queued},
       {"scheduled_timers", h.timers},
       {"runtime_quiescent", h.inflight == 0 && h.queued == 0},
       {"strictly_quiescent", h.running + h.waiting == 0 && h.inflight == 0 && h.queued == 0}});
}

static uint64_t last_stream_seq(const ReadSnapshot& snapshot, const WorldId& world_id,
                                const PendingIntent& intent) {
  auto cell = snapshot.read(cell_key(world_id, intent.workflow, intent.key));
  auto instance =
      cell && cell->exists() ? decode_instance(cell->value()) : Result<Instance>(Instance{});
  if (!instance) return 0;
  for (const InflightIntent& open : instance->inflight)
    if (open.intent == intent.intent) return open.last_stream_seq;
  return 0;
}

json::Value meta_json(const World& w, const WorldHead& h) {
  return json::object({{"journal_height", h.height},
                       {"manifest_hash", w.manifest_hash},
                       {"snapshot_hash", w.snapshot_ref},
                       {"active_baseline_height", w.snapshot_height},
                       {"active_baseline_receipt_horizon_height", w.snapshot_height}});
}

Result<json::Array> pending_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                 const WorldHead& head, size_t limit) {
  json::Array out;
  TRY_OK(snapshot.scan(pending_prefix(world_id), [&](BytesView, const Cell& cell) {
    auto i = decode_pending(cell.value());
    if (!i || out.size() >= limit) return out.size() < limit;
    json::Object item;
    item.add("intent_hash", hash_text(i->intent));
    item.add("instance_id", instance_id(i->workflow, i->key));
    item.add("origin_module_id", i->workflow);
    if (i->keyed) item.add("origin_instance_key_b64", base64(i->key));
    item.add("effect", i->identity.effect);
    item.add("emitted_at_seq", i->emitted_at_seq);
    item.add("last_stream_seq", last_stream_seq(snapshot, world_id, *i));
    item.add("age_events", head.height - i->emitted_at_seq);
    item.add("params", bytes_json(i->params));
    out.push_back(json::Value(std::move(item)));
    return true;
  }));
  return out;
}

Result<json::Array> instances_json(const ReadSnapshot& snapshot, const WorldId& world_id,
                                   const WorldHead& head, size_t limit) {
  json::Array out;
  TRY_OK(snapshot.scan(cells_prefix(world_id), [&](BytesView at, const Cell& cell) {
    auto i = decode_instance(cell.value());
    if (!i || out.size() >= limit) return out.size() < limit;
    const CellAt where = cell_at(world_id, at);
    json::Array inflight;
    for (const InflightIntent& open : i->inflight)
      inflight.push_back(
          json::object({{"intent_hash", hash_text(open.intent)},
                        {"origin_module_id", where.workflow},
                        {"origin_instance_key_b64",
                         where.key.empty() ? json::Value() : json::Value(base64(where.key))},
                        {"effect", open.effect},
                        {"emitted_at_seq", open.emitted_at_seq},
                        {"last_stream_seq", open.last_stream_seq},
                        {"age_events", head.height - open.emitted_at_seq}}));
    json::Object item;
    item.add("instance_id", instance_id(where.workflow, where.key));
    item.add("status", json::Value(name_of(i->status)));
    item.add("last_processed_event_seq", i->last_seq);
    item.add("module_version", i->module_version);
    item.add("inflight_intents", json::Value(std::move(inflight)));
    if (!i->failure.empty()) item.add("failure", i->failure);
    out.push_back(json::Value(std::move(item)));
    return true;
  }));
  return out;
}

}  // namespace pawl::worlds
