// The bodies of inputs, to bytes and back.

#include "faces/worlds/program.h"
#include "faces/worlds/store/fields.h"

namespace pawl::worlds {

template <class F, FieldsOf<IntentReceipt> T>
void fields(F& f, T& v) {
  f(v.intent);
  f(v.status);
  f(v.payload);
  // The number is stored even when there is none.
  bool has_cost = v.cost_cents.has_value();
  uint64_t cost_cents = v.cost_cents.value_or(0);
  f(has_cost);
  f(cost_cents);
  if constexpr (!std::is_const_v<T>)
    v.cost_cents = has_cost ? std::optional(cost_cents) : std::nullopt;
  f(v.signature);
}
template <class F, FieldsOf<StreamFrame> T>
void fields(F& f, T& v) {
  f(v.intent);
  f(v.origin_module_id);
  f(v.origin_workflow_hash);
  f(v.origin_instance_key);
  f(v.identity);
  f(v.emitted_at_seq);
  f(v.seq);
  f(v.kind);
  f(v.payload);
  f(v.payload_ref);
  f(v.signature);
}
template <class F, FieldsOf<CreateWorld> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.bundle);
  f(v.limits.fuel);
  f(v.limits.memory_bytes);
  f(v.check_state);
  f(v.engine);
}
template <class F, FieldsOf<SendEvent> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.event);
  f(v.expected_epoch);
}
template <class F, FieldsOf<SendEvents> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.events);
}
template <class F, FieldsOf<SendReceipt> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.receipt);
}
template <class F, FieldsOf<SendFrame> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.frame);
}
template <class F, FieldsOf<Govern> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.command);
  f(v.action);
  f(v.proposal);
  f(v.patch);
  f(v.description);
  f(v.approver);
  f(v.strict);
  f(v.seeds);
}
template <class F, FieldsOf<ForkWorld> T>
void fields(F& f, T& v) {
  f(v.world);
  f(v.source);
  f(v.snapshot_ref);
  f(v.until);
  f(v.recorded.from);
  f(v.recorded.payloads);
  f(v.stubs);
  f(v.live);
}
template <class F, FieldsOf<PutSecret> T>
void fields(F& f, T& v) {
  f(v.binding);
  f(v.value);
  f(v.erase);
  f(v.info);
}
template <class F, FieldsOf<SecretVersion> T>
void fields(F& f, T& v) {
  f(v.made);
  f(v.sealed);
}
template <class F, FieldsOf<SecretBinding> T>
void fields(F& f, T& v) {
  f(v.binding);
  f(v.info);
  f(v.versions);
}

namespace {

template <class T>
Result<T> decode_body(BytesView in) {
  auto body = decode_fields<T>(in, "an input of worlds");
  if (!body) return fail(Code::corrupt, "journal.error", "an input of worlds is damaged");
  return body;
}

}  // namespace

Bytes encode(const CreateWorld& v) { return encode_fields(v); }
Bytes encode(const SendEvent& v) { return encode_fields(v); }
Bytes encode(const SendEvents& v) { return encode_fields(v); }
Bytes encode(const SendReceipt& v) { return encode_fields(v); }
Bytes encode(const SendFrame& v) { return encode_fields(v); }
Bytes encode(const Govern& v) { return encode_fields(v); }
Bytes encode(const ForkWorld& v) { return encode_fields(v); }
Bytes encode(const PutSecret& v) { return encode_fields(v); }
Bytes encode(const SecretBinding& v) { return encode_fields(v); }

Result<CreateWorld> decode_create(BytesView in) { return decode_body<CreateWorld>(in); }
Result<SendEvent> decode_send(BytesView in) { return decode_body<SendEvent>(in); }
Result<SendEvents> decode_send_all(BytesView in) { return decode_body<SendEvents>(in); }
Result<SendReceipt> decode_receipt(BytesView in) { return decode_body<SendReceipt>(in); }
Result<SendFrame> decode_frame_body(BytesView in) { return decode_body<SendFrame>(in); }
Result<Govern> decode_govern(BytesView in) { return decode_body<Govern>(in); }
Result<ForkWorld> decode_fork(BytesView in) { return decode_body<ForkWorld>(in); }
Result<PutSecret> decode_put_secret(BytesView in) { return decode_body<PutSecret>(in); }
Result<SecretBinding> decode_secret(BytesView in) { return decode_body<SecretBinding>(in); }

}  // namespace pawl::worlds
