#include "faces/processes/definition/fields.h"

namespace pawl::processes::document_fields {

bool check(const Value& v, std::span<const Field> fields, const std::string& where,
           Problems& problems) {
  if (!v.is_object()) {
    problems.push_back(where + " must be an object, got " + std::string(v.kind_name()));
    return false;
  }
  size_t before = problems.size();
  for (const json::Member& m : v.object()) {
    auto field = std::find_if(fields.begin(), fields.end(),
                              [&](const Field& f) { return f.name == m.name; });
    if (field == fields.end()) {
      std::string known;
      for (const Field& f : fields)
        known.append(known.empty() ? "" : ", ").append(f.name);
      problems.push_back(where + ": unknown field \"" + m.name + "\"; known fields: " + known);
    } else if (!m.value.is_null() && !field->fits(m.value)) {
      problems.push_back(where + ": " + m.name + " must be " + std::string(field->wants) +
                         ", got " + std::string(m.value.kind_name()));
    }
  }
  return problems.size() == before;
}

}  // namespace pawl::processes::document_fields
