#pragma once
// Workflows of worlds that are C++ classes instead of WASM modules.

#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::worlds {

// A workflow in C++: a pure function from input envelope to output envelope, both in CBOR
// (docs/reference/worlds.md, "Modules"). An error is recorded as the failure of the step, so it
// must depend on the input alone: no clock, no random numbers, no state of its own.
class NativeModule {
 public:
  virtual ~NativeModule() = default;
  virtual Result<std::string> step(std::string_view entrypoint, std::string_view input) const = 0;
  // True when `migrate` is an entrypoint: old state in, new state out.
  virtual bool migrates() const { return false; }
};

}  // namespace pawl::worlds
