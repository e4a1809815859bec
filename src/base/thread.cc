#include "base/thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace pawl {

// The Linux struct sched_attr, which glibc 2.36 does not declare.
struct SchedulerAttributes {
  uint32_t size = sizeof(SchedulerAttributes);
  uint32_t policy = 0;  // 0: SCHED_OTHER, the normal policy
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // ns; of SCHED_OTHER the length of a time slice
  uint64_t deadline = 0;
  uint64_t period = 0;
};
// The shortest time slice that Linux accepts, in ns. Linux before 6.12 ignores it.
static constexpr uint64_t kShortestSlice = 100'000;

void use_short_time_slices() {
  SchedulerAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != 0) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kShortestSlice;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Sets the priority of the calling thread so many steps below that of the process, which may have
// been started with a low one. On Linux, PRIO_PROCESS with id 0 means the calling thread; the id of
// the process means its first thread.
static void set_steps_below(int steps) {
  const int of_process = ::getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  (void)::setpriority(PRIO_PROCESS, 0, of_process + steps);
}

// Five steps are a third of the processor time while others want it, and no more starving than
// that.
void step_aside() { set_steps_below(5); }
void lower_thread_priority() { set_steps_below(10); }

}  // namespace pawl
