#pragma once
// Runner runs WASM modules. Every call gets a new instance without imports and with limited fuel
// and memory, so the result of a call depends on nothing but the module and the input.

#include <functional>
#include <string>

#include "base/bytes.h"

namespace pawl::wasm {

struct Limits {
  // Both are reached with an `unprocessable` error of the call.
  uint64_t fuel = 200'000'000;  // about 200 ms
  uint64_t memory_bytes = 64u << 20;
};

struct Outcome {
  Bytes output;
  uint64_t fuel = 0;  // used
};

// The fuel that a call used, also when it failed.
struct UsedFuel {
  uint64_t fuel = 0;
};

// Returns the bytes of the module. Called only when the module is not compiled yet.
using Fetch = std::function<Result<Bytes>()>;

class Runner {
 public:
  virtual ~Runner() = default;
  // Calls the function `entrypoint` of the module whose SHA-256 is `hash`, and sets `used`.
  // `unprocessable`: a fault of the module (trap, fuel, memory, a missing export, an import, bytes
  // that are not a module). The error is the same every time, because journals record it.
  // `unavailable`: this machine cannot run any module; the message says what to install.
  virtual Result<Outcome> call(BytesView hash, const Fetch& fetch, std::string_view entrypoint,
                               BytesView input, const Limits& limits, UsedFuel& used) = 0;
  virtual Result<bool> has_export(BytesView hash, const Fetch& fetch, std::string_view name) = 0;
  virtual std::string version() const = 0;  // "wasmtime 50.0.1"; empty when it is not installed
  // True when call() need not compile the module or read it from a file first, or fails anyway.
  virtual bool is_ready(BytesView) { return true; }
};

}  // namespace pawl::wasm
