#include "faces/worlds/store/model.h"

#include <array>

#include "faces/worlds/store/fields.h"

namespace pawl::worlds {

// Each cell begins with its format, so that a later version can read what this one wrote.
static constexpr uint8_t kFormat = 1;

template <class F, FieldsOf<World::Roots> T>
void fields(F& f, T& v) {
  f(v.cells);
  f(v.instances);
}
// The order of the calls in these lists is the stored format (docs/formats/worlds.md). A new field
// of a cell goes to the end as f.later(...), so that cells of earlier versions still decode. Roots
// and InflightIntent lie inside other structs and cannot grow.
template <class F, FieldsOf<World> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.id);
  f(v.created);
  f(v.manifest_hash);
  f(v.engine);
  f(v.limits.fuel);
  f(v.limits.memory_bytes);
  f(v.check_state);
  f(v.parent);
  f(v.parent_height);
  f(v.detached);
  f(v.epoch);
  f(v.retained_from);
  f(v.snapshot_ref);
  f(v.snapshot_height);
  f(v.roots);
}
template <class F, FieldsOf<WorldHead> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.height);
  f(v.logical_now);
  f(v.marks);
  f(v.next_proposal);
  f(v.queued);
  f(v.chain);
  f(v.running);
  f(v.waiting);
  f(v.completed);
  f(v.failed);
  f(v.inflight);
  f(v.timers);
  f(v.events);
  f(v.intents);
  f(v.receipts_ok);
  f(v.receipts_error);
  f(v.receipts_timeout);
  f(v.frames);
  f(v.steps);
  f(v.steps_failed);
  f(v.proposed);
  f(v.shadowed);
  f(v.approved);
  f(v.applied);
}
template <class F, FieldsOf<InflightIntent> T>
void fields(F& f, T& v) {
  f(v.intent);
  f(v.effect);
  f(v.emitted_at_seq);
  f(v.last_stream_seq);
}
template <class F, FieldsOf<Instance> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.status);
  f(v.last_seq);
  f(v.module_version);
  f(v.inflight);
  f(v.failure);
  f(v.state);
  f(v.dirty);
}
template <class F, FieldsOf<PendingIntent> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.intent);
  f(v.workflow);
  f(v.workflow_hash);
  f(v.key);
  f(v.keyed);
  f(v.identity);
  f(v.params);
  f(v.idempotency_key);
  f(v.requested_key);
  f(v.issuer_ref);
  f(v.emitted_at_seq);
  f(v.module_version);
}
template <class F, FieldsOf<Proposal> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.id);
  f(v.state);
  f(v.patch_hash);
  f(v.description);
  f(v.described);
  f(v.approver);
  f(v.manifest_hash);
  f(v.report);
  f.later(v.height);
}
template <class F, FieldsOf<QueuedDelivery> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.workflow);
  f(v.key);
  f(v.event);
  f(v.moment.now_ns);
  f(v.moment.logical_now_ns);
  f(v.moment.height);
  f(v.moment.chance);
  f(v.moment.manifest_hash);
}
template <class F, FieldsOf<GovernanceCommand> T>
void fields(F& f, T& v) {
  f.format(kFormat);
  f(v.id);
  f(v.kind);
  f(v.done);
  f(v.code);
  f(v.message);
  f(v.result);
  f(v.at);
  f.later(v.receipt);
  f.later(v.height);
  f.later(v.manifest_hash);
}

namespace {

// Refused with the reason that callers of worlds know.
template <class T>
Result<T> decode_cell(BytesView in, std::string_view what) {
  if (in.empty() || static_cast<uint8_t>(in.front()) != kFormat)
    return fail(Code::corrupt, "store.error",
                "a " + std::string(what) + " cell has a format that this version does not know");
  auto value = decode_fields<T>(in, what);
  if (!value)
    return fail(Code::corrupt, "store.error", "a " + std::string(what) + " cell is damaged");
  return value;
}

constexpr std::array<std::string_view, 4> kStatuses{"running", "waiting", "completed", "failed"};
constexpr std::array<std::string_view, 5> kProposals{"Submitted", "Shadowed", "Approved",
                                                     "Rejected", "Applied"};

}  // namespace

std::string_view name_of(InstanceStatus status) {
  // A damaged cell may decode to any byte; it must not read past the table.
  return kStatuses[std::min<size_t>(static_cast<size_t>(status), 3)];
}
std::string_view name_of(ProposalState state) {
  return kProposals[std::min<size_t>(static_cast<size_t>(state), 4)];
}

Bytes encode(const World& v) { return encode_fields(v); }
Bytes encode(const WorldHead& v) { return encode_fields(v); }
Bytes encode(const Instance& v) { return encode_fields(v); }
// The state has a blob of its own in the index, and the mark says nothing about the world: equal
// worlds give equal bytes.
Bytes encode_for_snapshot(const Instance& v) {
  Instance bare = v;
  bare.state.reset();
  bare.dirty = 0;
  return encode_fields(bare);
}
Bytes encode(const PendingIntent& v) { return encode_fields(v); }
Bytes encode(const Proposal& v) { return encode_fields(v); }
Bytes encode(const QueuedDelivery& v) { return encode_fields(v); }
Bytes encode(const GovernanceCommand& v) { return encode_fields(v); }
Result<World> decode_world(BytesView in) { return decode_cell<World>(in, "world"); }
Result<WorldHead> decode_head(BytesView in) { return decode_cell<WorldHead>(in, "head"); }
Result<Instance> decode_instance(BytesView in) { return decode_cell<Instance>(in, "instance"); }
Result<PendingIntent> decode_pending(BytesView in) {
  return decode_cell<PendingIntent>(in, "pending intent");
}
Result<Proposal> decode_proposal(BytesView in) { return decode_cell<Proposal>(in, "proposal"); }
Result<QueuedDelivery> decode_queued(BytesView in) {
  return decode_cell<QueuedDelivery>(in, "queued delivery");
}
Result<GovernanceCommand> decode_command(BytesView in) {
  return decode_cell<GovernanceCommand>(in, "command");
}

std::string instance_id(std::string_view workflow, BytesView key) {
  return std::string(workflow) + "::" + hex(key);
}

}  // namespace pawl::worlds
