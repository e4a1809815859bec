#include "faces/entities/store.h"

#include <fmt/format.h>

#include <charconv>

#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr char kPart = '\x1f';  // parts the words of a timer's id

// The values of a unique key, or nothing when one of them is missing: such entities are not compared.
std::optional<std::string> unique_values(const UniqueKey& key, std::string_view data) {
  std::string out;
  for (const std::string& path : key.paths) {
    condition::Field field = condition::Path(path).find(data);
    if (field.is_null()) return std::nullopt;
    Bytes part;
    Writer w(part);
    w.u8(field.kind);
    std::string room;
    w.str(condition::text_of(field, room));
    out += part;
  }
  return out;
}

Result<void> note_move(Turn& turn, std::string_view tenant, const Entity* after, const Entity* before) {
  if (after && before && after->state == before->state) return {};
  const Entity& any = after ? *after : *before;
  Move move{std::string(tenant), any.model, any.version, before ? before->state : "", after ? after->state : "", before != nullptr, after != nullptr};
  turn.note(encode(move));
  return {};
}

}  // namespace

Result<void> claim_unique(Turn& turn, std::string_view tenant, const Model& model, std::string_view id, std::string_view data, std::string_view old_data) {
  for (const UniqueKey& key : model.unique_keys) {
    auto now = unique_values(key, data);
    auto before = old_data.empty() ? std::nullopt : unique_values(key, old_data);
    if (before && before != now) turn.erase(unique_key(tenant, model.name, model.version, key.name, *before));
    if (!now || before == now) continue;
    Key cell_key = unique_key(tenant, model.name, model.version, key.name, *now);
    TRY(Cell holder, turn.read(cell_key));
    if (holder.exists() && holder.value() != id)
      return fail(Code::conflict, "UNIQUE_KEY_VIOLATION",
                  fmt::format("another entity of model {} version {} has the same values for the unique key '{}'; change them or update that entity", model.name,
                              model.version, key.name),
                  json::print(json::object({{"uniqueKey", key.name}, {"entityName", model.name}, {"entityVersion", model.version}})));
    turn.write(cell_key, Bytes(id));
  }
  return {};
}

Result<EntityPtr> find_entity(Turn& turn, std::string_view tenant, std::string_view id) {
  return turn.read_as<Entity>(entity_key(tenant, id), decode_entity);
}

Error entity_not_found(std::string_view id) {
  return {Code::not_found, "ENTITY_NOT_FOUND", fmt::format("cannot find entity id={}", id), json::print(json::object({{"entityId", id}}))};
}

Result<void> put_entity(Turn& turn, std::string_view tenant, const Entity& entity, Was was) {
  EntityPtr before;
  if (was == Was::unknown) {
    TRY(before, find_entity(turn, tenant, entity.id));
  }
  TRY_OK(note_move(turn, tenant, &entity, before.get()));
  turn.write(entity_key(tenant, entity.id), encode(entity), std::make_shared<const Entity>(entity));
  return {};
}

Result<void> save_entity(Turn& turn, std::string_view tenant, const Model& model, const Entity& entity, std::string_view old_data, Was was) {
  TRY_OK(claim_unique(turn, tenant, model, entity.id, entity.data, old_data));
  TRY_OK(put_entity(turn, tenant, entity, was));
  if (!model.indexes.empty()) turn.write(indexed_key(tenant, entity.id), encode_indexed(model, entity.data));
  return {};
}

Result<void> remove_entity(Turn& turn, std::string_view tenant, const Model& model, const Entity& entity, std::string_view tx) {
  for (const UniqueKey& key : model.unique_keys)
    if (auto values = unique_values(key, entity.data)) turn.erase(unique_key(tenant, model.name, model.version, key.name, *values));
  if (!model.indexes.empty()) turn.erase(indexed_key(tenant, entity.id));
  for (const std::string& timer : entity.timers) turn.withdraw(timer);
  TRY_OK(note_move(turn, tenant, nullptr, &entity));
  turn.erase(entity_key(tenant, entity.id));
  Trail trail{std::string(tenant), entity.id, std::string(tx), turn.now(), ChangeKind::deleted, std::string(tx), turn.caller().user, {}};
  turn.note(encode(trail));
  return {};
}

void rearm(Turn& turn, std::string_view tenant, const Workflow* flow, Entity& entity, std::vector<Event>& events) {
  for (const std::string& timer : entity.timers) {
    turn.withdraw(timer);
    auto due = parse_timer_id(timer);
    if (due && (!flow || !flow->find(entity.state, due->transition)))
      events.push_back({EventKind::schedule_cancel, entity.state, fmt::format("scheduled transition \"{}\" cancelled", due->transition), {}});
  }
  entity.timers.clear();
  if (!flow) return;
  for (const Transition& t : flow->transitions(entity.state)) {
    if (!t.schedule || t.disabled) continue;
    Time at = turn.now() + t.schedule->delay_ms * kMillisecond;
    Effect effect;
    effect.id = timer_id({std::string(tenant), entity.id, t.name, at}, entity.tx);
    effect.to = To::clock;
    effect.program = kProgram;
    effect.tenant = tenant;
    effect.due = at;
    entity.timers.push_back(effect.id);
    events.push_back({EventKind::schedule_arm, entity.state, fmt::format("transition \"{}\" scheduled for {}", t.name, rfc3339(at)), {}});
    turn.open(std::move(effect));
  }
}

std::string timer_id(const Due& due, std::string_view tx) {
  return fmt::format("due{0}{1}{0}{2}{0}{3}{0}{4}{0}{5}", kPart, due.tenant, due.entity, due.at, tx, due.transition);
}

Result<Due> parse_timer_id(std::string_view id) {
  std::vector<std::string_view> parts;
  for (int i = 0; i < 5; ++i) {
    size_t end = id.find(kPart);
    if (end == id.npos) break;
    parts.push_back(id.substr(0, end));
    id.remove_prefix(end + 1);
  }
  Due due;
  if (parts.size() != 5 || parts[0] != "due" || std::from_chars(parts[3].data(), parts[3].data() + parts[3].size(), due.at).ec != std::errc())
    return fail(Code::not_found, "UNKNOWN_TIMER", "the receipt names no timer of the entities face");
  due.tenant = parts[1];
  due.entity = parts[2];
  due.transition = id;
  return due;
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
    std::string_view path = r.str();
    out.entries.emplace_back(path, r.str());
  }
  return r.ok();
}

}  // namespace pawl::entities
