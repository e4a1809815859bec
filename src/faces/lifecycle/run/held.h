#pragma once
// An instance as its cell holds it: what the last write was and why, then the record. docs/formats/
// lifecycle.md is the page for its bytes.

#include "faces/lifecycle/type/model.h"

namespace pawl::lifecycle {

struct Held {
  uint64_t stamp = 0;  // names the write; the next writer says which one it stands on
  Time created = 0, updated = 0;
  source triggered = source::framework;
  bool event = false;  // this write belongs into the history: a creation or a transition
  std::string_view note, caller, phase, parent;
  std::string_view index_names;  // names of the fields to index, length before each
  std::string_view record;
};

Bytes encode(const Held& held);
Result<Held> parse_held(BytesView bytes);  // views into `bytes`

Key instance_key(std::string_view tenant, std::string_view type, std::string_view id);
Key instance_prefix(std::string_view tenant, std::string_view type);

// The parts of an instance's key as they stand in it, escapes and all. False: another kind of cell.
struct InstanceName {
  std::string_view tenant, type, id;
};
bool split_instance(BytesView key, InstanceName& out);
std::string unescaped(std::string_view part);

}  // namespace pawl::lifecycle
