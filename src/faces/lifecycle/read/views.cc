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

// The value's bytes, or their digest when they are long. An index answers equality only, and its
// reader compares the record again. JSON has no index rows: equal JSON has many spellings.
static Bytes index_value(record::form f, std::string_view payload) {
  static const std::string kMinusZero("\0\0\0\0\0\0\0\x80", 8), kZero(8, '\0');
  // 0.0 equals -0.0, so both must have one index row.
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

// Tenant, type and id are escaped already, so rows join them unchanged.
Bytes row_prefix(char kind_of_row, std::initializer_list<std::string_view> parts) {
  Bytes key(1, kind_of_row);
  for (std::string_view part : parts)
    key.append(1, '\0').append(part);
  return key;
}

// The keys of all rows of a readable instance, except its list row.
std::vector<Bytes> row_keys(const InstanceName& name, const StoredInstance& stored) {
  std::vector<Bytes> out;
  Bytes at = row_position(stored.created, name.id);
  Bytes typed = row_prefix('f', {name.tenant, name.type, ""});
  out.push_back(typed + prefix({stored.phase}) + at);
  out.push_back(row_prefix('n', {name.tenant, name.id, name.type}));
  if (!stored.parent.empty())
    out.push_back(row_prefix('p', {name.tenant, ""}) + prefix({stored.parent}) + Bytes(name.type) +
                  '\0' + Bytes(name.id));
  if (stored.index_names.empty()) return out;
  typed[0] = 'x';
  record::walk entry(stored.record);
  while (entry.next()) {
    Reader names(stored.index_names);
    while (!names.rest().empty() && names.ok())
      if (names.str() == entry.name && entry.f != record::f_json)
        out.push_back(typed + prefix({entry.name, index_value(entry.f, entry.payload)}) + at);
  }
  return out;
}

// The keys of the rows that an unreadable instance keeps: that it exists, and its last known
// parent.
std::vector<Bytes> unreadable_keys(const InstanceName& name, const std::vector<Bytes>& before) {
  std::vector<Bytes> out{row_prefix('u', {name.tenant, name.type, name.id}),
                         row_prefix('n', {name.tenant, name.id, name.type})};
  for (const Bytes& key : before)
    if (key[0] == 'p') out.push_back(key);
  return out;
}

}  // namespace

// Writes only the rows that differ between the two versions. The list row holds the value and is
// always written.
void view_instance(const Change& change, Seq seq, ViewRows& rows) {
  InstanceName name;
  if (!split_instance(change.key, name)) return;
  auto decode = [](const Cell& cell) {
    return cell.exists() ? decode_instance(cell.value())
                         : Result<StoredInstance>(refuse(errc::corrupt_value, ""));
  };
  auto list_row = [&](const StoredInstance& stored) {
    return row_prefix('l', {name.tenant, name.type, ""}) + row_position(stored.created, name.id);
  };
  Result<StoredInstance> old_stored = decode(change.before), new_stored = decode(change.after);
  std::vector<Bytes> before, after;
  if (old_stored)
    before = row_keys(name, *old_stored);
  else if (change.before.exists())
    before = unreadable_keys(name, {});
  if (new_stored)
    after = row_keys(name, *new_stored);
  else if (change.after.exists())
    after = unreadable_keys(name, before);
  if (old_stored && !new_stored) rows.erase(list_row(*old_stored));
  if (new_stored) {
    Bytes bytes;
    Writer(bytes).fixed64(seq);
    rows.put(list_row(*new_stored), bytes.append(change.after.value()));
  }
  for (const Bytes& key : before)
    if (std::find(after.begin(), after.end(), key) == after.end()) rows.erase(key);
  for (const Bytes& key : after)
    if (std::find(before.begin(), before.end(), key) == before.end()) rows.put(key, {});
}

}  // namespace pawl::lifecycle
