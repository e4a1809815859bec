#pragma once
// The clock settles timer effects when they are due. It keeps them in memory only: a start rebuilds
// the set from the open effects.

#include <mutex>
#include <set>

#include "kernel/access.h"
#include "runtime/background.h"

namespace pawl {

class Clock final : public Outbox {
 public:
  // Both must outlive the clock.
  Clock(KernelAccess& kernel, Background& background) : kernel_(kernel), background_(background) {}
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
  Time step();
  void wake();  // the caller holds mutex_
  void fire(const Entry& entry);

  KernelAccess& kernel_;
  Background& background_;
  mutable std::mutex mutex_;
  std::set<Entry> due_;
  size_t in_flight_ = 0;
  bool ending_ = false;
  std::unique_ptr<BackgroundLoop> loop_;  // null before start() and after stop()
};

}  // namespace pawl
