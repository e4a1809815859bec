#include "faces/worlds/snapshot/replay.h"

#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

uint64_t proposal_id(const Value& body) {
  const Value* id = body.find("proposal_id");
  return id ? id->as_uint64().value_or(0) : 0;
}

}  // namespace

Result<void> Replay::run(uint64_t until) {
  while (turn_.head.height < until) {
    const Bytes* payload = turn_.recorded ? turn_.recorded->at(turn_.head.height) : nullptr;
    if (!payload)
      return fail(Code::corrupt, "journal.error",
                  "journal.error: record " + std::to_string(turn_.head.height) + " is missing");
    TRY(Value record, cbor::decode(*payload));
    const WorldTurn::Savepoint before = turn_.savepoint();
    TRY_OK(replay_input(record));
    TRY_OK(stepper_.drain_fully());
    if (turn_.head.height <= until) continue;
    // The height lies within the records of one input: stop before that input.
    turn_.rewind(before);
    return {};
  }
  return {};
}

// Kinds that are missing here (effect_intent, step_failed) follow from inputs and never begin one.
Result<void> Replay::replay_input(const Value& record) {
  const std::string_view kind = record_kind(record);
  const uint64_t before = turn_.head.height;
  if (kind == "domain_event") {
    TRY_OK(replay_event(record));
  } else if (kind == "effect_receipt") {
    TRY(IntentReceipt receipt, receipt_of(record));
    TRY_OK(ingress_.accept_receipt(std::move(receipt)));
  } else if (kind == "stream_frame") {
    TRY(StreamFrame frame, frame_of(record));
    TRY_OK(ingress_.accept_frame(frame));
  } else if (kind == "custom") {
    TRY_OK(replay_custom(record));
  } else if (kind == "snapshot") {
    TRY_OK(snapshots_.take());
  } else if (kind == "manifest") {
    TRY_OK(replay_apply());
  } else if (kind == "governance") {
    TRY_OK(replay_governance(record));
  }
  // A record that no input produces, such as an effect_intent at this place, adds nothing.
  if (turn_.head.height > before) return {};
  return fail(Code::corrupt, "journal.error",
              "journal.error: a record of kind '" + std::string(kind) + "' at height " +
                  std::to_string(before) + " follows from no input");
}

Result<void> Replay::replay_event(const Value& record) {
  const Value* value = record.find("value");
  const Value* key = record.find("key");
  Event event{std::string(record.text_or("schema")),
              value && value->is_bytes() ? value->bytes() : Bytes(),
              {}};
  // A routed event gets its key from its value again.
  if (key && key->is_bytes() && !turn_.loaded().routes.contains(event.schema))
    event.key = key->bytes();
  TRY_OK(ingress_.accept_event(std::move(event)));
  return {};
}

// Custom records come with stream frames. A gap is recorded before the frame that shows it.
Result<void> Replay::replay_custom(const Value& record) {
  const std::string_view tag = record.text_or("tag");
  // Recorded as it is: the dropped frame itself is not kept.
  if (tag == "workflow.stream_drop") return turn_.record(*turn_.recorded->at(turn_.head.height));
  if (tag != "workflow.stream_gap") return {};
  TRY(Value next, next_record());
  TRY(StreamFrame frame, frame_of(next));
  TRY_OK(ingress_.accept_frame(frame));
  return {};
}

Result<Value> Replay::next_record() const {
  const Bytes* payload = turn_.recorded->at(turn_.head.height + 1);
  return payload ? cbor::decode(*payload) : Result<Value>(Value());
}

// A manifest is recorded before the `Applied` record of its proposal. The manifest record at the
// beginning of a world has none.
Result<void> Replay::replay_apply() {
  TRY(Value next, next_record());
  const Value* applied = next.find("Applied");
  if (!applied) return {};
  // Relaxed: the record does not say which mode was asked for, and strict implies relaxed.
  TRY_OK(governance_.apply(proposal_id(*applied), false));
  return {};
}

Result<void> Replay::replay_governance(const Value& record) {
  if (const Value* body = record.find("Proposed")) {
    // Only the hash is needed to find the patch.
    Proposal p;
    p.patch_hash = body->text_or("patch_hash");
    TRY(Patch patch, governance_.stored_patch(p));
    const Value* description = body->find("description");
    std::optional<std::string> text;
    if (description && description->is_text()) text = description->text();
    TRY_OK(governance_.propose(patch, std::move(text)));
    return {};
  }
  if (const Value* body = record.find("ShadowReport")) {
    // Without seeds: it takes the recorded report.
    TRY_OK(shadow_.run(proposal_id(*body), {}));
    return {};
  }
  if (const Value* body = record.find("Approved"))
    TRY_OK(governance_.decide(proposal_id(*body), std::string(body->text_or("approver")),
                              body->text_or("decision") == "approve"));
  return {};
}

}  // namespace pawl::worlds
