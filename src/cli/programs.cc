#include "cli/programs.h"

#include "faces/entities/program.h"
#include "faces/processes/program.h"
#include "server/config.h"

namespace pawl::cli {

ProgramSettings program_settings() {
  auto config = server::Config::load({.flags = {}, .variable = server::environment, .file = {}});
  if (!config) return {};
  return {.max_state_visits = static_cast<int>(config->number("max-state-visits"))};
}

Programs::Programs(ProgramSettings settings) {
  own_.push_back(std::make_unique<processes::Program>());
  own_.push_back(std::make_unique<entities::Program>(entities::ProgramOptions{.max_state_visits = settings.max_state_visits}));
  for (const auto& p : own_) all_.push_back(p.get());
}

Programs::~Programs() = default;

}  // namespace pawl::cli
