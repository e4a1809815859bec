#pragma once
// Writers of one instance stand in a line. Each works on what the one before it has made, durable
// or not yet, and hands its own write in at once: they do not wait for each other's disk, and none
// of them sees a conflict. Only a writer elsewhere can make a line start over.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace pawl::lifecycle {

struct Line {
  std::timed_mutex mutex;  // held while a mutator runs
  // The newest state that was handed in, while any such write is unanswered and none has failed.
  size_t in_flight = 0;
  bool valid = false;
  uint64_t restarts =
      0;  // a write that failed before the last restart says nothing about those after it
  uint64_t stamp = 0;
  std::string phase;
  std::shared_ptr<const std::string> record;
};

class Lines {
 public:
  // The line of an instance while anybody stands in it.
  std::shared_ptr<Line> at(const std::string& key) {
    Stripe& stripe = stripes_[std::hash<std::string>{}(key) % stripes_.size()];
    std::lock_guard lock(stripe.mutex);
    if (++stripe.uses % kSweep == 0)
      std::erase_if(stripe.lines, [](const auto& one) { return one.second.expired(); });
    std::weak_ptr<Line>& slot = stripe.lines[key];
    if (auto line = slot.lock()) return line;
    auto line = std::make_shared<Line>();
    slot = line;
    return line;
  }

 private:
  static constexpr size_t kSweep = 1024;
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<std::string, std::weak_ptr<Line>> lines;
    size_t uses = 0;
  };
  std::array<Stripe, 16> stripes_;
};

}  // namespace pawl::lifecycle
