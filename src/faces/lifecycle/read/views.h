#pragma once
// The rows of the lifecycle view. Rows with the same prefix are in creation order:
//   l tenant type | created id      -> version and cell: lists and scans read these
//   f tenant type phase | created id
//   x tenant type field value | created id
//   p tenant parent | type id       the children
//   n tenant id | type              which types have an instance of that id
//   u tenant type | id              instances that cannot be decoded; they have no l, f and x rows

#include "faces/lifecycle/run/stored_instance.h"
#include "kernel/program.h"

namespace pawl::lifecycle {

Bytes list_prefix(std::string_view tenant, std::string_view type);
Bytes phase_prefix(std::string_view tenant, std::string_view type, std::string_view phase_name);
Bytes index_prefix(std::string_view tenant, std::string_view type, std::string_view field,
                   const value& v);
Bytes children_prefix(std::string_view tenant, std::string_view parent_id);
Bytes lookup_prefix(std::string_view tenant, std::string_view id);
Bytes unreadable_prefix(std::string_view tenant, std::string_view type);

// The part of an l, f or x row after its prefix: creation time and id.
inline Bytes row_position(Time created, std::string_view escaped_id) {
  return ordered64(static_cast<uint64_t>(created)).append(escaped_id);
}

void view_instance(const Change& change, Seq seq, ViewRows& rows);

}  // namespace pawl::lifecycle
