#pragma once
// A migration plan: which step of the new version replaces each step of the old one, and what
// prevents the migration. The preview and the migration use the same plan.

#include "faces/processes/state/instance.h"

namespace pawl::processes {

struct MigrationPlan {
  std::vector<uint32_t> steps;  // old index -> new index or kNoStep
  struct Move {
    std::string from, to;
  };
  std::vector<Move> moves;  // of the steps that have tokens
  std::vector<std::string> problems;
};

// `mapping` is {"old step": "new step"}, or null. Steps that are not in it keep their id.
MigrationPlan plan_migration(const Instance& instance, const Definition& from, const Definition& to,
                             const json::Value* mapping);

}  // namespace pawl::processes
