#pragma once
// What a manager holds: its store, the types it was told of, the lines of writers, what it has
// warned of.

#include <random>
#include <shared_mutex>

#include "embed/lines.h"
#include "faces/lifecycle/run/drift.h"
#include "pawl/lifecycle/manager.h"

namespace pawl::lifecycle {

struct manager::core {
  std::unique_ptr<Engine> own;  // of a manager that was given none
  std::shared_ptr<store> on;
  bool stamped = false;  // writes there are named by our stamps: one may stand on another that is
                         // not durable yet
  std::shared_ptr<const warn_function> log;
  Lines lines;

  mutable std::shared_mutex types_mutex;
  std::unordered_map<std::string, std::shared_ptr<const dynamic_type>> types;

  DriftWarnings drifts;

  core();
  // Of a type that was registered here.
  result<std::shared_ptr<const dynamic_type>> type(std::string_view workflow) const;
  // Warns once for each instance and phase that the table does not declare.
  void check_drift(const dynamic_type& type, std::string_view id, std::string_view phase);
  void check_drift(const snapshot& one);
  uint64_t new_stamp() { return stamp_base_ + stamps_.fetch_add(2, std::memory_order_relaxed); }

  result<revision> write_in_line(const dynamic_type& type, std::string_view id, std::string_view to,
                                 const how& why, const record_mutator& f,
                                 const call_options& options);
  result<revision> write_bare(const dynamic_type& type, std::string_view id, std::string_view to,
                              const how& why, const record_mutator& f, int tries,
                              const call_options& options);

 private:
  uint64_t stamp_base_;
  std::atomic<uint64_t> stamps_{0};
};

// Neither stopped nor too late, asked before anything is handed in.
result<void> still_wanted(const call_options& options);
// True while this thread runs a mutator on the instance; an empty workflow stands for all.
bool mutating(const void* manager, std::string_view workflow, std::string_view id);
// This thread has written the instance: mutators of it that it runs for other managers will meet a
// conflict of their own making. An empty workflow stands for all.
void wrote(std::string_view workflow, std::string_view id);

}  // namespace pawl::lifecycle
