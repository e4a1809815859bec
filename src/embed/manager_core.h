#pragma once
// The state of a manager: its store, the types registered with it, the queues of writers, and the
// warnings that it has given.

#include <random>
#include <shared_mutex>

#include "embed/instance_queue.h"
#include "faces/lifecycle/run/drift.h"
#include "pawl/lifecycle/manager.h"

namespace pawl::lifecycle {

// One update by a mutator.
struct Update {
  const dynamic_type& type;
  std::string_view id;
  std::string_view to;  // the phase to move to; empty: no transition
  const how& why;
  const manager::record_mutator& mutator;
  const call_options& options;
};

// The state that a mutator starts from.
struct Base {
  std::shared_ptr<const void> keep;  // owns the bytes of the views
  std::string_view record, phase;
  uint64_t stamp;
};

struct Submitted {
  std::unique_ptr<pending_write> pending;
  uint64_t restarts;  // of the queue, when the write was submitted
  bool wrote_itself;  // the mutator has written the instance through another manager
};

struct manager::core {
  std::unique_ptr<Engine> own;  // the engine of a manager that was constructed without one
  std::shared_ptr<store> on;
  // True when the store names a write by our stamp, so that the next write can build on it before
  // it is durable.
  bool stamped = false;
  std::shared_ptr<const warn_function> log;
  InstanceQueues queues;

  mutable std::shared_mutex types_mutex;
  std::unordered_map<std::string, std::shared_ptr<const dynamic_type>> types;

  DriftWarnings drifts;

  core();
  // The definition of a type that was registered with this manager.
  result<std::shared_ptr<const dynamic_type>> type(std::string_view workflow) const;
  // Warns once for each instance and phase that the table does not declare.
  void check_drift(const dynamic_type& type, std::string_view id, std::string_view phase);
  void check_drift(const snapshot& one);
  // Stamps are odd and therefore never 0, which would mean that no stamp is expected. They begin at
  // a random number, so two managers do not choose the same one.
  uint64_t new_stamp() { return stamp_base_ + stamps_.fetch_add(2, std::memory_order_relaxed); }

  // Queues the update behind other writers of the instance; see instance_queue.h.
  result<revision> write_in_turn(const Update& update);
  // Runs the update on the stored state, without the queue. Fails after `tries` conflicts.
  result<revision> write_directly(const Update& update, int tries);

 private:
  // The state from the store, which is the newest durable one.
  result<Base> stored(const Update& update);
  result<Submitted> submit_next(InstanceQueue& queue, const Update& update);

  uint64_t stamp_base_;
  std::atomic<uint64_t> stamps_{0};
};

// Fails when the call was stopped or its deadline has passed. Called before anything is submitted.
result<void> still_wanted(const call_options& options);
// True while this thread runs a mutator on the instance. An empty workflow means any workflow.
bool mutating(const void* manager, std::string_view workflow, std::string_view id);
// Records that this thread has written the instance. When a mutator of another manager runs on this
// thread for the same instance, its write will conflict with this one. An empty workflow means any
// workflow.
void wrote(std::string_view workflow, std::string_view id);

}  // namespace pawl::lifecycle
