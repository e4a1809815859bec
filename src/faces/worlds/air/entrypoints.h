#pragma once
// The entrypoints that the workflows of a manifest call.

#include "faces/worlds/air/manifest.h"

namespace pawl::worlds {

// By the name of their module.
inline std::map<std::string, std::set<std::string>> entrypoints_of(const LoadedManifest& loaded) {
  std::map<std::string, std::set<std::string>> out;
  for (const auto& [name, workflow] : loaded.workflows)
    out[workflow.module->def.name].insert(workflow.def.impl.entrypoint);
  return out;
}

}  // namespace pawl::worlds
