#pragma once
// A migration plan: where each step of an instance's old version goes in the new one, and what
// stands in the way. The same plan is previewed and carried out.

#include "faces/processes/state/instance.h"

namespace pawl::processes {

struct Migration {
  std::vector<uint32_t> steps;  // old index -> new index or kNoStep
  struct Move {
    std::string from, to;
  };
  std::vector<Move> moves;  // of the steps where tokens stand
  std::vector<std::string> problems;
};

// `mapping` is {"old step": "new step"}; steps it leaves out keep their id. May be null.
Migration plan_migration(const Instance& instance, const Definition& from, const Definition& to,
                         const json::Value* mapping);

}  // namespace pawl::processes
