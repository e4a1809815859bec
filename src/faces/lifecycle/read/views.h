#pragma once
// The rows of this face's view, all in creation order within their prefix:
//   l tenant type | created id      -> version and cell: the list, and what a scan reads
//   f tenant type phase | created id
//   x tenant type field value | created id
//   p tenant parent | type id       the children
//   n tenant id | type              which types have an instance of that id
//   u tenant type | id              instances that cannot be read; they are in none of l, f and x

#include "faces/lifecycle/run/held.h"
#include "kernel/program.h"

namespace pawl::lifecycle {

Bytes list_prefix(std::string_view tenant, std::string_view type);
Bytes phase_prefix(std::string_view tenant, std::string_view type, std::string_view phase_name);
Bytes index_prefix(std::string_view tenant, std::string_view type, std::string_view field,
                   const value& v);
Bytes children_prefix(std::string_view tenant, std::string_view parent_id);
Bytes lookup_prefix(std::string_view tenant, std::string_view id);
Bytes unreadable_prefix(std::string_view tenant, std::string_view type);

// What stands after the prefix of the first three.
inline Bytes place(Time created, std::string_view escaped_id) {
  return ordered64(static_cast<uint64_t>(created)).append(escaped_id);
}

void view_instance(const Change& change, Seq seq, ViewRows& rows);

}  // namespace pawl::lifecycle
