#include "faces/processes/state/cells.h"

#include "base/codec.h"

namespace pawl::processes {

namespace {
// Characters of a ULID.
constexpr size_t kIdBytes = 26;
// Ten digits, so that versions sort by number.
std::string padded(uint32_t version) {
  std::string s = std::to_string(version);
  return std::string(10 - s.size(), '0') + s;
}
}  // namespace

Key head_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "d", id});
}
Key head_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "d"}); }
Key version_key(std::string_view tenant, std::string_view id, uint32_t version) {
  return key({kProgram, tenant, "v", id, padded(version)});
}
Key instance_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "i", id});
}
Key awaited_key(std::string_view tenant, std::string_view id, std::string_view instance) {
  return key({kProgram, tenant, "w", id, instance});
}
Key awaited_prefix(std::string_view tenant, std::string_view id) {
  return prefix({kProgram, tenant, "w", id});
}
Key unique_key(std::string_view tenant, std::string_view id, std::string_view business_key) {
  return key({kProgram, tenant, "u", id, business_key});
}
Key retention_key(std::string_view tenant) { return key({kProgram, tenant, "o", "retention"}); }
Key kept_signal_key(std::string_view tenant, std::string_view signal_id) {
  return key({kProgram, tenant, "m", signal_id});
}
Key kept_signal_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "m"}); }
Key mailbox_key(std::string_view tenant, std::string_view name, std::string_view correlation_key) {
  return key({kProgram, tenant, "s", name, correlation_key});
}
Key waiter_prefix(std::string_view tenant, std::string_view name,
                  std::string_view correlation_key) {
  return prefix({kProgram, tenant, "k", name, correlation_key});
}
// The time is written so that keys sort by it.
Key waiter_key(std::string_view tenant, const Subscription& s, std::string_view execution_id) {
  return waiter_prefix(tenant, s.name, s.key) + hex(ordered64(static_cast<uint64_t>(s.since))) +
         std::string(1, '\0') + std::string(execution_id);
}
// Not below the tenant: the start of the server reads the pauses of all tenants in one scan.
Key paused_type_key(std::string_view tenant, std::string_view job_type) {
  return key({kProgram, "~paused", tenant, job_type});
}
Key paused_prefix() { return prefix({kProgram, "~paused"}); }

template <class F, FieldsOf<DefinitionHead::Version> T>
void fields(F& f, T& version) {
  f(version.digest);
  f(version.name);
  f(version.uploaded);
}

template <class F, FieldsOf<DefinitionHead> T>
void later_fields(F& f, T& head) {
  f.later(head.active);
  f.later(head.retired);
  f.later(head.retire_reason);
  f.later(head.deleted);
}

template <class F, FieldsOf<DefinitionHead> T>
void fields(F& f, T& head) {
  f.format(1);
  f(head.paused);
  f(head.pause_reason);
  f(head.versions);
  if constexpr (std::same_as<F, FieldReader>) later_fields(f, head);
}

// The last part is left out when nothing in it is set: as before it existed.
Bytes encode(const DefinitionHead& head) {
  Bytes out = encode_fields(head);
  if (!head.active && !head.retired && !head.deleted) return out;
  FieldWriter writer(out);
  later_fields(writer, head);
  return out;
}
Result<DefinitionHead> decode_head(BytesView bytes) {
  return decode_fields<DefinitionHead>(bytes, "a stored definition head");
}

namespace rows {

Bytes definition_prefix(std::string_view tenant, std::string_view id, Status status) {
  return prefix({"d", tenant, id, status_name(status)});
}
Bytes business_prefix(std::string_view tenant, std::string_view business_key) {
  return prefix({"b", tenant, business_key});
}
Bytes position(Time started, std::string_view instance_id) {
  return ordered64(static_cast<uint64_t>(started)).append(instance_id);
}
// The rows of lists end with the id, which has a fixed length.
std::string_view instance_of(BytesView row_key) {
  return row_key.size() < kIdBytes ? row_key : row_key.substr(row_key.size() - kIdBytes);
}
std::string_view position_of(BytesView row_key) {
  if (row_key.size() < kPositionBytes) return row_key;
  return row_key.substr(row_key.size() - kPositionBytes);
}

Bytes history_prefix(std::string_view tenant, std::string_view instance_id) {
  return prefix({"h", tenant, instance_id});
}
Bytes history(std::string_view tenant, std::string_view instance_id, Seq seq) {
  return history_prefix(tenant, instance_id).append(ordered64(seq));
}
Seq history_seq(BytesView row_key) {
  return row_key.size() < 8 ? 0 : read_ordered64(row_key.substr(row_key.size() - 8));
}

Bytes task_prefix(std::string_view tenant) { return prefix({"u", tenant}); }
// Oldest first; the id is that of the execution, because an instance may have several tasks at
// once.
Bytes task(std::string_view tenant, Time entered, std::string_view instance_id, uint32_t ordinal) {
  return task_prefix(tenant)
      .append(ordered64(static_cast<uint64_t>(entered)))
      .append(ordinal_id(instance_id, ordinal));
}

}  // namespace rows

template <class F, FieldsOf<UserTask> T>
void fields(F& f, T& task) {
  f(task.instance_id);
  f(task.definition_id);
  f(task.business_key);
  f(task.step_id);
  f(task.form);
  f(task.ordinal);
  f(task.entered);
}

Bytes encode(const UserTask& task) { return encode_fields(task); }
Result<UserTask> decode_user_task(BytesView bytes) {
  return decode_fields<UserTask>(bytes, "a stored user task");
}

}  // namespace pawl::processes
