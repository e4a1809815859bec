#include "faces/processes/state/cells.h"

#include "faces/processes/run/walk.h"

namespace pawl::processes {

namespace {
constexpr size_t kIdBytes = 26;
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
Key paused_type_key(std::string_view tenant, std::string_view job_type) {
  return key({kProgram, "~paused", tenant, job_type});
}
Key paused_prefix() { return prefix({kProgram, "~paused"}); }

Bytes encode(const Head& head) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.boolean(head.paused);
  w.str(head.pause_reason);
  w.uint(head.versions.size());
  for (const Head::Version& v : head.versions)
    w.str(v.digest), w.str(v.name), w.sint(v.uploaded);
  return out;
}

Result<Head> decode_head(BytesView bytes) {
  Reader r(bytes);
  Head head;
  uint8_t format = r.u8();
  head.paused = r.boolean();
  head.pause_reason = r.str();
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    Head::Version v;
    v.digest = r.str();
    v.name = r.str();
    v.uploaded = r.sint();
    head.versions.push_back(std::move(v));
  }
  if (!r.done() || format != 1)
    return fail(Code::corrupt, "BAD_HEAD_CELL", "a stored definition head cannot be read");
  return head;
}

namespace rows {

Bytes definition_prefix(std::string_view tenant, std::string_view id, Status status) {
  return prefix({"d", tenant, id, status_name(status)});
}
Bytes business_prefix(std::string_view tenant, std::string_view business_key) {
  return prefix({"b", tenant, business_key});
}
Bytes place(Time started, std::string_view instance_id) {
  return ordered64(static_cast<uint64_t>(started)).append(instance_id);
}
std::string_view instance_of(BytesView row_key) {
  return row_key.size() < kIdBytes ? row_key : row_key.substr(row_key.size() - kIdBytes);
}
std::string_view place_of(BytesView row_key) {
  return row_key.size() < kIdBytes + 8 ? row_key : row_key.substr(row_key.size() - kIdBytes - 8);
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
Bytes task(std::string_view tenant, Time entered, std::string_view instance_id, uint32_t ordinal) {
  return task_prefix(tenant)
      .append(ordered64(static_cast<uint64_t>(entered)))
      .append(ordinal_id(instance_id, ordinal));
}

}  // namespace rows

Bytes encode(const UserTask& t) {
  Bytes out;
  Writer w(out);
  w.str(t.instance_id);
  w.str(t.definition_id);
  w.str(t.business_key);
  w.str(t.step_id);
  w.str(t.form);
  w.uint(t.ordinal);
  w.sint(t.entered);
  return out;
}

Result<UserTask> decode_user_task(BytesView bytes) {
  Reader r(bytes);
  UserTask t;
  t.instance_id = r.str();
  t.definition_id = r.str();
  t.business_key = r.str();
  t.step_id = r.str();
  t.form = r.str();
  t.ordinal = static_cast<uint32_t>(r.uint());
  t.entered = r.sint();
  if (!r.done()) return fail(Code::corrupt, "BAD_TASK_ROW", "a stored user task cannot be read");
  return t;
}

}  // namespace pawl::processes
