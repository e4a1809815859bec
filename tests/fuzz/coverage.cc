// Coverage for the fuzzer. With PAWL_FUZZ the compiler calls the functions at the end of this file
// at each block and each comparison of the code under test. Without it they are never called, and
// the fuzzer cannot tell which inputs reach new code.

#include "fuzz.h"

#define UNCOUNTED __attribute__((no_sanitize_coverage, no_sanitize("address", "undefined")))

namespace pawl::fuzz::coverage {

namespace {
// An edge is a pair of blocks, hashed into a table of this size. kTouched bounds the edges that one
// input is remembered by, kValues its constants.
constexpr size_t kEdges = 1 << 18;
constexpr size_t kTouched = 1 << 16;
constexpr size_t kValues = 64;
// Plain arrays, because calls of library functions from here would be counted too.
uint8_t max_bucket[kEdges];  // of all inputs
uint8_t counts[kEdges];      // of this input
uint32_t touched[kTouched];  // edges with a count
size_t touched_count = 0;
uintptr_t previous = 0;
uint64_t values[kValues];
size_t values_count = 0;

// Counts are compared in buckets, so that a few more runs of a loop are not new coverage.
UNCOUNTED uint8_t bucket(uint8_t n) {
  return n < 4 ? n : n < 8 ? 4 : n < 16 ? 5 : n < 32 ? 6 : n < 128 ? 7 : 8;
}
}  // namespace

UNCOUNTED void clear() {
  for (size_t i = 0; i < touched_count; ++i)
    counts[touched[i]] = 0;
  touched_count = 0;
  values_count = 0;
  previous = 0;
}

// Also records the new counts, so a second call returns false.
UNCOUNTED bool grew() {
  bool grown = false;
  for (size_t i = 0; i < touched_count; ++i) {
    uint8_t n = bucket(counts[touched[i]]);
    if (n <= max_bucket[touched[i]]) continue;
    max_bucket[touched[i]] = n;
    grown = true;
  }
  return grown;
}

const std::vector<uint64_t>& compared() {
  static std::vector<uint64_t> out;
  out.assign(values, values + values_count);
  return out;
}

// Counts the edge from the previous block to this one.
UNCOUNTED static void count(uintptr_t block) {
  uint32_t edge =
      static_cast<uint32_t>((block * 0x9e3779b97f4a7c15 >> 40) ^ (previous >> 1)) % kEdges;
  previous = block;
  if (counts[edge] == 0) {
    if (touched_count == kTouched) return;
    touched[touched_count++] = edge;
  }
  if (counts[edge] < 255) ++counts[edge];
}

// Collects constants for Mutator::constant(). 0 and 1 occur everywhere and say nothing.
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
