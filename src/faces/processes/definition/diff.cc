#include "faces/processes/definition/diff.h"

namespace pawl::processes {

namespace {

using json::Value;

// Null for a side that does not have the member.
void compare(const std::string& path, const Value* from, const Value* to, json::Array& out) {
  if (from && to && from->is_object() && to->is_object()) {
    for (const json::Member& m : from->object())
      compare(path + "/" + m.name, &m.value, to->find(m.name), out);
    for (const json::Member& m : to->object())
      if (!from->find(m.name)) compare(path + "/" + m.name, nullptr, &m.value, out);
    return;
  }
  if (from && to && json::equivalent(*from, *to)) return;
  json::Object change;
  change.add("path", Value(path));
  if (from) change.add("from", *from);
  if (to) change.add("to", *to);
  out.push_back(Value(std::move(change)));
}

const json::Array& steps_of(const Definition& d) {
  static const json::Array none;
  const Value* steps = d.document.find("steps");
  return steps && steps->is_array() ? steps->array() : none;
}

const Value* step_of(const Definition& d, std::string_view id) {
  uint32_t index = d.find(id);
  return index == kNoStep ? nullptr : &steps_of(d)[index];
}

// The ids of the steps that both have, in the order of `d`.
json::Array common_ids(const Definition& d, const Definition& other) {
  json::Array out;
  for (const Step& s : d.steps)
    if (other.find(s.id) != kNoStep) out.push_back(Value(s.id));
  return out;
}

}  // namespace

json::Array diff(const Definition& from, const Definition& to) {
  json::Array out;
  json::Value top_from = from.document, top_to = to.document;
  top_from.object().erase("steps");
  top_to.object().erase("steps");
  compare("", &top_from, &top_to, out);
  for (const Step& s : from.steps)
    compare("/steps/" + s.id, step_of(from, s.id), step_of(to, s.id), out);
  for (const Step& s : to.steps)
    if (from.find(s.id) == kNoStep) compare("/steps/" + s.id, nullptr, step_of(to, s.id), out);
  json::Value before(common_ids(from, to)), after(common_ids(to, from));
  if (!(before == after)) compare("/steps", &before, &after, out);
  return out;
}

}  // namespace pawl::processes
