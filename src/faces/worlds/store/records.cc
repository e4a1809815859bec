// Writes the records of a world's journal and reads back the ones that replay needs. Field names
// and their order are the original's (contract A17), because its tools read them; `step_failed` is
// Pawl's own.

#include "faces/worlds/store/records.h"

#include <algorithm>
#include <array>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/snapshot/cell_index.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

// Counts the entries while they are written, then inserts the map header before them.
class Record {
 public:
  explicit Record(std::string_view kind) { text("record_kind", kind); }
  Record& text(std::string_view name, std::string_view v) {
    key(name).text(v);
    return *this;
  }
  // Absent optionals are left out, not null: peers read the records, and their order of fields is
  // fixed.
  Record& some_text(std::string_view name, std::string_view v) {
    return v.empty() ? *this : text(name, v);
  }
  Record& bytes(std::string_view name, BytesView v) {
    key(name).bytes(v);
    return *this;
  }
  Record& uint(std::string_view name, uint64_t v) {
    key(name).uint(v);
    return *this;
  }
  Record& boolean(std::string_view name, bool v) {
    key(name).boolean(v);
    return *this;
  }
  // As an array of 32 integers: the peers' form for hashes in records.
  Record& digest(std::string_view name, BytesView v) {
    key(name).digest_array(v);
    return *this;
  }
  Record& value(std::string_view name, const Value& v) {
    key(name).raw(cbor::encode(v));
    return *this;
  }
  Record& identity(const IntentIdentity& i) {
    text("effect", i.effect)
        .some_text("effect_hash", i.effect_hash)
        .some_text("executor_module", i.executor_module);
    return some_text("executor_module_hash", i.executor_module_hash)
        .some_text("executor_entrypoint", i.executor_entrypoint);
  }
  Record& moment(const Moment& m) {
    return uint("now_ns", m.now_ns)
        .uint("logical_now_ns", m.logical_now_ns)
        .uint("journal_height", m.height)
        .bytes("entropy", entropy_of(m));
  }
  Bytes done() const {
    Bytes out;
    cbor::Out(out).map(entries_).raw(body_);
    return out;
  }

 private:
  cbor::Out key(std::string_view name) {
    ++entries_;
    cbor::Out out(body_);
    out.text(name);
    return out;
  }
  Bytes body_;
  size_t entries_ = 0;
};

// The peer's fields for bytes that lie in the store: ref and sha256 are the same hash.
void moved_fields(Record& r, std::string_view what, const StoredBytes& moved) {
  if (moved.ref.empty()) return;
  r.text(std::string(what) + "_ref", moved.ref)
      .uint(std::string(what) + "_size", moved.size)
      .text(std::string(what) + "_sha256", moved.ref);
}

std::unexpected<Error> damaged(std::string_view field) {
  return fail(Code::corrupt, "journal.error",
              "journal.error: a record lacks '" + std::string(field) + "'");
}

uint64_t number(const Value& record, std::string_view field) {
  const Value* v = record.find(field);
  return v ? v->as_uint64().value_or(0) : 0;
}
Bytes bytes_or_none(const Value& record, std::string_view field) {
  const Value* v = record.find(field);
  return v && v->is_bytes() ? v->bytes() : Bytes();
}
IntentIdentity identity_of(const Value& r) {
  return {std::string(r.text_or("effect")), std::string(r.text_or("effect_hash")),
          std::string(r.text_or("executor_module")), std::string(r.text_or("executor_module_hash")),
          std::string(r.text_or("executor_entrypoint"))};
}

}  // namespace

Bytes domain_event_record(const Event& event, const Moment& m, std::string_view hash) {
  Record r("domain_event");
  r.text("schema", event.schema).bytes("value", event.value);
  if (event.key) r.bytes("key", *event.key);
  return r.moment(m).text("event_hash", hash).text("manifest_hash", m.manifest_hash).done();
}

Bytes effect_intent_record(const PendingIntent& i, const StoredBytes& moved) {
  Record r("effect_intent");
  r.digest("intent_hash", i.intent)
      .identity(i.identity)
      .bytes("params_cbor", moved.ref.empty() ? BytesView(i.params) : BytesView());
  moved_fields(r, "params", moved);
  r.bytes("idempotency_key", i.idempotency_key);
  cbor::Map origin{
      {"origin_kind", "workflow"}, {"name", i.workflow}, {"workflow_hash", i.workflow_hash}};
  if (i.keyed) origin.emplace_back("instance_key", octets(i.key));
  if (i.issuer_ref) origin.emplace_back("issuer_ref", *i.issuer_ref);
  origin.emplace_back("emitted_at_seq", i.emitted_at_seq);
  return r.value("origin", Value(std::move(origin))).done();
}

Bytes effect_receipt_record(const IntentReceipt& receipt, const StoredBytes& moved,
                            const Moment& m) {
  Record r("effect_receipt");
  r.digest("intent_hash", receipt.intent).text("status", receipt.status);
  r.bytes("payload_cbor", moved.ref.empty() ? BytesView(receipt.payload) : BytesView());
  moved_fields(r, "payload", moved);
  if (receipt.cost_cents) r.uint("cost_cents", *receipt.cost_cents);
  return r.bytes("signature", receipt.signature)
      .moment(m)
      .text("manifest_hash", m.manifest_hash)
      .done();
}

