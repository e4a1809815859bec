#include "faces/lifecycle/views.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

Bytes list_prefix(std::string_view tenant, std::string_view type) { return prefix({"l", tenant, type}); }
Bytes phase_prefix(std::string_view tenant, std::string_view type, std::string_view phase_name) { return prefix({"f", tenant, type, phase_name}); }
Bytes children_prefix(std::string_view tenant, std::string_view parent_id) { return prefix({"p", tenant, parent_id}); }
Bytes lookup_prefix(std::string_view tenant, std::string_view id_text) { return prefix({"n", tenant, id_text}); }

// The value's bytes, or their digest when they are long: equality is all that an index answers, and
// whoever reads it compares the record again.
static Bytes index_value(record::form f, std::string_view payload) {
  Bytes out(1, static_cast<char>('0' + f));
  if (payload.size() <= limits::kIndexedBytes) return out.append(payload);
  Digest digest = sha256(payload);
  return out.append("#").append(view(digest));
}

Bytes index_prefix(std::string_view tenant, std::string_view type, std::string_view field, const value& v) {
  std::string entry;
  record::put(entry, "", v);
  record::walk at(entry);
  at.next();
  return prefix({"x", tenant, type, field, index_value(at.f, at.payload)});
}

namespace {

// The rows of one version of an instance, besides its list row.
std::vector<Bytes> row_keys(const InstanceName& name, const Held& held) {
  std::vector<Bytes> out;
  Bytes at = place(held.created, name.id);
  // Tenant, type and id are escaped already: they are joined as they stand.
  auto head = [&](char kind_of_row) {
    Bytes key(1, kind_of_row);
    return key.append(1, '\0').append(name.tenant).append(1, '\0');
  };
  Bytes typed = head('f').append(name.type).append(1, '\0');
  out.push_back(typed + prefix({held.phase}) + at);
  out.push_back(head('n').append(name.id).append(1, '\0').append(name.type));
  if (!held.parent.empty()) out.push_back(head('p') + prefix({held.parent}) + Bytes(name.type) + '\0' + Bytes(name.id));
  if (held.index_names.empty()) return out;
  typed[0] = 'x';
  record::walk entry(held.record);
  while (entry.next()) {
    Reader names(held.index_names);
    while (!names.rest().empty() && names.ok())
      if (names.str() == entry.name) out.push_back(typed + prefix({entry.name, index_value(entry.f, entry.payload)}) + at);
  }
  return out;
}

}  // namespace

void view_instance(const Change& change, Seq seq, ViewRows& rows) {
  InstanceName name;
  if (!split_instance(change.key, name)) return;
  auto list_row = [&](const Held& held) {
    return Bytes("l").append(1, '\0').append(name.tenant).append(1, '\0').append(name.type).append(1, '\0').append(place(held.created, name.id));
  };
  auto list_value = [&] {
    Bytes bytes;
    Writer(bytes).fixed64(seq);
    return bytes.append(change.after.value());
  };
  std::vector<Bytes> before, after;
  auto old_held = change.before.exists() ? parse_held(change.before.value()) : Result<Held>(refuse(errc::corrupt_value, ""));
  auto new_held = change.after.exists() ? parse_held(change.after.value()) : Result<Held>(refuse(errc::corrupt_value, ""));
  if (old_held) before = row_keys(name, *old_held);
  if (new_held) {
    after = row_keys(name, *new_held);
    rows.put(list_row(*new_held), list_value());
  } else if (old_held && change.after.exists()) {
    // Unreadable now: it stays in the list, where it is met and reported.
    after = before;
    rows.put(list_row(*old_held), list_value());
  } else if (old_held) {
    rows.erase(list_row(*old_held));
  }
  for (const Bytes& key : before)
    if (std::find(after.begin(), after.end(), key) == after.end()) rows.erase(key);
  for (const Bytes& key : after)
    if (std::find(before.begin(), before.end(), key) == before.end()) rows.put(key, {});
}

}  // namespace pawl::lifecycle
