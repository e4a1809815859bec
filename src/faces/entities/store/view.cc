#include <set>

#include "faces/entities/audit/audit.h"
#include "faces/entities/program.h"
#include "faces/entities/store/entity.h"
#include "faces/entities/store/store.h"

// The rows that searches and the audit trail read: trails, ids of removed entities, index entries.

namespace pawl::entities {

namespace {

Bytes joined(std::initializer_list<std::string_view> parts) { return prefix(parts); }

std::string_view last_part(BytesView key) { return key.substr(key.rfind('\0') + 1); }

std::string tenant_of(BytesView key) { return parts_of(key)[1]; }

std::set<Bytes> index_rows(std::string_view tenant, std::string_view id, const Cell& cell) {
  std::set<Bytes> rows;
  Indexed indexed;
  if (!cell.exists() || !decode_indexed(cell.value(), indexed)) return rows;
  for (const auto& [path, value] : indexed.entries) {
    Bytes row = index_row_prefix(tenant, indexed.model, indexed.version, path);
    row += value;
    row += '\0';
    row += id;
    rows.insert(std::move(row));
  }
  return rows;
}

// Index rows follow the cell `k`, which holds the values that the entity is indexed under.
void view_indexed(const Change& change, ViewRows& rows) {
  std::string tenant = tenant_of(change.key);
  std::string_view id = last_part(change.key);
  std::set<Bytes> before = index_rows(tenant, id, change.before);
  std::set<Bytes> after = index_rows(tenant, id, change.after);
  for (const Bytes& row : before)
    if (!after.contains(row)) rows.erase(row);
  for (const Bytes& row : after)
    if (!before.contains(row)) rows.put(row, {});
}

// The cell of a removed entity is erased; searches at an earlier time find its id in this row.
void view_removed(const Change& change, ViewRows& rows) {
  EntityView entity;
  if (!view_entity(change.before.value(), entity)) return;
  Bytes row = removed_row_prefix(tenant_of(change.key), entity.model, entity.version);
  row += entity.id;
  rows.put(row, {});
}

}  // namespace

Bytes trail_row_prefix(Seq seq, std::string_view entity) {
  return "A" + ordered64(seq) + joined({entity});
}
Bytes detached_trail_row_prefix(std::string_view tenant, std::string_view entity) {
  return joined({"a", tenant, entity});
}
Bytes removed_row_prefix(std::string_view tenant, std::string_view model, int32_t version) {
  return joined({"x", tenant, model, std::to_string(version)});
}
Bytes index_row_prefix(std::string_view tenant, std::string_view model, int32_t version,
                       std::string_view path) {
  return joined({"i", tenant, model, std::to_string(version), path});
}

void Program::view(const Committed& frame, ViewRows& rows) const {
  // Entities that this frame wrote: their trails are found through the versions of their cells.
  std::set<BytesView> written;
  for (const Change& change : frame.changes)
    if (is_entity_key(change.key)) written.insert(change.key);
  uint16_t nth = 0;
  for (const Bytes& note : frame.notes) {
    if (note.empty() || note[0] != kTrailNote) continue;
    Reader r(note);
    r.u8();
    const std::string_view tenant = r.str();
    const std::string_view entity = r.str();
    Bytes row = written.contains(entity_key(tenant, entity))
                    ? trail_row_prefix(frame.seq, entity)
                    : detached_trail_row_prefix(tenant, entity) + ordered64(frame.seq);
    // The place of the note among the trails of this frame, so that they keep their order.
    row += static_cast<char>(nth >> 8);
    row += static_cast<char>(nth & 255);
    ++nth;
    rows.put(row, note);
  }
  for (const Change& change : frame.changes) {
    if (is_indexed_key(change.key))
      view_indexed(change, rows);
    else if (!change.after.exists() && is_entity_key(change.key))
      view_removed(change, rows);
  }
}

}  // namespace pawl::entities
