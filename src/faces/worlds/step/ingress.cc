// How an event comes in: it is made canonical, every route is tried, and only when all of them fit
// is it recorded and queued.

#include "cbor/in.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> refused(std::string why) {
  return fail(Code::invalid, "manifest.error", "manifest loader error: " + std::move(why));
}

// Receipts and frames reach a cell from its own intents only: as an event, one of these is forged.
bool is_continuation(std::string_view schema) { return schema.starts_with("sys/Effect"); }

std::unexpected<Error> forged(const std::string& schema) {
  return fail(Code::invalid, "invalid_request",
              "event schema '" + schema +
                  "' is for receipts and frames only: settle the intent at /receipts instead");
}

// The schema of the arm that a value of the workflow's whole family is.
std::string_view arm_schema(const Workflow& w, BytesView value) {
  const BytesView tag = follow(value, {"$tag"});
  cbor::In in(tag);
  const BytesView arm = in.run(3);
  for (const auto& [schema, name] : w.arms)
    if (name == arm) return schema;
  return {};
}

}  // namespace

// {"$tag": arm, "$value": value}: the arm refers to the value's schema, so this is canonical as it
// is.
static Bytes wrapped(std::string_view arm, BytesView canonical) {
  Bytes out(cbor::kSelfDescribed);
  cbor::Out(out).map(2).text("$tag").text(arm).text("$value").raw(
      canonical.substr(cbor::kSelfDescribed.size()));
  return out;
}

Result<Bytes> Engine::key_of(const Binding& b, const Event& event, BytesView value) const {
  const Workflow& w = *b.workflow;
  const BytesView found = follow(value, b.key_path);
  if (found.empty())
    return refused("event '" + event.schema + "' has no key for workflow '" + w.def.name + "'");
  auto key = normalize_bytes(Bytes(cbor::kSelfDescribed).append(found), *w.key, loaded_->schemas);
  if (!key)
    return refused("event '" + event.schema + "' key for workflow '" + w.def.name +
                   "': " + key.error().message);
  if (w.def.name.size() + key->size() > kCellNameBytes)
    return refused("event '" + event.schema + "' key for workflow '" + w.def.name + "' has " +
                   std::to_string(key->size()) + " bytes: with the workflow's name it may have " +
                   std::to_string(kCellNameBytes));
  if (event.key && *event.key != *key)
    return refused("event '" + event.schema +
                   "' carried key that differs from extracted key for workflow '" + w.def.name +
                   "'");
  return key;
}

Result<Engine::Prepared> Engine::prepare(Event event) const {
  if (is_continuation(event.schema)) return forged(event.schema);
  auto normal = normalize_bytes(event.value, event.schema, loaded_->schemas);
  if (!normal)
    return refused("event '" + event.schema +
                   "' payload failed validation: " + normal.error().message);
  Prepared out{{std::move(event.schema), std::move(*normal), std::move(event.key)}};
  auto routes = loaded_->routes.find(out.event.schema);
  if (routes == loaded_->routes.end()) return out;
  std::optional<Bytes> first;
  for (const Binding& b : routes->second) {
    const Workflow& w = *b.workflow;
    if (b.arm.empty() && !w.arms.empty() && is_continuation(arm_schema(w, out.event.value)))
      return forged(std::string(arm_schema(w, out.event.value)));
    Event delivered{
        w.def.event, b.arm.empty() ? out.event.value : wrapped(b.arm, out.event.value), {}};
    if (w.def.keyed()) {
      TRY(delivered.key,
          key_of(b, out.event,
                 b.subscribed == out.event.schema ? out.event.value : delivered.value));
      if (!first) first = delivered.key;
    } else if (out.event.key) {
      return refused("event '" + out.event.schema + "' carries a key, but workflow '" + w.def.name +
                     "' is unkeyed");
    }
    out.deliveries.emplace_back(&w, std::move(delivered));
  }
  if (!out.event.key) out.event.key = std::move(first);
  return out;
}

Result<Accepted> Engine::admit(Prepared prepared) {
  Moment moment = next_moment();
  const Digest digest = event_digest(prepared.event);
  Accepted accepted{hash_text(digest), moment.height};
  if (recorded_) TRY_OK(agree(domain_event_record(prepared.event, moment, accepted.event_hash)));
  EventNote note{prepared.event, moment, view(digest)};
  for (const auto& [workflow, event] : prepared.deliveries)
    note.cells.emplace_back(workflow->def.name, event.key ? BytesView(*event.key) : BytesView());
  turn_.note(encode_note(place_, note));
  keep_blobs(prepared.event.value, prepared.event.schema);
  ++head_.height;
  ++head_.events;
  for (auto& delivery : prepared.deliveries) {
    const bool last = &delivery == &prepared.deliveries.back();
    mail_.push({delivery.first, std::move(delivery.second), last ? std::move(moment) : moment});
  }
  return accepted;
}

Result<Accepted> Engine::accept_event(Event event) {
  TRY_OK(refuse_while_busy());
  TRY(Prepared prepared, prepare(std::move(event)));
  TRY(Accepted accepted, admit(std::move(prepared)));
  TRY_OK(drain());
  return accepted;
}

}  // namespace pawl::worlds
