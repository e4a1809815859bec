#include "faces/entities/store/store.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::entities {

namespace {

// The values of one unique key in one document.
struct UniqueValues {
  std::string bytes;
  std::string missing;  // a path without a value
  size_t found = 0;
  // An entity without a value for one of the paths is not compared with others.
  bool whole() const { return missing.empty(); }
  // Incomplete values equal nothing, not even themselves.
  bool operator==(const UniqueValues& other) const {
    return whole() && other.whole() && bytes == other.bytes;
  }
};

UniqueValues unique_values(const UniqueKey& key, std::string_view data) {
  UniqueValues out;
  for (const std::string& path : key.paths) {
    condition::Field field = condition::Path(path).find(data);
    if (field.is_null()) {
      out.missing = path;
      continue;
    }
    ++out.found;
    Bytes part;
    Writer w(part);
    // The kind keeps the number 1 and the text "1" apart.
    w.u8(field.kind);
    std::string room;
    if (field.kind == condition::Field::number)
      // 1.0 and 1 are the same value.
      w.str(plain_number(field.text));
    else
      w.str(condition::text_of(field, room));
    out.bytes += part;
  }
  return out;
}

std::unexpected<Error> refuse_unique(Code code, std::string reason, const Model& model,
                                     const UniqueKey& key, std::string_view why) {
  return fail(code, std::move(reason),
              fmt::format("unique key '{}' of model {} version {}: {}", key.name, model.name,
                          model.version, why),
              json::print(json::object({{"uniqueKey", key.name},
                                        {"entityName", model.name},
                                        {"entityVersion", model.version}})));
}

// `before` is empty for a new entity, `after` for a removed one.
void note_state_change(Turn& turn, std::string_view tenant, std::string_view model, int32_t version,
                       std::optional<std::string_view> before,
                       std::optional<std::string_view> after) {
  if (before == after) return;
  turn.note(encode(StateChange{tenant, model, version, before, after}));
}

// Releases a unique value, unless another entity holds it.
Result<void> release(Turn& turn, BytesView cell_key, std::string_view id) {
  TRY(Cell holder, turn.read(cell_key));
  if (holder.exists() && holder.value() == id) turn.erase(cell_key);
  return {};
}

// The values of one unique key in the new and in the old document of an entity.
struct UniqueChange {
  UniqueValues now;
  UniqueValues before;
};

UniqueChange unique_change(const UniqueKey& key, std::string_view data, std::string_view old_data) {
  UniqueChange out{unique_values(key, data), {}};
  if (old_data.empty())
    out.before.missing = "all";
  else
    out.before = unique_values(key, old_data);
  return out;
}

}  // namespace

// For each key the old values are released, then the new ones are claimed.
Result<void> claim_unique(Turn& turn, std::string_view tenant, const Model& model,
                          std::string_view id, std::string_view data, std::string_view old_data,
                          ClaimedValues claimed) {
  auto cell_key = [&](const UniqueKey& key, const UniqueValues& values) {
    return unique_key(tenant, model.name, model.version, key.name, values.bytes);
  };
  for (const UniqueKey& key : model.unique_keys) {
    const auto [now, before] = unique_change(key, data, old_data);
    if (now.found && !now.whole())
      return refuse_unique(
          Code::unprocessable, "INVALID_UNIQUE_KEY", model, key,
          fmt::format("'{}' has no value; give all of its fields or none", now.missing));
    if (before.whole() && before != now) TRY_OK(release(turn, cell_key(key, before), id));
    // Unchanged values are held already, unless claim_free() had to leave one to another entity.
    if (!now.whole() || (before == now && claimed == ClaimedValues::all)) continue;
    Key holder_key = cell_key(key, now);
    TRY(Cell holder, turn.read(holder_key));
    if (!holder.exists())
      turn.write(holder_key, Bytes(id));
    else if (holder.value() != id)
      return refuse_unique(Code::conflict, "UNIQUE_VIOLATION", model, key,
                           "another entity has the same values; change them or update that entity");
  }
  return {};
}

Result<void> claim_free(Turn& turn, std::string_view tenant, const Model& model,
                        std::string_view id, std::string_view data, std::string_view old_data) {
  for (const UniqueKey& key : model.unique_keys) {
    const auto [now, before] = unique_change(key, data, old_data);
    if (before == now) continue;
    if (before.whole())
      TRY_OK(
          release(turn, unique_key(tenant, model.name, model.version, key.name, before.bytes), id));
    if (!now.whole()) continue;
    Key cell_key = unique_key(tenant, model.name, model.version, key.name, now.bytes);
    TRY(Cell holder, turn.read(cell_key));
    if (!holder.exists()) turn.write(cell_key, Bytes(id));
  }
  return {};
}

