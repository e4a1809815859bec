#include "faces/worlds/store/model.h"

#include <array>

namespace pawl::worlds {
namespace {

// One list of fields serves both ways: Put writes each, Get reads each.
struct Put {
  Writer w;
  explicit Put(Bytes& out) : w(out) {}
  void operator()(const uint64_t& v) { w.uint(v); }
  void operator()(const int64_t& v) { w.sint(v); }
  void operator()(const bool& v) { w.boolean(v); }
  void operator()(const std::string& v) { w.str(v); }
  void operator()(const std::optional<std::string>& v) {
    w.boolean(v.has_value());
    if (v) w.str(*v);
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(const E& v) { w.u8(static_cast<uint8_t>(v)); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    w.uint(list.size());
    for (const T& item : list)
      fields(*this, item);
  }
  void later(const auto& v) { (*this)(v); }
  void operator()(const std::map<std::string, World::Roots>& roots) {
    w.uint(roots.size());
    for (const auto& [name, r] : roots)
      w.str(name), w.str(r.cells), w.str(r.instances);
  }
};

struct Get {
  Reader r;
  explicit Get(BytesView in) : r(in) {}
  void operator()(uint64_t& v) { v = r.uint(); }
  void operator()(int64_t& v) { v = r.sint(); }
  void operator()(bool& v) { v = r.boolean(); }
  void operator()(std::string& v) { v = r.str(); }
  void operator()(std::optional<std::string>& v) {
    if (r.boolean()) v = std::string(r.str());
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E& v) { v = static_cast<E>(r.u8()); }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(r.count());
    for (T& item : list)
      fields(*this, item);
  }
  // A last field that older cells lack.
  void later(auto& v) {
    if (!r.done()) (*this)(v);
  }
  void operator()(std::map<std::string, World::Roots>& roots) {
    for (size_t n = r.count(); n > 0 && r.ok(); --n) {
      std::string name(r.str());
      Bytes cells(r.str());
      roots[name] = {std::move(cells), Bytes(r.str())};
    }
  }
};

template <class T, class V>
concept Like = std::is_same_v<std::remove_const_t<T>, V>;

template <class F, Like<World> T>
void fields(F& f, T& v) {
  f(v.id), f(v.created), f(v.manifest_hash), f(v.engine), f(v.limits.fuel),
      f(v.limits.memory_bytes), f(v.check_state), f(v.parent);
  f(v.parent_height), f(v.detached), f(v.epoch), f(v.retained_from), f(v.snapshot_ref),
      f(v.snapshot_height), f(v.roots);
}
template <class F, Like<WorldHead> T>
void fields(F& f, T& v) {
  f(v.height), f(v.logical_now), f(v.marks), f(v.next_proposal), f(v.queued), f(v.chain),
      f(v.running), f(v.waiting), f(v.completed);
  f(v.failed), f(v.inflight), f(v.timers), f(v.events), f(v.intents), f(v.receipts_ok),
      f(v.receipts_error), f(v.receipts_timeout);
  f(v.frames), f(v.steps), f(v.steps_failed), f(v.proposed), f(v.shadowed), f(v.approved),
      f(v.applied);
}
template <class F, Like<InflightIntent> T>
void fields(F& f, T& v) {
  f(v.intent), f(v.effect), f(v.emitted_at_seq), f(v.last_stream_seq);
}
template <class F, Like<Instance> T>
void fields(F& f, T& v) {
  f(v.status), f(v.last_seq), f(v.module_version), f(v.inflight), f(v.failure), f(v.state),
      f(v.dirty);
}
template <class F, Like<IntentIdentity> T>
void fields(F& f, T& v) {
  f(v.effect), f(v.effect_hash), f(v.executor_module), f(v.executor_module_hash),
      f(v.executor_entrypoint);
}
template <class F, Like<PendingIntent> T>
void fields(F& f, T& v) {
  f(v.intent), f(v.workflow), f(v.workflow_hash), f(v.key), f(v.keyed), fields(f, v.identity),
      f(v.params), f(v.idempotency_key);
  f(v.requested_key), f(v.issuer_ref), f(v.emitted_at_seq), f(v.module_version);
}
template <class F, Like<Proposal> T>
void fields(F& f, T& v) {
  f(v.id), f(v.state), f(v.patch_hash), f(v.description), f(v.described), f(v.approver),
      f(v.manifest_hash), f(v.report), f.later(v.height);
}
template <class F, Like<QueuedDelivery> T>
void fields(F& f, T& v) {
  f(v.workflow), f(v.key), f(v.event.schema), f(v.event.value), f(v.event.key);
  f(v.moment.now_ns), f(v.moment.logical_now_ns), f(v.moment.height), f(v.moment.chance),
      f(v.moment.manifest_hash);
}
template <class F, Like<GovernanceCommand> T>
void fields(F& f, T& v) {
  f(v.id), f(v.kind), f(v.done), f(v.code), f(v.message), f(v.result), f(v.at), f.later(v.receipt),
      f.later(v.height), f.later(v.manifest_hash);
}

// Each cell begins with its version, so that a newer binary reads what an older one wrote.
constexpr uint8_t kVersion = 1;

template <class T>
Bytes write(const T& v) {
  Bytes out;
  Put put(out);
  put.w.u8(kVersion);
  fields(put, v);
  return out;
}

template <class T>
Result<T> read(BytesView in, std::string_view what) {
  Get get(in);
  T v{};
  if (get.r.u8() != kVersion)
    return fail(Code::corrupt, "store.error",
                "a " + std::string(what) + " cell has a version that this binary does not know");
  fields(get, v);
  if (!get.r.done())
    return fail(Code::corrupt, "store.error", "a " + std::string(what) + " cell is damaged");
  return v;
}

constexpr std::array<std::string_view, 4> kStatuses{"running", "waiting", "completed", "failed"};
constexpr std::array<std::string_view, 5> kProposals{"Submitted", "Shadowed", "Approved",
                                                     "Rejected", "Applied"};

}  // namespace

std::string_view name_of(InstanceStatus status) {
  return kStatuses[std::min<size_t>(static_cast<size_t>(status), 3)];
}
std::string_view name_of(ProposalState state) {
  return kProposals[std::min<size_t>(static_cast<size_t>(state), 4)];
}

Bytes encode(const World& v) { return write(v); }
Bytes encode(const WorldHead& v) { return write(v); }
Bytes encode(const Instance& v) { return write(v); }
Bytes encode_for_snapshot(const Instance& v) {
  Instance bare = v;
  bare.state.reset();
  bare.dirty = 0;
  return write(bare);
}
Bytes encode(const PendingIntent& v) { return write(v); }
Bytes encode(const Proposal& v) { return write(v); }
Bytes encode(const QueuedDelivery& v) { return write(v); }
Bytes encode(const GovernanceCommand& v) { return write(v); }
Result<World> decode_world(BytesView in) { return read<World>(in, "world"); }
Result<WorldHead> decode_head(BytesView in) { return read<WorldHead>(in, "head"); }
Result<Instance> decode_instance(BytesView in) { return read<Instance>(in, "instance"); }
Result<PendingIntent> decode_pending(BytesView in) {
  return read<PendingIntent>(in, "pending intent");
}
Result<Proposal> decode_proposal(BytesView in) { return read<Proposal>(in, "proposal"); }
Result<QueuedDelivery> decode_queued(BytesView in) {
  return read<QueuedDelivery>(in, "queued delivery");
}
Result<GovernanceCommand> decode_command(BytesView in) {
  return read<GovernanceCommand>(in, "command");
}

std::string instance_id(std::string_view workflow, BytesView key) {
  return std::string(workflow) + "::" + hex(key);
}

}  // namespace pawl::worlds
