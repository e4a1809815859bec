#include "faces/worlds/step/stream_frames.h"

#include <algorithm>

#include "faces/worlds/step/settlement.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

std::optional<Bytes> key_of(const PendingIntent& intent) {
  return intent.keyed ? std::optional<Bytes>(intent.key) : std::nullopt;
}

// True when the frame says of its intent what is recorded. Hashes and executor names may be left
// out.
bool same_identity(const StreamFrame& frame, const PendingIntent& intent) {
  auto same = [](const std::string& given, const std::string& known) {
    return given.empty() || given == known;
  };
  const IntentIdentity& given = frame.identity;
  const IntentIdentity& known = intent.identity;
  return frame.origin_module_id == intent.workflow && given.effect == known.effect &&
         frame.emitted_at_seq == intent.emitted_at_seq &&
         frame.origin_instance_key == key_of(intent) &&
         same(frame.origin_workflow_hash, intent.workflow_hash) &&
         same(given.effect_hash, known.effect_hash) &&
         same(given.executor_module, known.executor_module) &&
         same(given.executor_module_hash, known.executor_module_hash) &&
         same(given.executor_entrypoint, known.executor_entrypoint);
}

}  // namespace

Result<bool> StreamFrames::drop(const StreamFrame& frame, std::string_view reason,
                                std::string_view message) {
  cbor::Map data{{"origin_module_id", frame.origin_module_id}};
  if (frame.origin_instance_key)
    data.emplace_back("origin_instance_key", octets(*frame.origin_instance_key));
  data.emplace_back("intent_id", hash_text(frame.intent));
  data.emplace_back("effect", frame.identity.effect);
  data.emplace_back("emitted_at_seq", frame.emitted_at_seq);
  data.emplace_back("seq", frame.seq);
  data.emplace_back("kind", frame.kind);
  data.emplace_back("reason_code", reason);
  data.emplace_back("reason_message", message);
  TRY_OK(turn_.record(custom_record("workflow.stream_drop", Value(std::move(data))),
                      {{"i", frame.intent}}));
  return false;
}

Result<Event> StreamFrames::frame_event(const Workflow& w, const PendingIntent& intent,
                                        const StreamFrame& frame) const {
  cbor::Map body = intent_envelope(intent);
  body.emplace_back("seq", frame.seq);
  body.emplace_back("kind", frame.kind);
  body.emplace_back("payload", octets(frame.payload));
  body.emplace_back("payload_ref", frame.payload_ref.empty() ? Value() : Value(frame.payload_ref));
  body.emplace_back("signature", octets(frame.signature));
  auto event = fit_event(turn_.loaded(), w, "sys/EffectStreamFrame@1", Value(std::move(body)));
  if (!event)
    return fail(Code::invalid, "receipt.workflow_unsupported",
                "workflow '" + w.def.name +
                    "' takes no stream frames: add an arm for sys/EffectStreamFrame@1 to '" +
                    w.def.event + "'");
  event->key = key_of(intent);
  return *std::move(event);
}

Result<void> StreamFrames::record_gap(const PendingIntent& intent, const StreamFrame& frame,
                                      uint64_t expected_seq) {
  cbor::Map data{{"origin_module_id", intent.workflow}};
  if (intent.keyed) data.emplace_back("origin_instance_key", octets(intent.key));
  data.emplace_back("intent_id", hash_text(frame.intent));
  data.emplace_back("effect", frame.identity.effect);
  data.emplace_back("expected_seq", expected_seq);
  data.emplace_back("observed_seq", frame.seq);
  return turn_.record(custom_record("workflow.stream_gap", Value(std::move(data))),
                      {{"i", frame.intent}});
}

Result<Moment> StreamFrames::record(const PendingIntent& intent, const StreamFrame& frame) {
  if (auto blob = parse_hash(frame.payload_ref))
    turn_.kernel.write(reads_key(turn_.id, turn_.head.height), std::move(*blob));
  Moment moment = turn_.next_moment();
  TRY_OK(turn_.record(stream_frame_record(frame, moment),
                      {{"i", frame.intent}, {"c", cell_name(intent.workflow, intent.key)}}));
  ++turn_.head.frames;
  return moment;
}

Result<bool> StreamFrames::take(const StreamFrame& frame) {
  TRY(auto intent, turn_.pending(frame.intent));
  const Workflow* w = intent ? turn_.loaded().workflow(intent->workflow) : nullptr;
  if (!w) return drop(frame, "stream.unknown_intent", "no in-flight intent context for frame");
  if (!same_identity(frame, *intent))
    return drop(frame, "stream.identity_mismatch",
                "frame identity does not match recorded in-flight intent");
  TRY(CellEdit cell, turn_.read_cell(*w, intent->key));
  auto& open = cell.now.inflight;
  auto listed = std::find_if(open.begin(), open.end(),
                             [&](const InflightIntent& i) { return i.intent == frame.intent; });
  if (listed == open.end())
    return drop(frame, "stream.unknown_intent", "no in-flight intent context for frame");
  if (frame.seq <= listed->last_stream_seq)
    return drop(frame, "stream.non_monotonic", "frame seq is duplicate or out-of-order");
  TRY(Event event, frame_event(*w, *intent, frame));
  if (frame.seq > listed->last_stream_seq + 1)
    TRY_OK(record_gap(*intent, frame, listed->last_stream_seq + 1));
  TRY(Moment moment, record(*intent, frame));
  listed->last_stream_seq = frame.seq;
  turn_.save(w->def.name, intent->key, std::move(cell));
  turn_.mail.push({w, std::move(event), std::move(moment)});
  return true;
}

}  // namespace pawl::worlds
