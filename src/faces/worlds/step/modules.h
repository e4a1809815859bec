#pragma once
// Modules hold the code of workflows: WASM by the hash of its bytes, or C++ registered under the
// module's name. Both receive an envelope and return one, and have no other input.

#include <map>
#include <memory>

#include "faces/worlds/air/manifest.h"
#include "wasm/runner.h"

namespace pawl::worlds {

// A workflow in C++: a pure function from input envelope to output envelope (abi.h reads and writes
// both). An error is recorded as the failure of the step, so it must depend on the input alone.
class NativeModule {
 public:
  virtual ~NativeModule() = default;
  virtual Result<Bytes> step(std::string_view entrypoint, BytesView input) const = 0;
  // True when `migrate` is an entrypoint: old state in, new state out.
  virtual bool migrates() const { return false; }
};

class Modules {
 public:
  explicit Modules(wasm::Runner* runner = nullptr);  // knows sys/builtin_workspaces@1
  // Call it before any world runs.
  void add(std::string module, std::unique_ptr<NativeModule> native) {
    natives_[std::move(module)] = std::move(native);
  }

  // Returns the output. Sets `used`, also when the step fails; C++ modules use no fuel.
  Result<Bytes> run(const Module& module, std::string_view entrypoint, BytesView input,
                    const wasm::Limits& limits, const wasm::Fetch& fetch,
                    wasm::UsedFuel& used) const;
  Result<bool> migrates(const Module& module, const wasm::Fetch& fetch) const;
  // The version that instances record: the artifact's hash, or for C++ the definition's hash.
  const std::string& version_of(const Module& module) const;
  // Compiles a module ahead, outside the kernel's thread. Errors show when the module is run.
  void warm(BytesView wasm) const;
  std::string engine() const { return runner_ ? runner_->version() : std::string(); }

 private:
  Result<wasm::Runner*> runner(const Module& module) const;
  std::map<std::string, std::unique_ptr<NativeModule>, std::less<>> natives_;
  wasm::Runner* runner_;
};

}  // namespace pawl::worlds
