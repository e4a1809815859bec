// With PAWL_FUZZ the compiler calls these at each block and each comparison of the code under test.
// Without it nobody does, and fuzzing is blind.

#include "fuzz.h"

#define UNCOUNTED __attribute__((no_sanitize_coverage, no_sanitize("address", "undefined")))

namespace pawl::fuzz::coverage {

namespace {
constexpr size_t kPlaces = 1 << 18;
constexpr size_t kTouched = 1 << 16, kValues = 64;
// Bare arrays: whatever is called from here would be counted itself.
uint8_t ever[kPlaces], now[kPlaces];
uint32_t touched[kTouched];
size_t touched_count = 0;
uintptr_t before = 0;
uint64_t values[kValues];
size_t values_count = 0;

// How often, roughly: twice is another thing than a hundred times.
UNCOUNTED uint8_t bucket(uint8_t n) {
  return n < 4 ? n : n < 8 ? 4 : n < 16 ? 5 : n < 32 ? 6 : n < 128 ? 7 : 8;
}
}  // namespace

UNCOUNTED void clear() {
  for (size_t i = 0; i < touched_count; ++i)
    now[touched[i]] = 0;
  touched_count = values_count = 0;
  before = 0;
}

UNCOUNTED bool grew() {
  bool fresh = false;
  for (size_t i = 0; i < touched_count; ++i) {
    uint8_t n = bucket(now[touched[i]]);
    if (n > ever[touched[i]]) ever[touched[i]] = n, fresh = true;
  }
  return fresh;
}

const std::vector<uint64_t>& compared() {
  static std::vector<uint64_t> out;
  out.assign(values, values + values_count);
  return out;
}

UNCOUNTED static void count(uintptr_t place) {
  uint32_t at = static_cast<uint32_t>((place * 0x9e3779b97f4a7c15 >> 40) ^ (before >> 1)) % kPlaces;
  before = place;
  if (now[at] == 0) {
    if (touched_count == kTouched) return;
    touched[touched_count++] = at;
  }
  if (now[at] < 255) ++now[at];
}

UNCOUNTED static void compare(uint64_t constant) {
  if (constant < 2 || values_count == kValues) return;
  for (size_t i = 0; i < values_count; ++i)
    if (values[i] == constant) return;
  values[values_count++] = constant;
}

extern "C" {
UNCOUNTED void __sanitizer_cov_trace_pc() {
  count(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
UNCOUNTED void __sanitizer_cov_trace_cmp1(uint8_t, uint8_t) {}
UNCOUNTED void __sanitizer_cov_trace_cmp2(uint16_t, uint16_t) {}
UNCOUNTED void __sanitizer_cov_trace_cmp4(uint32_t, uint32_t) {}
UNCOUNTED void __sanitizer_cov_trace_cmp8(uint64_t, uint64_t) {}
UNCOUNTED void __sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t) { compare(a); }
UNCOUNTED void __sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t) { compare(a); }
UNCOUNTED void __sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t) { compare(a); }
UNCOUNTED void __sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t) { compare(a); }
UNCOUNTED void __sanitizer_cov_trace_cmpf(float, float) {}
UNCOUNTED void __sanitizer_cov_trace_cmpd(double, double) {}
UNCOUNTED void __sanitizer_cov_trace_switch(uint64_t, uint64_t* cases) {
  for (uint64_t i = 0; i < cases[0] && i < 16; ++i)
    compare(cases[2 + i]);
}
}

}  // namespace pawl::fuzz::coverage
