#pragma once
// The programs of this binary. The server, the simulator, `pawl verify` and `pawl checkpoint` use
// the same list.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/program.h"

namespace pawl::server {
class Config;
}
namespace pawl::wasm {
class Host;
}
namespace pawl::worlds {
class Modules;
class WorldsProgram;
}  // namespace pawl::worlds

namespace pawl::assembly {

// Settings that change what programs do. `pawl verify` needs the same values as the server had.
struct ProgramSettings {
  int max_state_visits = 10;
  bool validate_results = false;
  std::string wasm_cache{};  // folder of compiled modules; empty: they are not kept
};
// The values that a server without flags would use: from variables, else the defaults. A
// configuration that cannot be read is an error: other values would make `pawl verify` report
// differences that there are not.
Result<ProgramSettings> program_settings();
ProgramSettings program_settings(const server::Config& config, std::string wasm_cache);

class Programs {
 public:
  explicit Programs(ProgramSettings settings);
  ~Programs();
  std::span<const Program* const> all() const { return all_; }
  std::vector<const Program*> list() const { return all_; }
  const worlds::WorldsProgram& worlds() const { return *worlds_; }

 private:
  // In the order of their use: modules run on the WASM host, and the program of worlds calls
  // modules.
  std::unique_ptr<wasm::Host> wasm_;
  std::unique_ptr<worlds::Modules> modules_;
  const worlds::WorldsProgram* worlds_ = nullptr;
  std::vector<std::unique_ptr<Program>> own_;
  std::vector<const Program*> all_;
};

}  // namespace pawl::assembly
