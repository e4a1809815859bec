#pragma once
// Who runs a WASM module: a fresh instance for every call, no imports, limited fuel and memory, so
// that a call is a function of its bytes and nothing else.

#include <functional>
#include <string>

#include "base/bytes.h"

namespace pawl::wasm {

struct Limits {
  uint64_t fuel = 200'000'000;  // about a fifth of a second
  uint64_t memory_bytes = 64u << 20;
};

struct Outcome {
  Bytes output;
  uint64_t fuel = 0;  // used
};

// Gives the module's bytes when they are not compiled yet.
using Fetch = std::function<Result<Bytes>()>;

class Runner {
 public:
  virtual ~Runner() = default;
  // `hash` names the module (32 bytes). A module's own fault (trap, fuel, memory, a missing export,
  // an import, bytes that are no module) is `unprocessable` and the same every time; `unavailable`
  // means that this machine cannot run any module, and says what to install.
  virtual Result<Outcome> call(BytesView hash, const Fetch& fetch, std::string_view entrypoint,
                               BytesView input, const Limits& limits) = 0;
  virtual Result<bool> has_export(BytesView hash, const Fetch& fetch, std::string_view name) = 0;
  virtual std::string version() const = 0;  // "wasmtime 50.0.1"; empty when not loaded
};

}  // namespace pawl::wasm
