#pragma once
// The Wasmtime host. The library is opened when the first module is needed; modules are compiled
// once and kept, in memory and as files; each call gets an instance of its own.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "wasm/runner.h"
#include "wasm/wasmtime_api.h"

namespace pawl::wasm {

inline constexpr std::string_view kWasmtimeVersion = "50.0.1";

struct HostOptions {
  std::vector<std::string> libraries{};  // tried in this order
  std::string cache_folder{};            // for compiled modules; empty: none
};

// $PAWL_WASMTIME, then .cache/wasmtime beside and above the program, then the system's.
std::vector<std::string> usual_libraries();

class Host final : public Runner {
 public:
  explicit Host(HostOptions options) : options_(std::move(options)) {}
  ~Host() override;
  Result<Outcome> call(BytesView hash, const Fetch& fetch, std::string_view entrypoint,
                       BytesView input, const Limits& limits) override;
  Result<bool> has_export(BytesView hash, const Fetch& fetch, std::string_view name) override;
  std::string version() const override;

 private:
  struct Compiled;            // a module, ready to be instantiated
  class Call;                 // one call in a store of its own
  Result<void> open() const;  // the library and the engine, once
  Result<std::shared_ptr<const Compiled>> compiled(BytesView hash, const Fetch& fetch);
  Result<std::shared_ptr<const Compiled>> prepare(api::Module* module) const;
  Result<api::Module*> compile(BytesView hash, const Fetch& fetch);
  api::Module* from_file(const std::string& path) const;
  void to_file(const std::string& path, api::Module* module) const;
  Error own_fault(api::Fault* fault, std::string_view doing) const;

  HostOptions options_;
  mutable std::mutex mutex_;
  mutable api::Library lib_;
  mutable api::Engine* engine_ = nullptr;
  std::map<Bytes, std::shared_ptr<const Compiled>, std::less<>> modules_;
};

}  // namespace pawl::wasm
