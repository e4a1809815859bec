#include "kernel/door.h"

namespace pawl {

static thread_local Together* t_together = nullptr;

Together::Together() : outer_(std::exchange(t_together, this)) {}

Together::~Together() {
  t_together = outer_;
  if (door_) door_->together();
}

bool Together::holds(Door& door) {
  // One door at a time: inputs for a second one run as if alone.
  if (!t_together || (t_together->door_ && t_together->door_ != &door)) return false;
  t_together->door_ = &door;
  return true;
}

}  // namespace pawl
