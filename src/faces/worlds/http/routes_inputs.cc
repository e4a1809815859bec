// The inputs of a world over HTTP: events, receipts, stream frames.

#include <algorithm>

#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

// A value in JSON (`value` or `value_json`), or in CBOR (`value_b64`, `value_cbor_b64`,
// `value_cbor`); nothing when the body has none of them.
struct ValueRows {
  std::string_view plain, json;
  std::array<std::string_view, 3> cbor;
};
constexpr ValueRows kEventValue{
    http::kEvent["value"],
    http::kEvent["value_json"],
    {http::kEvent["value_b64"], http::kEvent["value_cbor_b64"], http::kEvent["value_cbor"]}};
// Receipts and frames name their payloads alike.
constexpr ValueRows kPayload{http::kReceipt["payload"],
                             http::kReceipt["payload_json"],
                             {http::kReceipt["payload_b64"], http::kReceipt["payload_cbor_b64"],
                              http::kReceipt["payload_cbor"]}};

Result<std::optional<GivenValue>> find_value(const json::Value& body, const ValueRows& rows) {
  using Found = std::optional<GivenValue>;
  for (std::string_view name : rows.cbor) {
    TRY(std::optional<Bytes> cbor, bytes_field(body, name));
    if (cbor) return Found(GivenValue{std::move(cbor), {}});
  }
  const json::Value* value = body.find(rows.json);
  if (const json::Value* plain = body.find(rows.plain); plain && (!value || value->is_null()))
    value = plain;
  if (!value) return Found();
  return Found(GivenValue{{}, *value});
}

Result<GivenValue> value_of(const json::Value& body, const ValueRows& rows) {
  TRY(std::optional<GivenValue> found, find_value(body, rows));
  const std::string name(rows.plain);
  if (!found)
    return bad_request("the body lacks '" + name + "', '" + name + "_json' or '" + name + "_b64'");
  return *std::move(found);
}

// The intent as "sha256:hex", as the bare hex, or as a list of its bytes.
Result<Bytes> intent_of(const json::Value& body) {
  const wire::Member& row = http::kReceipt["intent_hash"];
  if (const json::Value* listed = body.find(row); listed && listed->is_array()) {
    TRY(std::optional<Bytes> digest, bytes_field(body, row));
    if (digest->size() != 32) return bad_request("'intent_hash' has 32 bytes");
    return *std::move(digest);
  }
  return parse_intent(body.string_or(row, body.string_or(http::kReceipt["intent_id"])));
}

// Only a receipt that went well must have a payload.
Result<GivenValue> payload_of(const json::Value& body, const std::string& status) {
  const bool mentioned =
      std::any_of(body.object().begin(), body.object().end(),
                  [](const json::Member& m) { return m.name.starts_with(kPayload.plain); });
  if (status != "ok" && !mentioned) return GivenValue{cbor::encode(cbor::Value()), {}};
  return value_of(body, kPayload);
}

// Members of an answer about something that this world accepted.
std::string accepted_members(const World& world, const std::string& correlation) {
  std::string out = ",\"world_epoch\":" + std::to_string(world.epoch);
  if (!correlation.empty()) out += ",\"correlation_id\":" + json::quote(correlation);
  return out;
}

std::string open_outcome(const InputOutcome& outcome) {
  return "{\"status\":\"" + outcome.status + "\",\"height\":" + std::to_string(outcome.height);
}

Result<IntentIdentity> parse_identity(const wire::MemberReader& body) {
  IntentIdentity out;
  TRY(out.effect, body.text(http::kFrame["effect"]));
  TRY(out.effect_hash, body.text(http::kFrame["effect_hash"]));
  TRY(out.executor_module, body.text(http::kFrame["executor_module"]));
  TRY(out.executor_module_hash, body.text(http::kFrame["executor_module_hash"]));
  TRY(out.executor_entrypoint, body.text(http::kFrame["executor_entrypoint"]));
  return out;
}

Result<StreamFrame> parse_frame(const wire::MemberReader& body) {
  StreamFrame out;
  TRY(out.intent, intent_of(body.value()));
  TRY(GivenValue payload, value_of(body.value(), kPayload));
  out.payload = frame_payload(payload);
  TRY(out.origin_instance_key, bytes_field(body.value(), http::kFrame["origin_instance_key_b64"]));
  TRY(std::optional<Bytes> signature, bytes_field(body.value(), http::kFrame["signature_b64"]));
  out.signature = signature ? *std::move(signature) : no_signature();
  TRY(std::optional<uint64_t> seq, body.count(http::kFrame["seq"]));
  TRY(std::optional<uint64_t> emitted, body.count(http::kFrame["emitted_at_seq"]));
  if (!seq) return bad_request("the body lacks 'seq': frames count from 1");
  out.seq = *seq;
  out.emitted_at_seq = emitted.value_or(0);
  TRY(out.origin_module_id, body.text(http::kFrame["origin_module_id"]));
  TRY(out.origin_workflow_hash, body.text(http::kFrame["origin_workflow_hash"]));
  TRY(out.identity, parse_identity(body));
  TRY(out.kind, body.text(http::kFrame["kind"]));
  TRY(out.payload_ref, body.text(http::kFrame["payload_ref"]));
  TRY_OK(check_payload_ref(out));
  return out;
}

}  // namespace

