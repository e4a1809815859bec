#pragma once
// Several commands sent at once, so that they share a group, and one answer when all are settled.

#include <atomic>

#include "faces/processes/service.h"

namespace pawl::processes {

class Gather {
 public:
  using Outcomes = std::vector<Result<Bytes>>;
  using All = std::move_only_function<void(Outcomes)>;
  // Shared by the callbacks of its items: the last one to come ends it.
  static std::shared_ptr<Gather> of(size_t items, All all) {
    return std::shared_ptr<Gather>(new Gather(items, std::move(all)));
  }

  static Done item(const std::shared_ptr<Gather>& gather, size_t i) {
    return [gather, i](Result<Bytes> outcome) { gather->settle(i, std::move(outcome)); };
  }

 private:
  Gather(size_t items, All all) : outcomes_(items), left_(items), all_(std::move(all)) {}
  void settle(size_t i, Result<Bytes> outcome) {
    outcomes_[i] = std::move(outcome);
    if (left_.fetch_sub(1) == 1) all_(std::move(outcomes_));
  }

  Outcomes outcomes_;
  std::atomic<size_t> left_;
  All all_;
};

}  // namespace pawl::processes
