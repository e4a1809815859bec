#include "kernel/access.h"

namespace pawl {

static thread_local BatchScope* t_together = nullptr;

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
