#include "faces/worlds/step/modules.h"

#include "faces/worlds/store/workspace.h"

namespace pawl::worlds {

Modules::Modules(wasm::Runner* runner) : runner_(runner) {
  add("sys/builtin_workspaces@1", std::make_unique<WorkspaceModule>());
}

Result<wasm::Runner*> Modules::runner(const Module& module) const {
  if (module.def.runtime != "wasm")
    return fail(Code::unprocessable, "wasm.error",
                "wasm runtime error: module '" + module.def.name + "' has runtime '" +
                    module.def.runtime + "', which this server does not run: build it as WASM");
  if (module.def.artifact == kNoHash)
    return fail(Code::unprocessable, "wasm.error",
                "wasm runtime error: module '" + module.def.name +
                    "' has no artifact hash: build it and put its bytes into the store");
  if (!runner_)
    return fail(Code::unavailable, "WASM_UNAVAILABLE",
                "module '" + module.def.name +
                    "' is WASM and this server runs without a WASM engine: run scripts/setup-wasm "
                    "and restart");
  return runner_;
}

Result<void> Modules::check_ready(wasm::Runner& runner, const Module& module, BytesView hash,
                                  const wasm::Fetch& fetch) const {
  const std::shared_ptr<ModuleCompiler> compiler = compiler_.load();
  if (!compiler || runner.is_ready(hash)) return {};
  if (compiler->begin(hash)) {
    auto wasm = fetch();
    if (!wasm) {
      compiler->give_up(hash);
      return fail(std::move(wasm.error()));
    }
    if (!compiler->compile(hash, *std::move(wasm)))
      return fail(Error{Code::unavailable,
                        "busy",
                        "too many modules wait for the compiler: retry later",
                        {},
                        true});
  }
  return fail(Error{Code::unavailable, "MODULE_COMPILING",
                    "module '" + module.def.name + "' is being compiled: retry later", hex(hash),
                    true});
}

Result<Bytes> Modules::run(const Module& module, std::string_view entrypoint, BytesView input,
                           const wasm::Limits& limits, const wasm::Fetch& fetch,
                           wasm::UsedFuel& used) const {
  used = {};
  if (auto native = natives_.find(module.def.name); native != natives_.end())
    return native->second->step(entrypoint, input);
  TRY(wasm::Runner * r, runner(module));
  TRY(Bytes hash, parse_hash(module.def.artifact));
  TRY_OK(check_ready(*r, module, hash, fetch));
  TRY(wasm::Outcome outcome, r->call(hash, fetch, entrypoint, input, limits, used));
  return std::move(outcome.output);
}

Result<bool> Modules::migrates(const Module& module, const wasm::Fetch& fetch) const {
  if (auto native = natives_.find(module.def.name); native != natives_.end())
    return native->second->migrates();
  if (module.def.artifact == kNoHash || module.def.runtime != "wasm") return false;
  TRY(wasm::Runner * r, runner(module));
  TRY(Bytes hash, parse_hash(module.def.artifact));
  TRY_OK(check_ready(*r, module, hash, fetch));
  return r->has_export(hash, fetch, "migrate");
}

void Modules::warm(BytesView wasm) const {
  if (!runner_) return;
  const Digest hash = sha256(wasm);
  auto known = runner_->has_export(
      view(hash), [&]() -> Result<Bytes> { return Bytes(wasm); }, "step");
  (void)known.has_value();
}

const std::string& Modules::version_of(const Module& module) const {
  return natives_.contains(module.def.name) ? module.hash : module.def.artifact;
}

}  // namespace pawl::worlds
