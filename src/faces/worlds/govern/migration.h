#pragma once
// Migration brings the cells of a world over to another manifest. Cells are touched when their
// workflow has another module now, or another type of state or key. They are passed through
// `migrate` when the module exports it and the module or the type of the state changed. Cells that
// a removed workflow left behind are migrated when the workflow comes back.

#include "faces/worlds/step/world_turn.h"

namespace pawl::worlds {

inline constexpr size_t kMaxReportedError = 1000;  // bytes of one error in a shadow report

class Migration {
 public:
  // `next` must outlive the migration. With a report every failure is listed in it; without one the
  // first failure ends the migration.
  Migration(WorldTurn& turn, const LoadedManifest& next, std::vector<cbor::Value>* report)
      : turn_(turn), next_(next), report_(report) {}

  Result<void> run();

 private:
  // How a workflow differs between the two manifests.
  struct Plan {
    const Workflow& workflow;
    // The key type did not change, so keys need no check.
    bool same_key = false;
    // The module exports `migrate`, and it or the type of the state changed.
    bool calls_module = false;
  };
  Result<std::optional<Plan>> plan(const std::string& name, const Workflow& workflow) const;
  Result<bool> has_cells(const std::string& workflow) const;
  Result<void> migrate_workflow(const std::string& name, const Plan& plan);
  Result<void> migrate_cell(const std::string& name, const Plan& plan, const Bytes& key,
                            const Instance& instance);
  Result<Bytes> migrated_state(const Plan& plan, BytesView key, const Instance& instance) const;
  Result<Bytes> call_module(const Workflow& workflow, const Instance& instance) const;

  WorldTurn& turn_;
  const LoadedManifest& next_;
  std::vector<cbor::Value>* report_;
  size_t seen_ = 0;  // cells
};

}  // namespace pawl::worlds
