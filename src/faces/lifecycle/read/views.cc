#include "faces/lifecycle/read/views.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

Bytes list_prefix(std::string_view tenant, std::string_view type) {
  return prefix({"l", tenant, type});
}
Bytes phase_prefix(std::string_view tenant, std::string_view type, std::string_view phase_name) {
  return prefix({"f", tenant, type, phase_name});
}
Bytes children_prefix(std::string_view tenant, std::string_view parent_id) {
  return prefix({"p", tenant, parent_id});
}
Bytes lookup_prefix(std::string_view tenant, std::string_view id_text) {
  return prefix({"n", tenant, id_text});
}
Bytes unreadable_prefix(std::string_view tenant, std::string_view type) {
  return prefix({"u", tenant, type});
}

// The value's bytes, or their digest when they are long: equality is all that an index answers, and
// whoever reads it compares the record again. JSON is equal in many spellings and has no rows here.
static Bytes index_value(record::form f, std::string_view payload) {
  static const std::string kMinusZero("\0\0\0\0\0\0\0\x80", 8), kZero(8, '\0');
  if (f == record::f_real && payload == kMinusZero) payload = kZero;
  Bytes out(1, static_cast<char>('0' + f));
  if (payload.size() <= limits::kIndexedBytes) return out.append(payload);
  Digest digest = sha256(payload);
  return out.append("#").append(view(digest));
}

Bytes index_prefix(std::string_view tenant, std::string_view type, std::string_view field,
                   const value& v) {
  std::string entry;
  record::put(entry, "", v);
  record::walk at(entry);
  at.next();
  return prefix({"x", tenant, type, field, index_value(at.f, at.payload)});
}

namespace {

// Tenant, type and id are escaped already: rows join them as they stand.
Bytes head(char kind_of_row, std::initializer_list<std::string_view> parts) {
  Bytes key(1, kind_of_row);
  for (std::string_view part : parts)
    key.append(1, '\0').append(part);
  return key;
}

// The rows of one version of an instance that can be read, besides its list row.
std::vector<Bytes> row_keys(const InstanceName& name, const Held& held) {
  std::vector<Bytes> out;
  Bytes at = place(held.created, name.id);
  Bytes typed = head('f', {name.tenant, name.type, ""});
  out.push_back(typed + prefix({held.phase}) + at);
  out.push_back(head('n', {name.tenant, name.id, name.type}));
  if (!held.parent.empty())
    out.push_back(head('p', {name.tenant, ""}) + prefix({held.parent}) + Bytes(name.type) + '\0' +
                  Bytes(name.id));
  if (held.index_names.empty()) return out;
  typed[0] = 'x';
  record::walk entry(held.record);
  while (entry.next()) {
    Reader names(held.index_names);
    while (!names.rest().empty() && names.ok())
      if (names.str() == entry.name && entry.f != record::f_json)
        out.push_back(typed + prefix({entry.name, index_value(entry.f, entry.payload)}) + at);
  }
  return out;
}

// What is left of an instance that cannot be read: that it is there, and whose child it was.
std::vector<Bytes> unreadable_keys(const InstanceName& name, const std::vector<Bytes>& before) {
  std::vector<Bytes> out{head('u', {name.tenant, name.type, name.id}),
                         head('n', {name.tenant, name.id, name.type})};
  for (const Bytes& key : before)
    if (key[0] == 'p') out.push_back(key);
  return out;
}

}  // namespace

void view_instance(const Change& change, Seq seq, ViewRows& rows) {
  InstanceName name;
  if (!split_instance(change.key, name)) return;
  auto held_of = [](const Cell& cell) {
    return cell.exists() ? parse_held(cell.value()) : Result<Held>(refuse(errc::corrupt_value, ""));
  };
  auto list_row = [&](const Held& held) {
    return head('l', {name.tenant, name.type, ""}) + place(held.created, name.id);
  };
  Result<Held> old_held = held_of(change.before), new_held = held_of(change.after);
  std::vector<Bytes> before, after;
  if (old_held)
    before = row_keys(name, *old_held);
  else if (change.before.exists())
    before = unreadable_keys(name, {});
  if (new_held)
    after = row_keys(name, *new_held);
  else if (change.after.exists())
    after = unreadable_keys(name, before);
  if (old_held && !new_held) rows.erase(list_row(*old_held));
  if (new_held) {
    Bytes bytes;
    Writer(bytes).fixed64(seq);
    rows.put(list_row(*new_held), bytes.append(change.after.value()));
  }
  for (const Bytes& key : before)
    if (std::find(after.begin(), after.end(), key) == after.end()) rows.erase(key);
  for (const Bytes& key : after)
    if (std::find(before.begin(), before.end(), key) == before.end()) rows.put(key, {});
}

}  // namespace pawl::lifecycle
