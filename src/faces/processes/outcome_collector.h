#pragma once
// OutcomeCollector gathers the outcomes of several commands that are submitted together, so that
// they share a group, and calls back once when all of them are done.

#include <atomic>

#include "faces/processes/service.h"

namespace pawl::processes {

class OutcomeCollector {
 public:
  using Outcomes = std::vector<Result<Bytes>>;
  using AllDone = std::move_only_function<void(Outcomes)>;

  // `size` must not be 0. The callbacks share the collector: the last one of them calls `all_done`.
  static std::shared_ptr<OutcomeCollector> create(size_t size, AllDone all_done) {
    return std::shared_ptr<OutcomeCollector>(new OutcomeCollector(size, std::move(all_done)));
  }

  // The callback for the command with this index. It must be called once.
  static Done callback(const std::shared_ptr<OutcomeCollector>& collector, size_t index) {
    return [collector, index](Result<Bytes> outcome) { collector->set(index, std::move(outcome)); };
  }

 private:
  OutcomeCollector(size_t size, AllDone all_done)
      : outcomes_(size), missing_(size), all_done_(std::move(all_done)) {}
  void set(size_t index, Result<Bytes> outcome) {
    outcomes_[index] = std::move(outcome);
    if (missing_.fetch_sub(1) == 1) all_done_(std::move(outcomes_));
  }

  Outcomes outcomes_;
  std::atomic<size_t> missing_;
  AllDone all_done_;
};

}  // namespace pawl::processes
