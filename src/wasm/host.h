#pragma once
// Host runs WASM modules with Wasmtime. The Wasmtime library is loaded when the first module is
// needed. Modules are compiled once and cached in memory and as files. Thread-safe.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "wasm/runner.h"
#include "wasm/wasmtime_api.h"

namespace pawl::wasm {

inline constexpr std::string_view kWasmtimeVersion = "50.0.1";

struct HostOptions {
  std::vector<std::string> libraries{};  // paths of libwasmtime.so, tried in this order
  std::string cache_folder{};            // for compiled modules; empty: no files are kept
};

// The paths where Wasmtime is looked for: $PAWL_WASMTIME; .cache/wasmtime beside the program and in
// the folder above it; lib/pawl and lib of the prefix that the program is installed in (`make
// install` puts it into the first); then the library path of the system, /usr/local/lib and
// /usr/lib/pawl.
std::vector<std::string> usual_libraries();

class Host final : public Runner {
 public:
  explicit Host(HostOptions options) : options_(std::move(options)) {}
  ~Host() override;
  Result<Outcome> call(BytesView hash, const Fetch& fetch, std::string_view entrypoint,
                       BytesView input, const Limits& limits, UsedFuel& used) override;
  Result<bool> has_export(BytesView hash, const Fetch& fetch, std::string_view name) override;
  bool is_ready(BytesView hash) override;
  std::string version() const override;

 private:
  struct Compiled;  // a module that is ready to be instantiated
  // A module in memory: ready, or the reason why it never will be.
  struct Cached {
    Result<std::shared_ptr<const Compiled>> module;
    uint64_t used = 0;  // the number of the call that last used it
  };
  // The caller holds mutex_.
  const Cached* find_cached(BytesView hash);
  void keep(BytesView hash, Result<std::shared_ptr<const Compiled>> module);
  class Call;  // one call, in a store of its own
  // Loads the library and creates the engine, unless that is done. The caller holds mutex_.
  Result<void> open() const;
  api::Config* make_config() const;
  Result<std::shared_ptr<const Compiled>> compiled(BytesView hash, const Fetch& fetch);
  Result<std::shared_ptr<const Compiled>> prepare(api::Module* module) const;
  Result<api::Module*> compile(BytesView hash, const Fetch& fetch);
  api::Module* read_cache(const std::string& path) const;
  void write_cache(const std::string& path, api::Module* module) const;
  Error fault_error(api::Fault* fault, std::string_view doing) const;

  HostOptions options_;
  mutable std::mutex mutex_;
  mutable api::Library lib_;
  mutable api::Engine* engine_ = nullptr;
  std::map<Bytes, Cached, std::less<>> modules_;
  uint64_t uses_ = 0;
};

}  // namespace pawl::wasm
