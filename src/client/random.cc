#include "client/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include "base/result.h"

namespace pawl::client {

// From the system, not from a seed: keys must differ between processes that start at the same
// moment.
static uint64_t random_number() {
  uint64_t n = 0;
  CHECK(getrandom(&n, sizeof n, 0) == sizeof n);
  return n;
}

std::string fresh_key() { return fmt::format("{:016x}{:016x}", random_number(), random_number()); }

int jittered(int ms) {
  return ms / 2 + static_cast<int>(random_number() % static_cast<uint64_t>(ms + 1));
}

}  // namespace pawl::client