Bytes stream_frame_record(const StreamFrame& f, const Moment& m) {
  Record r("stream_frame");
  r.digest("intent_hash", f.intent)
      .text("origin_module_id", f.origin_module_id)
      .some_text("origin_workflow_hash", f.origin_workflow_hash);
  if (f.origin_instance_key) r.bytes("origin_instance_key", *f.origin_instance_key);
  r.identity(f.identity)
      .uint("emitted_at_seq", f.emitted_at_seq)
      .uint("seq", f.seq)
      .text("frame_kind", f.kind)
      .bytes("payload_cbor", f.payload);
  return r.some_text("payload_ref", f.payload_ref)
      .bytes("signature", f.signature)
      .moment(m)
      .text("manifest_hash", m.manifest_hash)
      .done();
}

Bytes manifest_record(std::string_view manifest_hash) {
  return Record("manifest").text("manifest_hash", manifest_hash).done();
}

Bytes snapshot_record(const SnapshotRecord& s) {
  return Record("snapshot")
      .text("snapshot_ref", s.ref)
      .uint("height", s.height)
      // The peer groups worlds into universes. Pawl has one, whose id is all zeros.
      .bytes("universe_id", Bytes(16, '\0'))
      .uint("logical_time_ns", s.logical_now)
      // Equal to the height: this tells the peer that the snapshot can be a baseline.
      .uint("receipt_horizon_height", s.height)
      .text("manifest_hash", s.manifest_hash)
      .done();
}

Bytes governance_record(std::string_view what, const Value& body) {
  return Record("governance").value(what, body).done();
}

Bytes custom_record(std::string_view tag, const Value& data) {
  return Record("custom").text("tag", tag).bytes("data", cbor::encode(data)).done();
}

Bytes step_failed_record(const StepFailure& f) {
  Record r("step_failed");
  r.text("workflow", f.workflow);
  if (f.key) r.bytes("key", *f.key);
  return r.text("event_hash", f.event_hash)
      .uint("event_height", f.event_height)
      .boolean("state_present", f.had_state)
      .text("error_code", f.code)
      .text("error_message", f.message)
      .done();
}

Result<Moment> moment_of(const Value& r) {
  Moment m{number(r, "now_ns"), number(r, "logical_now_ns"), number(r, "journal_height"),
           bytes_or_none(r, "entropy"), std::string(r.text_or("manifest_hash"))};
  // A record always has the 64 bytes; only notes have the 16-byte seed.
  if (m.chance.size() != 64) return damaged("entropy");
  return m;
}

Result<IntentReceipt> receipt_of(const Value& r) {
  IntentReceipt out;
  TRY(out.intent, parse_digest_array(r.find("intent_hash")));
  out.status = r.text_or("status");
  out.payload = bytes_or_none(r, "payload_cbor");
  if (const Value* cost = r.find("cost_cents")) out.cost_cents = cost->as_uint64();
  out.signature = bytes_or_none(r, "signature");
  return out;
}

Result<StreamFrame> frame_of(const Value& r) {
  StreamFrame f;
  TRY(f.intent, parse_digest_array(r.find("intent_hash")));
  f.origin_module_id = r.text_or("origin_module_id");
  f.origin_workflow_hash = r.text_or("origin_workflow_hash");
  if (r.find("origin_instance_key"))
    f.origin_instance_key = bytes_or_none(r, "origin_instance_key");
  f.identity = identity_of(r);
  f.emitted_at_seq = number(r, "emitted_at_seq");
  f.seq = number(r, "seq");
  f.kind = r.text_or("frame_kind");
  f.payload = bytes_or_none(r, "payload_cbor");
  f.payload_ref = r.text_or("payload_ref");
  f.signature = bytes_or_none(r, "signature");
  return f;
}

std::string_view record_kind(const Value& record) { return record.text_or("record_kind"); }

// Bytes that hold CBOR are shown decoded as well, as NAME_json.
json::Value record_json(uint64_t seq, BytesView payload) {
  json::Object entry;
  entry.add("seq", seq);
  auto decoded = cbor::decode(payload);
  if (!decoded || !decoded->is_map()) return json::Value(std::move(entry));
  entry.add("kind", json::Value(record_kind(*decoded)));
  json::Object record;
  for (const auto& [key, value] : decoded->map()) {
    const std::string name = key.is_text() ? key.text() : std::string("?");
    if (name == "intent_hash")
      if (auto digest = parse_digest_array(&value)) record.add("intent_id", hash_text(*digest));
    // Shown as the uuid that the peer's clients expect.
    if (name == "universe_id") {
      record.add(name, kUniverse);
      continue;
    }
    record.add(name, plain_json(value, octets_json));
    static constexpr std::array<std::string_view, 5> kValues{"value", "params_cbor", "payload_cbor",
                                                             "data", "key"};
    if (!value.is_bytes() || std::find(kValues.begin(), kValues.end(), name) == kValues.end())
      continue;
    if (auto inner = cbor::decode(value.bytes())) record.add(name + "_json", plain_json(*inner));
  }
  entry.add("record", json::Value(std::move(record)));
  entry.add("payload_b64", base64(payload));
  return json::Value(std::move(entry));
}

}  // namespace pawl::worlds
