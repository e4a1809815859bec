#pragma once
// A clock that never goes back. Only differences mean anything.

#include <time.h>

#include <cstdint>

#include "base/time.h"

namespace pawl {

inline Time monotonic_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

// In milliseconds, and in steps of a few of them. It costs a few nanoseconds: every turn reads it.
inline int64_t monotonic_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

}  // namespace pawl
