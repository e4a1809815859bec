#pragma once
// How the scheduler should treat the calling thread. Refused, the thread works as well.

namespace pawl {

// It sleeps a lot and others wait for what it does next: short turns, so that on a busy machine it
// runs when it is woken, and not when the next tick takes the processor from somebody else.
void use_short_time_slices();
// Nobody waits for it: whoever is waited for goes first.
void lower_thread_priority();

}  // namespace pawl
