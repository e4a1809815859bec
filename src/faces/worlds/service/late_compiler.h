#pragma once
// LateCompiler compiles the modules that a turn needed and that are in no cache, for example after
// a restart. The turn fails and writes nothing; its input waits here until the module is compiled,
// and is submitted again. Deliveries and timers are not here: the runtime repeats them.
// Thread-safe.

#include <map>
#include <mutex>
#include <set>

#include "faces/worlds/step/modules.h"
#include "kernel/access.h"
#include "runtime/background.h"

namespace pawl::worlds {

class LateCompiler final : public ModuleCompiler,
                           public std::enable_shared_from_this<LateCompiler> {
 public:
  // `run` runs a task on the thread of the compiler; false when too many tasks wait. `kernel` and
  // `modules` must outlive the last input.
  using Run = std::function<bool(BackgroundPool::Task)>;
  LateCompiler(KernelAccess& kernel, const Modules& modules, Run run)
      : kernel_(kernel), modules_(modules), run_(std::move(run)) {}

  bool begin(BytesView hash) override;
  void give_up(BytesView hash) override;
  bool compile(BytesView hash, Bytes wasm) override;

  // As KernelAccess::submit, for inputs that may run modules.
  void submit(Input input, Reply done) { submit({std::move(input), std::move(done)}); }
  // Inputs that wait are answered with an error, and no more wait.
  void stop();

 private:
  struct Waiting {
    Input input;
    Reply done;
    size_t tries = 0;
  };
  void submit(Waiting waiting);
  void wait(const std::string& hash, Waiting waiting, Error error);
  void finish(const std::string& hash);

  KernelAccess& kernel_;
  const Modules& modules_;
  const Run run_;
  std::mutex mutex_;
  bool stopped_ = false;
  size_t count_ = 0;  // of all inputs that wait
  // Modules that are being compiled, by their hash in hex, with the inputs that wait for them.
  std::map<std::string, std::vector<Waiting>> compiling_;
};

}  // namespace pawl::worlds
