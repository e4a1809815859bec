#include "faces/entities/audit/audit.h"

#include "base/codec.h"

namespace pawl::entities {

namespace {
struct EventText {
  std::string_view name;
  std::string_view meaning;
};
// In the order of EventKind.
constexpr EventText kEvents[] = {
    {"STATE_MACHINE_START", "state machine started"},
    {"STATE_MACHINE_FINISH", "state machine finished"},
    {"CANCEL", "cancelled"},
    {"FORCE_SUCCESS", "saved without a transition"},
    {"WORKFLOW_FOUND", "workflow selected"},
    {"WORKFLOW_NOT_FOUND", "no workflow"},
    {"WORKFLOW_SKIP", "workflow skipped"},
    {"TRANSITION_MAKE", "transition made"},
    {"TRANSITION_NOT_FOUND", "no such transition"},
    {"TRANSITION_NOT_MATCH_CRITERION", "criterion not matched"},
    {"PAUSE_FOR_PROCESSING", "waiting for processors"},
    {"STATE_PROCESS_RESULT", "processor result"},
    {"TRANSITION_ABORTED", "transition aborted"},
    {"SCHEDULED_TRANSITION_ARM", "transition scheduled"},
    {"SCHEDULED_TRANSITION_FIRE", "scheduled transition fired"},
    {"SCHEDULED_TRANSITION_EXPIRE", "scheduled transition expired"},
    {"SCHEDULED_TRANSITION_CANCEL", "scheduled transition cancelled"},
};
static_assert(std::size(kEvents) == static_cast<size_t>(EventKind::schedule_cancel) + 1);
constexpr std::string_view kChanges[] = {"", "CREATED", "UPDATED", "DELETED"};
}  // namespace

std::string_view name_of(EventKind kind) { return kEvents[static_cast<size_t>(kind)].name; }
std::string_view meaning_of(EventKind kind) { return kEvents[static_cast<size_t>(kind)].meaning; }
std::string_view name_of(ChangeKind kind) { return kChanges[static_cast<size_t>(kind)]; }

template <class F, FieldsOf<Event> T>
void fields(F& f, T& event) {
  f(event.kind);
  f(event.state);
  f(event.details);
  f(event.data);
}

template <class F, FieldsOf<Trail> T>
void fields(F& f, T& trail) {
  f.format(kTrailNote);
  f(trail.tenant);
  f(trail.entity);
  f(trail.tx);
  f.fixed64(trail.now);
  f(trail.change);
  // An empty change_tx stands for the same transaction as tx.
  std::string change_tx = trail.change_tx == trail.tx ? std::string() : trail.change_tx;
  f(change_tx);
  // Only while decoding: T is const for the encoder.
  if constexpr (!std::is_const_v<T>) trail.change_tx = change_tx.empty() ? trail.tx : change_tx;
  f(trail.user);
  f(trail.events);
}

Bytes encode(const Trail& trail) { return encode_fields(trail); }

Result<Trail> decode_trail(BytesView bytes) {
  TRY(Trail trail, decode_fields<Trail>(bytes, "an audit note"));
  bool known = static_cast<size_t>(trail.change) < std::size(kChanges);
  for (const Event& event : trail.events)
    known = known && static_cast<size_t>(event.kind) < std::size(kEvents);
  if (!known)
    return fail(Code::corrupt, "BAD_AUDIT",
                "an audit note has an unknown event or change; run `pawl verify`");
  return trail;
}

// Which of the two states of a StateChange are there. The states themselves are always encoded, a
// missing one as an empty text.
enum class StateBits : uint8_t {};

template <class F, FieldsOf<StateChange> T>
void fields(F& f, T& change) {
  f.format(kStateChangeNote);
  f(change.tenant);
  f(change.model);
  f(change.version);
  BytesView before = change.before.value_or("");
  BytesView after = change.after.value_or("");
  f(before);
  f(after);
  auto bits = static_cast<StateBits>(change.before.has_value() | change.after.has_value() << 1);
  f(bits);
  if constexpr (!std::is_const_v<T>) {
    if (static_cast<uint8_t>(bits) & 1) change.before = before;
    if (static_cast<uint8_t>(bits) & 2) change.after = after;
  }
}

Bytes encode(const StateChange& change) { return encode_fields(change); }
Result<StateChange> decode_state_change(BytesView bytes) {
  return decode_fields<StateChange>(bytes, "a note about a state change");
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
