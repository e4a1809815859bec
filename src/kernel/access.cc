#include "kernel/access.h"

namespace pawl {

static thread_local BatchScope* t_together = nullptr;

static thread_local int64_t t_transport_us = 0;

TransportCost::TransportCost(int64_t microseconds)
    : outer_(std::exchange(t_transport_us, microseconds)) {}

TransportCost::~TransportCost() { t_transport_us = outer_; }

int64_t TransportCost::take() { return std::exchange(t_transport_us, 0); }

BatchScope::BatchScope() : outer_(std::exchange(t_together, this)) {}

BatchScope::~BatchScope() {
  t_together = outer_;
  if (kernel_) kernel_->run_batch();
}

bool BatchScope::holds(KernelAccess& kernel) {
  // A scope holds inputs of one kernel only: inputs for a second kernel run at once.
  if (!t_together || (t_together->kernel_ && t_together->kernel_ != &kernel)) return false;
  t_together->kernel_ = &kernel;
  return true;
}

}  // namespace pawl
