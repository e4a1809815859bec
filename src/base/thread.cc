#include "base/thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace pawl {

// struct sched_attr of the kernel, which glibc 2.36 does not declare.
struct SchedulerWishes {
  uint32_t size = sizeof(SchedulerWishes), policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};

void use_short_time_slices() {
  SchedulerWishes wishes;
  if (syscall(SYS_sched_getattr, 0, &wishes, sizeof wishes, 0) != 0 || wishes.policy != 0) return;
  wishes.size = sizeof wishes;
  wishes.runtime =
      100'000;  // ns, the least that Linux takes (6.12 and later; earlier ones ignore it)
  (void)syscall(SYS_sched_setattr, 0, &wishes, 0);
}

// Of this thread alone, as Linux has it.
void lower_thread_priority() { (void)::setpriority(PRIO_PROCESS, 0, 10); }

}  // namespace pawl
