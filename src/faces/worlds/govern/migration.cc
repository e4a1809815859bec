#include "faces/worlds/govern/migration.h"

#include "base/utf8.h"
#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// Cells that one apply may migrate: it is one turn.
constexpr size_t kMaxMigratedCells = 200'000;

// Refuses a cell whose key is not one of the workflow's: no event would reach it.
Result<void> check_key(const Workflow& w, const Schemas& schemas, BytesView key) {
  auto bad = [](std::string why) { return fail(Code::invalid, "manifest.error", std::move(why)); };
  if (!w.key && key.empty()) return {};
  if (!w.key) return bad("the workflow is unkeyed now, and the cell has a key");
  if (key.empty()) return bad("the workflow is keyed now, and the cell has no key");
  TRY(Bytes normal, normalize_bytes(key, *w.key, schemas));
  if (normal != key)
    return bad("its key is written otherwise under schema '" + w.def.key_schema + "'");
  return {};
}

}  // namespace

Result<void> Migration::run() {
  for (const auto& [name, workflow] : next_.workflows) {
    TRY(std::optional<Plan> todo, plan(name, workflow));
    if (todo) TRY_OK(migrate_workflow(name, *todo));
  }
  return {};
}

// Nothing when the cells of the workflow can stay as they are.
Result<std::optional<Migration::Plan>> Migration::plan(const std::string& name,
                                                       const Workflow& now) const {
  const LoadedManifest& loaded = turn_.loaded();
  // Null for a workflow that the active manifest does not have: all of its cells are checked then.
  const Workflow* old = loaded.workflow(name);
  const Modules& modules = turn_.runtime.modules;
  Plan out{now};
  out.same_key = old && now.def.keyed() == old->def.keyed() &&
                 (!now.key || same_type(*old->key, loaded.schemas, *now.key, next_.schemas));
  const bool same_state = old && same_type(*old->state, loaded.schemas, *now.state, next_.schemas);
  const bool same_module =
      old && modules.version_of(*now.module) == modules.version_of(*old->module);
  if (same_module && same_state && out.same_key) return std::optional<Plan>();
  // Before the module is compiled: most workflows have no cells to migrate.
  TRY(bool any, has_cells(name));
  if (!any) return std::optional<Plan>();
  if (!same_module || !same_state) {
    TRY(out.calls_module, modules.migrates(*now.module, [&] { return turn_.fetch(*now.module); }));
  }
  if (!out.calls_module && same_state && out.same_key) return std::optional<Plan>();
  return std::optional<Plan>(out);
}

Result<bool> Migration::has_cells(const std::string& workflow) const {
  bool any = false;
  TRY_OK(turn_.kernel.scan(cells_prefix(turn_.id, workflow), [&](BytesView, const Cell&) {
    any = true;
    return false;
  }));
  return any;
}

Result<void> Migration::migrate_workflow(const std::string& name, const Plan& plan) {
  // Collected first, because migrate_cell() writes the cells that the scan visits.
  std::vector<std::pair<Bytes, Instance>> cells;
  TRY_OK(turn_.kernel.scan(cells_prefix(turn_.id, name), [&](BytesView at, const Cell& cell) {
    auto instance = decode_instance(cell.value());
    // A deleted cell has nothing to migrate.
    if (instance && instance->state)
      cells.emplace_back(cell_at(turn_.id, at).key, std::move(*instance));
    return ++seen_ <= kMaxMigratedCells;
  }));
  if (seen_ > kMaxMigratedCells)
    return fail(Code::too_large, "governance.migrate",
                "workflow '" + name + "' has more than " + std::to_string(kMaxMigratedCells) +
                    " cells to migrate in one apply");
  for (const auto& [key, instance] : cells)
    TRY_OK(migrate_cell(name, plan, key, instance));
  return {};
}

Result<void> Migration::migrate_cell(const std::string& name, const Plan& plan, const Bytes& key,
                                     const Instance& instance) {
  Result<Bytes> state = migrated_state(plan, key, instance);
  // Not the cell's fault: the whole turn fails and may be retried.
  if (!state && (is_server_error(state.error()) || state.error().is(kFuelUsedUp)))
    return fail(std::move(state.error()));
  if (!state && report_) {
    report_->push_back(
        cbor::Map{{"instance_id", instance_id(name, key)},
                  {"error", as_utf8(state.error().message.substr(0, kMaxReportedError))}});
    return {};
  }
  if (!state)
    return fail(Code::conflict, "governance.migrate",
                "cell " + instance_id(name, key) + " cannot be migrated: " + state.error().message +
                    "; run shadow for the whole list");
  CellEdit edit{cell_key(turn_.id, name, key), std::make_shared<const Instance>(instance),
                instance};
  edit.now.state = std::move(*state);
  turn_.save(name, key, std::move(edit));
  return {};
}

// The cell's state under the next manifest. The error says why there is none.
Result<Bytes> Migration::migrated_state(const Plan& plan, BytesView key,
                                        const Instance& instance) const {
  if (!plan.same_key) TRY_OK(check_key(plan.workflow, next_.schemas, key));
  Bytes state = *instance.state;
  if (plan.calls_module) {
    TRY(state, call_module(plan.workflow, instance));
  }
  if (!turn_.world().check_state) return state;
  return normalize_bytes(state, *plan.workflow.state, next_.schemas);
}

Result<Bytes> Migration::call_module(const Workflow& w, const Instance& instance) const {
  auto bad = [](std::string why) {
    return fail(Code::unprocessable, "workflow.output_invalid", std::move(why));
  };
  // `migrate` gets the old state, the name of the workflow and no context: its result depends on
  // these two alone. A module of several workflows has one `migrate` for all.
  const Value about = cbor::Map{{"workflow", w.def.name}};
  const StepInput input{instance.state, {w.def.state, cbor::canonical(about), {}}, {}};
  TRY_OK(turn_.check_fuel());
  wasm::UsedFuel used;
  auto ran = turn_.runtime.modules.run(
      *w.module, "migrate", encode_input(input), turn_.step_limits(),
      [&] { return turn_.fetch(*w.module); }, used);
  turn_.use_fuel(used.fuel);
  if (!ran) return fail(std::move(ran.error()));
  TRY(StepOutput output, decode_output(*ran));
  TRY_OK(check_limits(output));
  if (!output.state) return bad("migrate gave no state");
  if (!output.events.empty() || !output.effects.empty())
    return bad("migrate may give a state and neither events nor effects");
  return *std::move(output.state);
}

}  // namespace pawl::worlds
