// How an event comes in: it is made canonical, every route is tried, and only when all of them fit is
// it recorded and queued.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/engine.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> refused(std::string why) { return fail(Code::invalid, "manifest.error", "manifest loader error: " + std::move(why)); }

}  // namespace

Result<Engine::Prepared> Engine::prepare(Event event) const {
  const Schemas& schemas = loaded_->schemas;
  auto decoded = cbor::decode(event.value);
  auto normal = decoded ? normalize_named(*decoded, event.schema, schemas) : Result<cbor::Value>(fail(decoded.error()));
  if (!normal) return refused("event '" + event.schema + "' payload failed validation: " + normal.error().message);
  Prepared out;
  out.event = {event.schema, cbor::canonical(*normal), event.key};
  auto routes = loaded_->routes.find(event.schema);
  if (routes == loaded_->routes.end()) return out;
  for (const Binding& b : routes->second) {
    const Workflow& w = *b.workflow;
    const cbor::Value* seen = &*normal;  // as the workflow sees it
    Result<cbor::Value> fitted = cbor::Value();
    Event delivered{w.def.event, out.event.value, {}};
    if (w.def.event != event.schema) {
      fitted = b.arm.empty() ? normalize(*normal, *w.event, schemas) : normalize(cbor::Map{{"$tag", b.arm}, {"$value", *normal}}, *w.event, schemas);
      if (!fitted) return refused("event '" + event.schema + "' payload failed validation: " + fitted.error().message);
      delivered.value = cbor::canonical(*fitted);
      seen = &*fitted;
    }
    if (w.def.keyed()) {
      const cbor::Value* found = follow(b.subscribed == event.schema ? *normal : *seen, b.key_path);
      if (!found) return refused("event '" + event.schema + "' has no key for workflow '" + w.def.name + "'");
      auto key = normalize(*found, *w.key, schemas);
      if (!key) return refused("event '" + event.schema + "' key for workflow '" + w.def.name + "': " + key.error().message);
      delivered.key = cbor::canonical(*key);
      if (event.key && *event.key != *delivered.key)
        return refused("event '" + event.schema + "' carried key that differs from extracted key for workflow '" + w.def.name + "'");
      if (!out.event.key) out.event.key = delivered.key;
    } else if (event.key) {
      return refused("event '" + event.schema + "' carries a key, but workflow '" + w.def.name + "' is unkeyed");
    }
    out.deliveries.emplace_back(&w, std::move(delivered));
  }
  return out;
}

Result<Accepted> Engine::admit(Prepared prepared) {
  const Moment moment = next_moment();
  const Accepted accepted{event_hash(prepared.event), moment.height};
  std::vector<std::pair<std::string, Bytes>> index{{"e", accepted.event_hash}};
  for (const auto& [workflow, event] : prepared.deliveries)
    index.emplace_back("c", instance_id(workflow->def.name, event.key ? *event.key : Bytes()));
  TRY_OK(record(domain_event_record(prepared.event, moment, accepted.event_hash), std::move(index)));
  ++head_.events;
  for (auto& [workflow, event] : prepared.deliveries) {
    Bytes key = event.key ? *event.key : Bytes();
    push({workflow, std::move(key), std::move(event), moment});
  }
  return accepted;
}

Result<Accepted> Engine::accept_event(Event event) {
  TRY_OK(refuse_while_busy());
  if (event.schema.starts_with("sys/Effect"))
    return fail(Code::invalid, "invalid_request", "event schema '" + event.schema + "' is for receipts and frames only: settle the intent at /receipts instead");
  TRY(Prepared prepared, prepare(std::move(event)));
  TRY(Accepted accepted, admit(std::move(prepared)));
  TRY_OK(drain());
  return accepted;
}

}  // namespace pawl::worlds
