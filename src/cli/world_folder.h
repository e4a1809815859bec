#pragma once
// A world in a folder: AIR definitions and modules as files (docs/guide/worlds.md, "A world in a
// folder"). Reading and building need no server.

#include <map>
#include <string>

#include "faces/worlds/air/manifest.h"
#include "json/value.h"

namespace pawl::cli {

// The file in the folder that names the world and the files of its modules.
inline constexpr std::string_view kWorldFile = "pawl.world.json";

// The definitions and settings of the folder, before its modules are built.
struct WorldFolder {
  std::string path;
  std::string world;                             // its name on the server
  json::Value limits{};                          // null: the server's defaults
  json::Value air{};                             // a list of nodes with one manifest
  std::map<std::string, std::string> modules{};  // module name -> file
};
// Errors name the file and what to write there. Reads at most kMaxAirFiles files.
Result<WorldFolder> read_world_folder(const std::string& path);

// A folder whose modules are built and whose hashes are known.
struct BuiltWorld {
  std::string world;
  json::Value limits{};
  worlds::Authored authored;
  std::string manifest_hash;
  std::map<std::string, Bytes> wasm{};  // module name -> bytes

  // {manifest, nodes} with every hash: what POST /v1/worlds and a proposal take.
  json::Value document() const;
};
// Compiles C++ and Rust modules into the subfolder `build`, checks the definitions against each
// other and the modules against the entrypoints of their workflows, and writes build/manifest.json.
Result<BuiltWorld> build_world(const WorldFolder& folder);

// Writes a first world into a folder that is empty or does not exist yet.
Result<void> init_world(const std::string& path, const std::string& world);

inline constexpr size_t kMaxAirFiles = 1000;

}  // namespace pawl::cli
