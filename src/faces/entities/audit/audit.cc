#include "faces/entities/audit/audit.h"

namespace pawl::entities {

namespace {
constexpr std::string_view kKinds[] = {
    "STATE_MACHINE_START",
    "STATE_MACHINE_FINISH",
    "CANCEL",
    "FORCE_SUCCESS",
    "WORKFLOW_FOUND",
    "WORKFLOW_NOT_FOUND",
    "WORKFLOW_SKIP",
    "TRANSITION_MAKE",
    "TRANSITION_NOT_FOUND",
    "TRANSITION_NOT_MATCH_CRITERION",
    "PAUSE_FOR_PROCESSING",
    "STATE_PROCESS_RESULT",
    "TRANSITION_ABORTED",
    "SCHEDULED_TRANSITION_ARM",
    "SCHEDULED_TRANSITION_FIRE",
    "SCHEDULED_TRANSITION_EXPIRE",
    "SCHEDULED_TRANSITION_CANCEL",
};
constexpr std::string_view kMeanings[] = {
    "state machine started",
    "state machine finished",
    "cancelled",
    "saved without a transition",
    "workflow selected",
    "no workflow",
    "workflow skipped",
    "transition made",
    "no such transition",
    "criterion not matched",
    "waiting for processors",
    "processor result",
    "transition aborted",
    "transition scheduled",
    "scheduled transition fired",
    "scheduled transition expired",
    "scheduled transition cancelled",
};
static_assert(std::size(kMeanings) == std::size(kKinds));
constexpr std::string_view kChanges[] = {"", "CREATED", "UPDATED", "DELETED"};
}  // namespace

std::string_view name_of(EventKind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view meaning_of(EventKind kind) { return kMeanings[static_cast<size_t>(kind)]; }
std::string_view name_of(ChangeKind kind) { return kChanges[static_cast<size_t>(kind)]; }

Bytes encode(const Trail& t) {
  Bytes out;
  Writer w(out);
  w.u8(kTrailNote);
  w.str(t.tenant);
  w.str(t.entity);
  w.str(t.tx);
  w.fixed64(static_cast<uint64_t>(t.now));
  w.u8(static_cast<uint8_t>(t.change));
  w.str(t.change_tx == t.tx ? std::string_view() : t.change_tx);
  w.str(t.user);
  w.uint(t.events.size());
  for (const Event& e : t.events) {
    w.u8(static_cast<uint8_t>(e.kind));
    w.str(e.state);
    w.str(e.details);
    w.str(e.data);
  }
  return out;
}

Result<Trail> decode_trail(BytesView bytes) {
  Reader r(bytes);
  Trail t;
  bool right = r.u8() == kTrailNote;
  t.tenant = r.str();
  t.entity = r.str();
  t.tx = r.str();
  t.now = static_cast<Time>(r.fixed64());
  t.change = static_cast<ChangeKind>(r.u8());
  t.change_tx = r.str();
  if (t.change_tx.empty()) t.change_tx = t.tx;
  t.user = r.str();
  size_t count = r.count();
  for (size_t i = 0; i < count && r.ok(); ++i) {
    Event e{static_cast<EventKind>(r.u8()), {}, {}, {}};
    e.state = r.str();
    e.details = r.str();
    e.data = r.str();
    right = right && static_cast<size_t>(e.kind) < std::size(kKinds);
    t.events.push_back(std::move(e));
  }
  if (!r.ok() || !right || static_cast<size_t>(t.change) >= std::size(kChanges))
    return fail(Code::corrupt, "BAD_AUDIT", "an audit note cannot be read; run `pawl verify`");
  return t;
}

Bytes encode_move(std::string_view tenant, std::string_view model, int32_t version,
                  std::optional<std::string_view> before, std::optional<std::string_view> after) {
  Bytes out;
  Writer w(out);
  w.u8(kMoveNote);
  w.str(tenant);
  w.str(model);
  w.sint(version);
  w.str(before.value_or(""));
  w.str(after.value_or(""));
  w.u8(static_cast<uint8_t>(before.has_value() | after.has_value() << 1));
  return out;
}

Result<Move> decode_move(BytesView bytes) {
  Reader r(bytes);
  Move m;
  bool right = r.u8() == kMoveNote;
  m.tenant = r.str();
  m.model = r.str();
  m.version = static_cast<int32_t>(r.sint());
  m.before = r.str();
  m.after = r.str();
  uint8_t bits = r.u8();
  m.existed = bits & 1;
  m.exists = bits & 2;
  if (!r.ok() || !right)
    return fail(Code::corrupt, "BAD_AUDIT", "a count note cannot be read; run `pawl verify`");
  return m;
}

Bytes pack_notes(const std::vector<Bytes>& notes) {
  Bytes out;
  Writer w(out);
  for (const Bytes& note : notes)
    w.str(note);
  return out;
}

Result<std::vector<BytesView>> unpack_notes(BytesView packed) {
  Reader r(packed);
  std::vector<BytesView> out;
  while (r.ok() && !r.rest().empty())
    out.push_back(r.str());
  if (!r.ok()) return fail(Code::corrupt, "BAD_AUDIT", "the notes of a transaction cannot be read");
  return out;
}

}  // namespace pawl::entities