Result<StoredEntity> find_entity(Turn& turn, std::string_view tenant, std::string_view id) {
  StoredEntity found;
  TRY(found.cell, turn.read(entity_key(tenant, id)));
  if (found.exists() && !view_entity(found.cell.value(), found.view))
    return fail(Code::corrupt, "BAD_ENTITY", "an entity's cell cannot be read; run `pawl verify`");
  return found;
}

Error entity_not_found(std::string_view id) {
  return {Code::not_found, std::string(kEntityNotFound.name),
          fmt::format("cannot find entity id={}", id),
          json::print(json::object({{"entityId", id}}))};
}

Result<void> put_entity(Turn& turn, std::string_view tenant, const Entity& entity,
                        StoredBefore stored_before) {
  StoredEntity before;
  if (stored_before == StoredBefore::unknown) {
    TRY(before, find_entity(turn, tenant, entity.id));
  }
  note_state_change(turn, tenant, entity.model, entity.version,
                    before.exists() ? std::optional(before.view.state) : std::nullopt,
                    entity.state);
  turn.write(entity_key(tenant, entity.id), encode(entity));
  return {};
}

// Claims first, so that a violation is found before the entity is written.
Result<void> save_entity(Turn& turn, std::string_view tenant, const Model& model,
                         const Entity& entity, std::string_view old_data, ClaimedValues claimed,
                         StoredBefore stored_before) {
  TRY_OK(claim_unique(turn, tenant, model, entity.id, entity.data, old_data, claimed));
  TRY_OK(put_entity(turn, tenant, entity, stored_before));
  if (!model.indexes.empty())
    turn.write(indexed_key(tenant, entity.id), encode_indexed(model, entity.data));
  return {};
}

// Everything that belongs to the entity goes with it; its versions and trails stay readable.
Result<void> remove_entity(Turn& turn, std::string_view tenant, const Model& model,
                           const EntityView& entity, std::string_view tx) {
  for (const UniqueKey& key : model.unique_keys)
    if (UniqueValues held = unique_values(key, entity.data); held.whole())
      TRY_OK(release(turn, unique_key(tenant, model.name, model.version, key.name, held.bytes),
                     entity.id));
  if (!model.indexes.empty()) turn.erase(indexed_key(tenant, entity.id));
  for (std::string_view timer : entity.timers)
    turn.withdraw(timer);
  note_state_change(turn, tenant, entity.model, entity.version, entity.state, std::nullopt);
  turn.erase(entity_key(tenant, entity.id));
  Trail trail{std::string(tenant), std::string(entity.id), std::string(tx),    turn.now(),
              ChangeKind::deleted, std::string(tx),        turn.caller().user, {}};
  turn.note(encode(trail));
  return {};
}

void set_commit_time(Turn& turn, std::string_view tenant, std::string_view tx) {
  turn.each_own_write(entities_prefix(tenant), [&](BytesView key, const Cell& cell) {
    EntityView e;
    if (!view_entity(cell.value(), e) || e.tx != tx || e.updated == turn.now()) return;
    Entity stamped = copy_of(e);
    stamped.updated = turn.now();
    turn.write(key, encode(stamped));
  });
  turn.amend_notes([&](Bytes& note) {
    if (note.empty() || note[0] != kTrailNote) return;
    auto trail = decode_trail(note);
    if (!trail || trail->now == turn.now()) return;
    trail->now = turn.now();
    note = encode(*trail);
  });
}

void write_index_cell(Turn& turn, std::string_view tenant, const Model& model,
                      const EntityView& entity) {
  if (model.indexes.empty())
    turn.erase(indexed_key(tenant, entity.id));
  else
    turn.write(indexed_key(tenant, entity.id), encode_indexed(model, entity.data));
}

void rewrite_index_cells(Turn& turn, std::string_view tenant, const Model& model) {
  turn.each_own_write(entity_prefix(tenant, model.name, model.version), [&](BytesView key,
                                                                            const Cell& cell) {
    EntityView e;
    if (!cell.exists())
      turn.erase(indexed_key(tenant, id_at_end(key)));
    else if (view_entity(cell.value(), e) && e.model == model.name && e.version == model.version)
      write_index_cell(turn, tenant, model, e);
  });
}

Bytes encode_indexed(const Model& model, std::string_view data) {
  Bytes out;
  Writer w(out);
  w.str(model.name);
  w.sint(model.version);
  for (const Index& index : model.indexes) {
    for (const Bytes& value : index_values(condition::Path(index.path), data)) {
      w.str(index.path);
      w.str(value);
    }
  }
  return out;
}

bool decode_indexed(BytesView bytes, Indexed& out) {
  Reader r(bytes);
  out.model = r.str();
  out.version = static_cast<int32_t>(r.sint());
  out.entries.clear();
  while (r.ok() && !r.rest().empty()) {
    Indexed::Entry& entry = out.entries.emplace_back();
    entry.path = r.str();
    entry.value = r.str();
  }
  return r.ok();
}

}  // namespace pawl::entities