Result<SendEvent> HttpRoutes::parse_event(const WorldRef& world, const MemberReader& body) const {
  SendEvent out;
  out.world = world.world_id.world;
  out.event.schema = std::string(body.value().string_or(http::kEvent["schema"]));
  if (out.event.schema.empty())
    return bad_request("an event is {\"schema\": name, \"value\": ...}");
  TRY(GivenValue value, value_of(body.value(), kEventValue));
  TRY(out.event.value, service_.event_value(world, out.event.schema, value));
  TRY(out.event.key, bytes_field(body.value(), http::kEvent["key_b64"]));
  TRY(std::optional<uint64_t> epoch, body.count(http::kEvent["expected_world_epoch"]));
  out.expected_epoch = epoch.value_or(0);
  return out;
}

Result<SendEvents> HttpRoutes::parse_events(const WorldRef& world, const json::Array& list) const {
  SendEvents out{world.world_id.world, {}};
  for (const json::Value& item : list) {
    TRY(SendEvent one, parse_event(world, members_of(item)));
    out.events.push_back(std::move(one.event));
  }
  return out;
}

void HttpRoutes::send_event(Request request, Respond respond) {
  auto world = world_of(request);
  auto body = world ? body_of(request) : Result<wire::BodyReader>(fail(world.error()));
  if (!body) return respond(refuse(body.error()));
  const json::Value* batch = body->value().find(http::kEvents["events"]);
  if (!batch || !batch->is_array())
    return send_one(std::move(request), std::move(respond), *world, *body);
  auto events = parse_events(*world, batch->array());
  if (!events) return respond(refuse(events.error()));
  service_.send_events(request.caller, *events, std::string(request.header("Idempotency-Key")),
                       answer_json(std::move(respond), 202));
}

void HttpRoutes::send_one(Request request, Respond respond, const WorldRef& world,
                          const MemberReader& body) {
  auto event = parse_event(world, body);
  if (!event) return respond(refuse(event.error()));
  auto submission = body.text(http::kEvent["submission_id"]);
  if (!submission) return respond(refuse(submission.error()));
  auto correlation = body.text(http::kEvent["correlation_id"]);
  if (!correlation) return respond(refuse(correlation.error()));
  std::string once = submission->empty() ? std::string(request.header("Idempotency-Key"))
                                         : "worlds/" + event->world + "/" + *submission;
  Reply accepted =
      answer_accepted(std::move(respond), 202, *submission,
                      ",\"status\":\"accepted\"" + accepted_members(*world.world, *correlation));
  service_.send_event(
      request.caller, *event, std::move(once),
      [submission = *submission, accepted = std::move(accepted)](Result<Answer> answer) mutable {
        if (!answer && !submission.empty() && answer.error().is(kIdempotencyKeyReused))
          answer =
              fail(Code::conflict, "conflict",
                   "submission '" + submission + "' was another event: use a new submission_id");
        accepted(std::move(answer));
      });
}

Result<IntentReceipt> HttpRoutes::parse_receipt(const WorldRef& world, const PendingIntent& intent,
                                                const MemberReader& body) const {
  IntentReceipt out;
  out.intent = intent.intent;
  TRY(out.status, body.text(http::kReceipt["status"]));
  TRY(out.cost_cents, body.count(http::kReceipt["cost_cents"]));
  TRY(GivenValue payload, payload_of(body.value(), out.status));
  TRY(out.payload, service_.receipt_payload(world, intent, payload));
  TRY(std::optional<Bytes> signature,
      bytes_field(body.value(), body.value().find(http::kReceipt["signature"])
                                    ? http::kReceipt["signature"]
                                    : http::kReceipt["signature_b64"]));
  out.signature = signature ? *std::move(signature) : no_signature();
  return out;
}

void HttpRoutes::send_receipt(Request request, Respond respond) {
  auto world = world_of(request);
  auto body = world ? body_of(request) : Result<wire::BodyReader>(fail(world.error()));
  auto intent = body ? intent_of(body->value()) : Result<Bytes>(fail(body.error()));
  if (!intent) return respond(refuse(intent.error()));
  auto correlation = body->text(http::kReceipt["correlation_id"]);
  auto answer = [respond = std::move(respond),
                 more = accepted_members(*world->world, correlation.value_or(std::string()))](
                    Result<InputOutcome> outcome) mutable {
    if (!outcome) return respond(refuse(outcome.error()));
    if (outcome->status == "ignored")
      return respond(wire::json_response(
          200, "{\"status\":\"ignored\",\"reason\":\"the intent was settled before\"}"));
    respond(
        wire::json_response(202, accepted_json(open_outcome(*outcome), outcome->seq, {}, more)));
  };
  auto open = service_.find_intent(*world, *intent);
  if (!open) return answer(fail(open.error()));
  if (!*open) return answer(service_.settled_before(world->world_id, *intent));
  auto receipt = correlation ? parse_receipt(*world, **open, *body)
                             : Result<IntentReceipt>(fail(correlation.error()));
  if (!receipt) return answer(fail(receipt.error()));
  service_.settle(request.caller, *world, std::move(*receipt), std::move(answer));
}

void HttpRoutes::send_frame(Request request, Respond respond) {
  auto world = world_of(request);
  auto body = world ? body_of(request) : Result<wire::BodyReader>(fail(world.error()));
  auto frame = body ? parse_frame(*body) : Result<StreamFrame>(fail(body.error()));
  if (!frame) return respond(refuse(frame.error()));
  service_.send_frame(request.caller, {world->world_id.world, std::move(*frame)},
                      [respond = std::move(respond)](Result<InputOutcome> outcome) mutable {
                        if (!outcome) return respond(refuse(outcome.error()));
                        respond(wire::json_response(202, open_outcome(*outcome) + "}"));
                      });
}

}  // namespace pawl::worlds
