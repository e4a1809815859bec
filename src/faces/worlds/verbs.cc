// The bodies of inputs, to bytes and back.

#include "faces/worlds/program.h"

namespace pawl::worlds {
namespace {

std::unexpected<Error> bad() {
  return fail(Code::corrupt, "journal.error", "an input of worlds is damaged");
}

void put(Writer& w, const std::optional<Bytes>& v) {
  w.boolean(v.has_value());
  if (v) w.str(*v);
}
std::optional<Bytes> get_optional(Reader& r) {
  if (!r.boolean()) return {};
  return Bytes(r.str());
}
void put(Writer& w, const Event& e) { w.str(e.schema), w.str(e.value), put(w, e.key); }
Event get_event(Reader& r) {
  Event e;
  e.schema = r.str();
  e.value = r.str();
  e.key = get_optional(r);
  return e;
}
void put(Writer& w, const IntentReceipt& v) {
  w.str(v.intent), w.str(v.status), w.str(v.payload), w.boolean(v.cost_cents.has_value()),
      w.uint(v.cost_cents.value_or(0)), w.str(v.signature);
}
IntentReceipt get_receipt(Reader& r) {
  IntentReceipt v;
  v.intent = r.str();
  v.status = r.str();
  v.payload = r.str();
  const bool cost = r.boolean();
  const uint64_t cents = r.uint();
  if (cost) v.cost_cents = cents;
  v.signature = r.str();
  return v;
}

}  // namespace

Bytes encode(const CreateWorld& v) {
  Bytes out;
  Writer w(out);
  w.str(v.world), w.str(v.bundle), w.uint(v.limits.fuel), w.uint(v.limits.memory_bytes),
      w.boolean(v.check_state), w.str(v.engine);
  return out;
}
Result<CreateWorld> decode_create(BytesView in) {
  Reader r(in);
  CreateWorld v;
  v.world = r.str();
  v.bundle = r.str();
  v.limits.fuel = r.uint();
  v.limits.memory_bytes = r.uint();
  v.check_state = r.boolean();
  v.engine = r.str();
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const SendEvent& v) {
  Bytes out;
  Writer w(out);
  w.str(v.world), put(w, v.event), w.uint(v.expected_epoch);
  return out;
}
Result<SendEvent> decode_send(BytesView in) {
  Reader r(in);
  SendEvent v;
  v.world = r.str();
  v.event = get_event(r);
  v.expected_epoch = r.uint();
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const SendEvents& v) {
  Bytes out;
  Writer w(out);
  w.str(v.world), w.uint(v.events.size());
  for (const Event& e : v.events)
    put(w, e);
  return out;
}
Result<SendEvents> decode_send_all(BytesView in) {
  Reader r(in);
  SendEvents v;
  v.world = r.str();
  v.events.resize(r.count());
  for (Event& e : v.events)
    e = get_event(r);
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const SendReceipt& v) {
  Bytes out;
  Writer w(out);
  w.str(v.world), put(w, v.receipt);
  return out;
}
Result<SendReceipt> decode_receipt(BytesView in) {
  Reader r(in);
  SendReceipt v;
  v.world = r.str();
  v.receipt = get_receipt(r);
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const SendFrame& v) {
  Bytes out;
  Writer w(out);
  const StreamFrame& f = v.frame;
  w.str(v.world), w.str(f.intent), w.str(f.origin_module_id), w.str(f.origin_workflow_hash),
      put(w, f.origin_instance_key);
  for (const std::string* text :
       {&f.identity.effect, &f.identity.effect_hash, &f.identity.executor_module,
        &f.identity.executor_module_hash, &f.identity.executor_entrypoint})
    w.str(*text);
  w.uint(f.emitted_at_seq), w.uint(f.seq), w.str(f.kind), w.str(f.payload), w.str(f.payload_ref),
      w.str(f.signature);
  return out;
}
Result<SendFrame> decode_frame_body(BytesView in) {
  Reader r(in);
  SendFrame v;
  StreamFrame& f = v.frame;
  v.world = r.str();
  f.intent = r.str();
  f.origin_module_id = r.str();
  f.origin_workflow_hash = r.str();
  f.origin_instance_key = get_optional(r);
  for (std::string* text :
       {&f.identity.effect, &f.identity.effect_hash, &f.identity.executor_module,
        &f.identity.executor_module_hash, &f.identity.executor_entrypoint})
    *text = r.str();
  f.emitted_at_seq = r.uint();
  f.seq = r.uint();
  f.kind = r.str();
  f.payload = r.str();
  f.payload_ref = r.str();
  f.signature = r.str();
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const Govern& v) {
  Bytes out;
  Writer w(out);
  w.str(v.world), w.str(v.command), w.str(v.action), w.uint(v.proposal), w.str(v.patch),
      put(w, v.description), w.str(v.approver), w.boolean(v.strict);
  w.uint(v.seeds.size());
  for (const Event& e : v.seeds)
    put(w, e);
  return out;
}
Result<Govern> decode_govern(BytesView in) {
  Reader r(in);
  Govern v;
  v.world = r.str();
  v.command = r.str();
  v.action = r.str();
  v.proposal = r.uint();
  v.patch = r.str();
  v.description = get_optional(r);
  v.approver = r.str();
  v.strict = r.boolean();
  v.seeds.resize(r.count());
  for (Event& e : v.seeds)
    e = get_event(r);
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const ForkWorld& v) {
  Bytes out;
  Writer w(out);
  w.str(v.world), w.str(v.source), w.str(v.snapshot_ref), w.uint(v.until), w.uint(v.recorded.from),
      w.uint(v.recorded.payloads.size());
  for (const Bytes& payload : v.recorded.payloads)
    w.str(payload);
  w.uint(v.stubs.size());
  for (const IntentReceipt& receipt : v.stubs)
    put(w, receipt);
  w.boolean(v.live);
  return out;
}
Result<ForkWorld> decode_fork(BytesView in) {
  Reader r(in);
  ForkWorld v;
  v.world = r.str();
  v.source = r.str();
  v.snapshot_ref = r.str();
  v.until = r.uint();
  v.recorded.from = r.uint();
  v.recorded.payloads.resize(r.count());
  for (Bytes& payload : v.recorded.payloads)
    payload = r.str();
  v.stubs.resize(r.count());
  for (IntentReceipt& receipt : v.stubs)
    receipt = get_receipt(r);
  v.live = r.boolean();
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const PutSecret& v) {
  Bytes out;
  Writer w(out);
  w.str(v.binding), w.str(v.value), w.boolean(v.erase), w.str(v.info);
  return out;
}
Result<PutSecret> decode_put_secret(BytesView in) {
  Reader r(in);
  PutSecret v;
  v.binding = r.str();
  v.value = r.str();
  v.erase = r.boolean();
  v.info = r.str();
  if (!r.done()) return bad();
  return v;
}

Bytes encode(const SecretBinding& v) {
  Bytes out;
  Writer w(out);
  w.str(v.binding), w.str(v.info), w.uint(v.versions.size());
  for (const auto& [at, sealed] : v.versions)
    w.sint(at), w.str(sealed);
  return out;
}
Result<SecretBinding> decode_secret(BytesView in) {
  Reader r(in);
  SecretBinding v;
  v.binding = r.str();
  v.info = r.str();
  v.versions.resize(r.count());
  for (auto& [at, sealed] : v.versions)
    at = r.sint(), sealed = r.str();
  if (!r.done()) return bad();
  return v;
}

}  // namespace pawl::worlds
