#pragma once
// The clock settles timer effects when they are due. It keeps them in memory only: a start rebuilds
// the set from the open effects.

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "kernel/access.h"

namespace pawl {

class Clock final : public Outbox {
 public:
  explicit Clock(KernelAccess& kernel) : kernel_(kernel) {}
  ~Clock() override { stop(); }
  void start();
  void stop();

  void opened(const EffectPtr& effect) override;
  void closed(const Effect& effect) override;
  void flushed() override;

  size_t waiting() const;
  Time lag() const;  // how long the oldest due timer has been waiting; 0 when none is due

 private:
  // Receipts in flight at once; more would fill the kernel's queue.
  static constexpr size_t kInFlight = 10'000;
  using Entry = std::pair<Time, std::string>;
  void loop();
  void fire(const Entry& entry);

  KernelAccess& kernel_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::set<Entry> due_;
  size_t in_flight_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace pawl
