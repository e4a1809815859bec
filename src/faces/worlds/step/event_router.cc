#include "faces/worlds/step/event_router.h"

#include "cbor/in.h"
#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> refused(std::string why) {
  return fail(Code::invalid, "manifest.error", "manifest loader error: " + std::move(why));
}

// A cell gets receipts and frames from its own intents only. An event with such a schema is forged.
bool is_continuation(std::string_view schema) { return schema.starts_with("sys/Effect"); }

std::unexpected<Error> forged(const std::string& schema) {
  return fail(Code::invalid, kForgedEvent,
              "event schema '" + schema +
                  "' is for receipts and frames only: settle the intent at /receipts instead");
}

// The schema of the arm that is tagged in a value of the workflow's event variant; empty when no
// arm is.
std::string_view arm_schema(const Workflow& w, BytesView value) {
  const BytesView tag = follow(value, {"$tag"});
  cbor::In in(tag);
  const BytesView arm = in.run(3);
  for (const auto& [schema, name] : w.arms)
    if (name == arm) return schema;
  return {};
}

}  // namespace

// {"$tag": arm, "$value": value}. The arm refers to the value's schema, so the result is canonical.
static Bytes wrapped(std::string_view arm, BytesView canonical) {
  Bytes out(cbor::kSelfDescribed);
  cbor::Out(out).map(2).text("$tag").text(arm).text("$value").raw(
      canonical.substr(cbor::kSelfDescribed.size()));
  return out;
}

Result<Bytes> EventRouter::key_of(const Binding& b, const Event& event, BytesView value) const {
  const Workflow& w = *b.workflow;
  const BytesView found = follow(value, b.key_path);
  if (found.empty())
    return refused("event '" + event.schema + "' has no key for workflow '" + w.def.name + "'");
  auto key =
      normalize_bytes(Bytes(cbor::kSelfDescribed).append(found), *w.key, turn_.loaded().schemas);
  if (!key)
    return refused("event '" + event.schema + "' key for workflow '" + w.def.name +
                   "': " + key.error().message);
  if (w.def.name.size() + key->size() > kMaxCellNameBytes)
    return refused("event '" + event.schema + "' key for workflow '" + w.def.name + "' has " +
                   std::to_string(key->size()) + " bytes: with the workflow's name it may have " +
                   std::to_string(kMaxCellNameBytes));
  if (event.key && *event.key != *key)
    return refused("event '" + event.schema +
                   "' carried key that differs from extracted key for workflow '" + w.def.name +
                   "'");
  return key;
}

Result<Event> EventRouter::delivery(const Binding& b, const Event& event) const {
  const Workflow& w = *b.workflow;
  if (b.arm.empty() && !w.arms.empty() && is_continuation(arm_schema(w, event.value)))
    return forged(std::string(arm_schema(w, event.value)));
  Event out{w.def.event, b.arm.empty() ? event.value : wrapped(b.arm, event.value), {}};
  if (w.def.keyed()) {
    TRY(out.key, key_of(b, event, b.subscribed == event.schema ? event.value : out.value));
  } else if (event.key) {
    return refused("event '" + event.schema + "' carries a key, but workflow '" + w.def.name +
                   "' is unkeyed");
  }
  return out;
}

Result<PreparedEvent> EventRouter::prepare(Event event) const {
  if (is_continuation(event.schema)) return forged(event.schema);
  auto normal = normalize_bytes(event.value, event.schema, turn_.loaded().schemas);
  if (!normal)
    return refused("event '" + event.schema +
                   "' payload failed validation: " + normal.error().message);
  PreparedEvent out{{std::move(event.schema), std::move(*normal), std::move(event.key)}};
  const auto& routes = turn_.loaded().routes;
  auto bindings = routes.find(out.event.schema);
  if (bindings == routes.end()) return out;
  std::optional<Bytes> first_key;
  for (const Binding& b : bindings->second) {
    TRY(Event delivered, delivery(b, out.event));
    if (!first_key) first_key = delivered.key;
    out.deliveries.emplace_back(b.workflow, std::move(delivered));
  }
  if (!out.event.key) out.event.key = std::move(first_key);
  return out;
}

Result<AcceptedEvent> EventRouter::admit(PreparedEvent prepared) {
  Moment moment = turn_.next_moment();
  const Digest digest = event_digest(prepared.event);
  AcceptedEvent accepted{hash_text(digest), moment.height};
  if (turn_.recorded)
    TRY_OK(turn_.check_replay(domain_event_record(prepared.event, moment, accepted.event_hash)));
  EventNote note{prepared.event, moment, view(digest)};
  for (const auto& [workflow, event] : prepared.deliveries)
    note.cells.emplace_back(workflow->def.name, event.key ? BytesView(*event.key) : BytesView());
  turn_.kernel.note(encode_note(turn_.id, note));
  turn_.keep_blobs(prepared.event.value, prepared.event.schema);
  ++turn_.head.height;
  ++turn_.head.events;
  for (auto& delivery : prepared.deliveries) {
    const bool last = &delivery == &prepared.deliveries.back();
    turn_.mail.push(
        {delivery.first, std::move(delivery.second), last ? std::move(moment) : moment});
  }
  return accepted;
}

}  // namespace pawl::worlds
