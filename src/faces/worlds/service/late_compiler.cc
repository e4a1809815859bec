#include "faces/worlds/service/late_compiler.h"

namespace pawl::worlds {

// Inputs that wait for modules. Each holds its body. Further ones are answered with an error that
// says to retry.
static constexpr size_t kMaxWaiting = 1000;
// How often an input is submitted again: once for each module that its steps need, and more only
// when modules are dropped from memory before their turn.
static constexpr size_t kMaxTries = 100;

bool LateCompiler::begin(BytesView hash) {
  std::lock_guard lock(mutex_);
  return compiling_.try_emplace(hex(hash)).second;
}

void LateCompiler::give_up(BytesView hash) { finish(hex(hash)); }

bool LateCompiler::compile(BytesView hash, Bytes wasm) {
  auto task = [self = shared_from_this(), hash = hex(hash), wasm = std::move(wasm)] {
    self->modules_.warm(wasm);
    self->finish(hash);
  };
  if (run_(std::move(task))) return true;
  give_up(hash);
  return false;
}

// The inputs find out by themselves whether the module can be run now.
void LateCompiler::finish(const std::string& hash) {
  std::vector<Waiting> ready;
  {
    std::lock_guard lock(mutex_);
    auto it = compiling_.find(hash);
    if (it == compiling_.end()) return;
    ready = std::move(it->second);
    compiling_.erase(it);
    count_ -= ready.size();
  }
  for (Waiting& one : ready)
    submit(std::move(one));
}

void LateCompiler::submit(Waiting waiting) {
  Input again = waiting.input;
  kernel_.submit(std::move(again), [self = shared_from_this(),
                                    waiting = std::move(waiting)](Result<Answer> answer) mutable {
    if (answer || !answer.error().is(kModuleCompiling) || ++waiting.tries > kMaxTries)
      return waiting.done(std::move(answer));
    const std::string hash = answer.error().detail;
    self->wait(hash, std::move(waiting), std::move(answer.error()));
  });
}

void LateCompiler::wait(const std::string& hash, Waiting waiting, Error error) {
  {
    std::lock_guard lock(mutex_);
    auto it = compiling_.find(hash);
    if (!stopped_ && it != compiling_.end() && count_ < kMaxWaiting) {
      ++count_;
      it->second.push_back(std::move(waiting));
      return;
    }
    if (stopped_ || it != compiling_.end()) return waiting.done(fail(std::move(error)));
  }
  submit(std::move(waiting));  // compiled meanwhile
}

void LateCompiler::stop() {
  std::map<std::string, std::vector<Waiting>> left;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(compiling_);
    count_ = 0;
  }
  for (auto& [hash, inputs] : left)
    for (Waiting& one : inputs)
      one.done(fail(Code::unavailable, kStopping, "the server is stopping"));
}

}  // namespace pawl::worlds
