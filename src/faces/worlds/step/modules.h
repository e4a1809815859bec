#pragma once
// Modules hold the code of workflows: WASM by the hash of its bytes, or C++ registered under the
// module's name (NativeModule in pawl/worlds.h). Both receive an envelope and return one, and have
// no other input.

#include <atomic>
#include <map>
#include <memory>

#include "faces/worlds/air/manifest.h"
#include "pawl/worlds.h"
#include "wasm/runner.h"

namespace pawl::worlds {

// The turn needs a module that is being compiled beside the turns; the detail is its hash in hex.
// Nothing was written: the same input succeeds later.
inline constexpr Reason kModuleCompiling{"MODULE_COMPILING"};

// Compiles modules beside the turns. A turn of a live server never waits for the compiler: it fails
// with kModuleCompiling. All functions are called inside turns.
class ModuleCompiler {
 public:
  virtual ~ModuleCompiler() = default;
  // True when the caller must call compile() or give_up() next; false when the module is being
  // compiled already.
  virtual bool begin(BytesView hash) = 0;
  virtual void give_up(BytesView hash) = 0;
  // False when too many modules wait for the compiler.
  virtual bool compile(BytesView hash, Bytes wasm) = 0;
};

class Modules {
 public:
  explicit Modules(wasm::Runner* runner = nullptr);  // knows sys/builtin_workspaces@1
  // Call it before any world runs.
  // Shared with the embedding program, which may keep its module.
  void add(std::string module, std::shared_ptr<const NativeModule> native) {
    natives_[std::move(module)] = std::move(native);
  }

  // From now on, modules are compiled beside the turns; null: inside the turns again, as in a
  // replay. Shared with the turns that run.
  void compile_beside(std::shared_ptr<ModuleCompiler> compiler) const {
    compiler_.store(std::move(compiler));
  }

  // Returns the output. Sets `used`, also when the step fails; C++ modules use no fuel.
  Result<Bytes> run(const Module& module, std::string_view entrypoint, BytesView input,
                    const wasm::Limits& limits, const wasm::Fetch& fetch,
                    wasm::UsedFuel& used) const;
  Result<bool> migrates(const Module& module, const wasm::Fetch& fetch) const;
  // The version that instances record: the artifact's hash, or for C++ the definition's hash.
  const std::string& version_of(const Module& module) const;
  // True for a module that is C++ here: its bytes do not matter.
  bool is_native(std::string_view module) const { return natives_.contains(module); }
  // Compiles a module ahead, outside the kernel's thread. Errors show when the module is run.
  void warm(BytesView wasm) const;
  std::string engine() const { return runner_ ? runner_->version() : std::string(); }

 private:
  Result<wasm::Runner*> runner(const Module& module) const;
  Result<void> check_ready(wasm::Runner& runner, const Module& module, BytesView hash,
                           const wasm::Fetch& fetch) const;
  std::map<std::string, std::shared_ptr<const NativeModule>, std::less<>> natives_;
  wasm::Runner* runner_;
  mutable std::atomic<std::shared_ptr<ModuleCompiler>> compiler_;
};

}  // namespace pawl::worlds
