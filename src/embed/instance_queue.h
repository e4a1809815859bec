#pragma once
// Writers of one instance queue up. Each runs its mutator on the state that the writer before it
// has submitted, whether that state is durable yet or not, and submits its own write at once.
// Writers of one manager therefore do not wait for each other's disk writes and never conflict with
// each other. Only a write from elsewhere makes a queue start again from the stored state.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace pawl::lifecycle {

struct InstanceQueue {
  std::timed_mutex mutex;  // held while a mutator runs

  // Writes that were submitted and not answered yet.
  size_t in_flight = 0;
  // The newest submitted state. It may be used while writes are in flight and none has failed.
  bool valid = false;
  uint64_t stamp = 0;
  std::string phase;
  std::shared_ptr<const std::string> record;
  // Counts how often a failure made the queue start again. The failure of a write from before the
  // last restart says nothing about the writes after it.
  uint64_t restarts = 0;

  // Called when a submitted write is answered. `restarts_then` is the count when it was submitted.
  void settle(uint64_t restarts_then, bool succeeded) {
    std::lock_guard lock(mutex);
    --in_flight;
    if (succeeded || restarts_then != restarts) return;
    valid = false;
    ++restarts;
  }
};

// Thread-safe. The stripes keep writers of different instances from waiting for one mutex.
class InstanceQueues {
 public:
  // The queue of an instance. It exists while a caller holds it.
  std::shared_ptr<InstanceQueue> at(const std::string& key) {
    Stripe& stripe = stripes_[std::hash<std::string>{}(key) % stripes_.size()];
    std::lock_guard lock(stripe.mutex);
    if (++stripe.uses % kSweep == 0)
      std::erase_if(stripe.queues, [](const auto& one) { return one.second.expired(); });
    std::weak_ptr<InstanceQueue>& slot = stripe.queues[key];
    if (auto queue = slot.lock()) return queue;
    auto queue = std::make_shared<InstanceQueue>();
    slot = queue;
    return queue;
  }

 private:
  static constexpr size_t kSweep = 1024;  // uses between two removals of expired queues
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<std::string, std::weak_ptr<InstanceQueue>> queues;
    size_t uses = 0;
  };
  std::array<Stripe, 16> stripes_;
};

}  // namespace pawl::lifecycle
