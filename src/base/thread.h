#pragma once
// Scheduling hints for the calling thread. They are best effort: when the system refuses one, the
// thread works without it.

namespace pawl {

// For threads that sleep often and that requests wait for. A thread with short time slices runs as
// soon as it is woken, even on a busy machine, and not only at the scheduler's next tick.
void use_short_time_slices();
// For threads whose tasks take long, such as lists: a short request that comes meanwhile goes
// first.
void step_aside();
// For work that no request waits for, such as compressing closed segments. A second call changes
// nothing.
void lower_thread_priority();

}  // namespace pawl
