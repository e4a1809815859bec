#pragma once
// StoredInstance is the value of an instance's cell: the last write, its cause, and the record.
// docs/formats/lifecycle.md describes its bytes.

#include "faces/lifecycle/type/workflow_type.h"

namespace pawl::lifecycle {

struct StoredInstance {
  uint64_t stamp = 0;  // identifies this write; an update names the stamp that it is based on
  Time created = 0, updated = 0;
  source triggered = source::framework;
  bool event = false;  // the write is part of the history: a creation or a transition
  std::string_view note, caller, phase, parent;
  std::string_view index_names;  // names of the indexed fields, each with its length before it
  std::string_view record;
};

Bytes encode(const StoredInstance& stored);
// The result points into `bytes`.
Result<StoredInstance> decode_instance(BytesView bytes);

Key instance_key(std::string_view tenant, std::string_view type, std::string_view id);
Key instance_prefix(std::string_view tenant, std::string_view type);

// The parts of an instance's key, still escaped.
struct InstanceName {
  std::string_view tenant, type, id;
};
// Returns false for the key of another kind of cell.
bool split_instance(BytesView key, InstanceName& out);
std::string unescaped(std::string_view part);

}  // namespace pawl::lifecycle
