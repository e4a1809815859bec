#pragma once
// The records of a world's journal. Each is a CBOR map that begins with `record_kind`. Records are
// notes of kernel frames; the view puts them into rows.

#include "faces/worlds/store/keys.h"
#include "faces/worlds/store/model.h"
#include "json/value.h"

namespace pawl::worlds {

Bytes domain_event_record(const Event& event, const Moment& moment, std::string_view hash);

// Large params and payloads lie in the store; the record then names their blob.
struct StoredBytes {
  std::string ref;  // hash text; empty: the bytes are in the record
  uint64_t size = 0;
};
Bytes effect_intent_record(const PendingIntent& intent, const StoredBytes& moved);

struct IntentReceipt {
  Bytes intent;
  std::string status;  // ok, error, timeout
  Bytes payload;
  std::optional<uint64_t> cost_cents{};
  Bytes signature{};
};
// The signature of a receipt or frame that nobody signed.
inline Bytes no_signature() { return Bytes(64, '\0'); }
Bytes effect_receipt_record(const IntentReceipt& receipt, const StoredBytes& moved,
                            const Moment& moment);

struct StreamFrame {
  Bytes intent;
  std::string origin_module_id, origin_workflow_hash;
  std::optional<Bytes> origin_instance_key{};
  IntentIdentity identity{};
  uint64_t emitted_at_seq = 0, seq = 0;
  std::string kind;
  Bytes payload;
  std::string payload_ref{};
  Bytes signature{};
};
Bytes stream_frame_record(const StreamFrame& frame, const Moment& moment);

Bytes manifest_record(std::string_view manifest_hash);
struct SnapshotRecord {
  std::string ref, manifest_hash;
  uint64_t height = 0, logical_now = 0;
};
Bytes snapshot_record(const SnapshotRecord& record);
// Externally tagged: {"Proposed": {...}}.
Bytes governance_record(std::string_view what, const cbor::Value& body);
Bytes custom_record(std::string_view tag, const cbor::Value& data);
struct StepFailure {
  std::string workflow, code, message, event_hash;
  std::optional<Bytes> key{};
  uint64_t event_height = 0;
  bool had_state = false;
};
Bytes step_failed_record(const StepFailure& failure);

// From records back to inputs, for replay.
Result<Moment> moment_of(const cbor::Value& record);
Result<IntentReceipt> receipt_of(const cbor::Value& record);
Result<StreamFrame> frame_of(const cbor::Value& record);

// The JSON of a record: bytes are lists of numbers, and bytes that hold CBOR are also shown
// decoded, as NAME_json.
json::Value record_json(uint64_t seq, BytesView payload);
// An answer with records ends after this many bytes of them, however many were asked for. JSON
// shows bytes as lists of numbers, decoded and in base64, and takes up to forty times as much.
inline constexpr size_t kShownBytes = 1024 * 1024;
std::string_view record_kind(const cbor::Value& record);

}  // namespace pawl::worlds
