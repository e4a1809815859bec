#pragma once
// Every program that this binary has, constructed once: the server, verify and checkpoint use the
// same list.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/program.h"

namespace pawl::wasm {
class Host;
}
namespace pawl::worlds {
class Modules;
class WorldsProgram;
}  // namespace pawl::worlds

namespace pawl::cli {

// Settings that decide what programs do; verify must be given those that the server had.
struct ProgramSettings {
  int max_state_visits = 10;
  std::string wasm_cache{};  // where compiled modules are kept; empty: nowhere
};
// As the server would find them: variables, then defaults.
ProgramSettings program_settings();

class Programs {
 public:
  explicit Programs(ProgramSettings settings = program_settings());
  ~Programs();
  std::span<const Program* const> all() const { return all_; }
  std::vector<const Program*> list() const { return all_; }
  const worlds::WorldsProgram& worlds() const { return *worlds_; }

 private:
  std::unique_ptr<wasm::Host> wasm_;
  std::unique_ptr<worlds::Modules> modules_;
  const worlds::WorldsProgram* worlds_ = nullptr;
  std::vector<std::unique_ptr<Program>> own_;
  std::vector<const Program*> all_;
};

}  // namespace pawl::cli
