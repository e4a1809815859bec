#include "faces/lifecycle/run/stored_instance.h"

namespace pawl::lifecycle {

// The record is last and has no length: it ends with the cell.
Bytes encode(const StoredInstance& stored) {
  Bytes out;
  out.reserve(64 + stored.note.size() + stored.caller.size() + stored.record.size());
  Writer w(out);
  w.u8(1);
  w.fixed64(stored.stamp);
  w.fixed64(static_cast<uint64_t>(stored.created));
  w.fixed64(static_cast<uint64_t>(stored.updated));
  w.u8(static_cast<uint8_t>(static_cast<uint8_t>(stored.triggered) << 1 | (stored.event ? 1 : 0)));
  w.str(stored.note);
  w.str(stored.caller);
  w.str(stored.phase);
  w.str(stored.parent);
  w.str(stored.index_names);
  out.append(stored.record);
  return out;
}

Result<StoredInstance> decode_instance(BytesView bytes) {
  Reader r(bytes);
  StoredInstance out;
  // The format byte.
  bool known = r.u8() == 1;
  out.stamp = r.fixed64();
  out.created = static_cast<Time>(r.fixed64());
  out.updated = static_cast<Time>(r.fixed64());
  uint8_t flags = r.u8();
  out.event = flags & 1;
  out.triggered = static_cast<source>((flags >> 1) & 3);
  out.note = r.str();
  out.caller = r.str();
  out.phase = r.str();
  out.parent = r.str();
  out.index_names = r.str();
  out.record = r.rest();
  if (!known || !r.ok())
    return refuse(errc::corrupt_value,
                  "an instance's cell has a format that this version cannot read");
  return out;
}

Key instance_key(std::string_view tenant, std::string_view type, std::string_view id) {
  return key({"lifecycle", tenant, "i", type, id});
}
Key instance_prefix(std::string_view tenant, std::string_view type) {
  return prefix({"lifecycle", tenant, "i", type});
}

// By hand and without copies: it runs for every write of every frame.
bool split_instance(BytesView key, InstanceName& out) {
  std::string_view parts[5];
  for (int i = 0; i < 4; ++i) {
    size_t zero = key.find('\0');
    if (zero == BytesView::npos) return false;
    parts[i] = key.substr(0, zero);
    key.remove_prefix(zero + 1);
  }
  if (parts[2] != "i" || key.find('\0') != BytesView::npos) return false;
  out = {parts[1], parts[3], key};
  return true;
}

std::string unescaped(std::string_view part) {
  // 0x01 is the escape byte of keys (kernel/cell.h). Few parts have one.
  if (part.find('\x01') == std::string_view::npos) return std::string(part);
  return parts_of(part)[0];
}

}  // namespace pawl::lifecycle
