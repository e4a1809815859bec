#include "assembly/programs.h"

#include "faces/entities/program.h"
#include "faces/lifecycle/run/program.h"
#include "faces/processes/run/program.h"
#include "faces/worlds/program.h"
#include "server/ops/config.h"
#include "wasm/host.h"

namespace pawl::assembly {

Result<ProgramSettings> program_settings() {
  TRY(server::Config config,
      server::Config::load({.flags = {}, .variable = server::environment, .file = {}}));
  return program_settings(config, {});
}

ProgramSettings program_settings(const server::Config& config, std::string wasm_cache) {
  return ProgramSettings{.max_state_visits = static_cast<int>(config.number("max-state-visits")),
                         .validate_results = config.boolean("validate-results"),
                         .wasm_cache = std::move(wasm_cache)};
}

Programs::Programs(ProgramSettings settings) {
  own_.push_back(std::make_unique<processes::Program>());
  own_.push_back(std::make_unique<entities::Program>(
      entities::ProgramOptions{.max_state_visits = settings.max_state_visits,
                               .validate_results = settings.validate_results}));
  own_.push_back(std::make_unique<lifecycle::Program>());
  wasm_ =
      std::make_unique<wasm::Host>(wasm::HostOptions{wasm::usual_libraries(), settings.wasm_cache});
  modules_ = std::make_unique<worlds::Modules>(wasm_.get());
  auto worlds = std::make_unique<worlds::WorldsProgram>(*modules_);
  // The server needs the program of worlds by its own type; see Programs::worlds().
  worlds_ = worlds.get();
  own_.push_back(std::move(worlds));
  for (const auto& p : own_)
    all_.push_back(p.get());
}

Programs::~Programs() = default;

}  // namespace pawl::assembly
