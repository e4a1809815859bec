#include <fmt/format.h>

#include "faces/entities/flow/machine.h"
#include "faces/entities/flow/transaction.h"
#include "faces/entities/search/groups.h"
#include "faces/entities/search/search.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

// Reads inside an open transaction: they see what it has written. A later write of another
// transaction to an entity that was shown is a conflict; counts and groups cause no conflicts.

namespace pawl::entities {

// The entity that a body names. With "of", only the version that this transaction wrote; an entity
// of another transaction counts as absent then.
static Result<StoredEntity> asked_entity(Turn& turn, std::string_view tenant,
                                         const json::Value& body) {
  const std::string_view id = body.string_or("id");
  const std::string_view of = body.string_or("of");
  TRY(StoredEntity found, find_entity(turn, tenant, id));
  if (!of.empty())
    return found.exists() && found.cell.version == Turn::kOwnWrite && found.view.tx == of
               ? std::move(found)
               : StoredEntity{};
  if (!found.exists()) return fail(entity_not_found(id));
  return found;
}

Result<Bytes> get_entity(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(StoredEntity found, asked_entity(turn, tenant, body));
  Bytes out;
  if (found.exists()) append_envelope(out, found.view, true);
  return out;
}

Bytes transition_names(const WorkflowSet* flows, const EntityView& e) {
  const Workflow* chosen = &default_workflow();
  if (flows) {
    for (const Workflow& w : flows->workflows) {
      if (!w.active ||
          (w.criterion && !w.criterion->matches({e.data, e.state, e.created, e.transition})))
        continue;
      chosen = &w;
      break;
    }
  }
  json::Array names;
  for (const Transition& t : chosen->transitions(e.state))
    names.emplace_back(t.name);
  return json::print(names);
}

Result<Bytes> list_transitions(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(StoredEntity found, asked_entity(turn, tenant, body));
  if (!found.exists()) return Bytes();
  TRY(auto flows, turn.read_as<WorkflowSet>(flows_key(tenant, found.view.model, found.view.version),
                                            decode_workflows));
  return transition_names(flows.get(), found.view);
}

Result<std::optional<condition::Condition>> condition_of(const json::Value& body) {
  const json::Value* text = body.find("condition");
  if (!text || text->is_null()) return std::optional<condition::Condition>();
  TRY(condition::Condition compiled, condition::Condition::compile(*text));
  TRY_OK(compiled.check_size());
  return std::optional(std::move(compiled));
}

Result<void> for_each_entity(Turn& turn, std::string_view tenant, const json::Value& body,
                             const condition::Condition* condition, size_t lookups,
                             const VisitCell& visit) {
  std::string_view name = model_name(body);
  int32_t version = model_version(body);
  uint64_t work = 0;
  Result<void> readable;
  TRY_OK(turn.scan_unvalidated(
      entity_prefix(tenant, name, version), [&](BytesView key, const Cell& cell) {
        EntityView e;
        if (!view_entity(cell.value(), e)) {
          readable = fail(unreadable_entity(id_at_end(key)));
          return false;
        }
        if (e.model != name || e.version != version) return true;
        // An entity that was created after the transaction began is not visible. The times are
        // compared, not the versions: when the turn is repeated, all versions are older than it.
        if (cell.version != Turn::kOwnWrite && e.created > turn.began_at()) return true;
        work += work_of(condition, e, lookups);
        if (work > kMaxWorkInTurn) return false;
        if (condition && !condition->matches({e.data, e.state, e.created, e.transition}))
          return true;
        return visit(key, cell, e);
      }));
  if (work > kMaxWorkInTurn) return too_much_work();
  return readable;
}

Result<Bytes> find_entities(Turn& turn, std::string_view tenant, const json::Value& body) {
  TRY(auto condition, condition_of(body));
  std::vector<std::string> given;
  if (const json::Value* list = body.find("sort"); list && list->is_array())
    for (const json::Value& key : list->array())
      given.push_back(key.string());
  TRY(ModelPtr model, find_model(turn, tenant, model_name(body), model_version(body)));
  TRY(std::vector<SortKey> sort, parse_sort(given, model.get()));
  auto number = [&](std::string_view name, int64_t default_value) {
    const json::Value* given = body.find(name);
    return given ? given->as_int64().value_or(default_value) : default_value;
  };
  const int64_t skip = number("skip", 0);
  const int64_t limit = number("limit", 1000);
  const auto enough = static_cast<size_t>(skip + limit);
  std::vector<Entity> found;
  SortedMatches matches(sort, enough);
  TRY_OK(for_each_entity(turn, tenant, body, condition ? &*condition : nullptr, sort.size(),
                         [&](BytesView, const Cell&, const EntityView& e) {
                           if (!sort.empty()) {
                             matches.add(e);
                             return true;
                           }
                           found.push_back(copy_of(e));
                           return found.size() < enough;
                         }));
  if (!sort.empty()) found = matches.take();
  Bytes out;
  bool with_model = body.find("withModel") != nullptr;
  for (size_t i = static_cast<size_t>(skip);
       i < found.size() && i < static_cast<size_t>(skip + limit); ++i) {
    const Entity& e = found[i];
    // Read again for its effect: an entity that is shown is validated at commit; those that were
    // only scanned are not.
    TRY_OK(turn.read(entity_key(tenant, e.id)));
    append_envelope(out, view_of(e), with_model);
    out += '\n';
  }
  return out;
}

Result<Bytes> group_entities(Turn& turn, std::string_view tenant, const json::Value& body) {
  const json::Value* query = body.find("query");
  TRY(Grouping grouping, parse_grouping(query ? *query : json::Value()));
  TRY(auto condition, condition_of(*query));
  Groups groups(grouping);
  TRY_OK(
      for_each_entity(turn, tenant, body, condition ? &*condition : nullptr, grouping.lookups(),
                      [&](BytesView, const Cell&, const EntityView& e) { return groups.add(e); }));
  return groups.answer();
}

// The notes so far, then the notes that the waiting machines would write if they ended now.
Result<Bytes> own_trail(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(StoredEntity found, find_entity(turn, tenant, id));
  std::vector<Bytes> notes;
  turn.each_note([&](BytesView note) {
    if (note.empty() || note[0] != kTrailNote) return;
    auto trail = decode_trail(note);
    if (trail && trail->tenant == tenant && trail->entity == id) notes.emplace_back(note);
  });
  turn.each_waiting([&](const std::shared_ptr<void>& scratch) {
    const Transaction& transaction = *std::static_pointer_cast<Transaction>(scratch);
    if (transaction.tenant != tenant || transaction.progress.entity.id != id ||
        transaction.progress.stored_before == StoredBefore::no)
      return;
    Trail trail = trail_of(transaction, turn.now(), transaction.progress.events);
    if (!found.exists()) trail.change = ChangeKind::none;
    notes.push_back(encode(trail));
  });
  return pack_notes(notes);
}

Result<Bytes> own_state_changes(Turn& turn, std::string_view tenant, const json::Value&) {
  std::vector<Bytes> notes;
  turn.each_note([&](BytesView note) {
    if (note.empty() || note[0] != kStateChangeNote) return;
    auto move = decode_state_change(note);
    if (move && move->tenant == tenant) notes.emplace_back(note);
  });
  return pack_notes(notes);
}

}  // namespace pawl::entities
