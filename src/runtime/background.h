#pragma once
// Background work. A face never starts a thread or reads a clock: it asks a Background for a loop
// or for a pool. The runtime asks a Scheduler, which also has the clocks and the waits that only
// the runtime needs. The server runs both on threads (BackgroundThreads); the simulator runs them
// on its own schedule, from its seed.

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "runtime/ready_signal.h"

namespace pawl {

// A loop calls its step when it is woken and when the time that the step returned has come. Calls
// never overlap. Destroying the loop waits for a running step and makes no further calls.
class BackgroundLoop {
 public:
  static constexpr Time kNever = std::numeric_limits<Time>::max();
  virtual ~BackgroundLoop() = default;
  // Asks for one more call soon. Safe from any thread, also from inside the step.
  virtual void wake() = 0;
};

// A pool runs tasks, several at a time. Each task has an owner, such as a tenant: the tasks of one
// owner run in the order they were added, and of several owners the one that has used the pool
// least comes first. One owner never has all threads, and the last free thread is kept for owners
// that used the pool little lately, so a short task never waits for a row of long ones. Destroying
// the pool drops the tasks that wait and waits for those that run.
class BackgroundPool {
 public:
  using Task = std::move_only_function<void()>;
  virtual ~BackgroundPool() = default;
  // Returns false, and drops the task, when too many tasks wait, when more than a quarter of them
  // are this owner's, or when the pool is stopping.
  virtual bool add(std::string_view owner, Task task) = 0;
  // Adds a task that nobody owns. Such tasks may fill the pool.
  bool add(Task task) { return add({}, std::move(task)); }
  // Tells long tasks to end early.
  virtual bool stopping() const = 0;
};

class Background {
 public:
  virtual ~Background() = default;
  // Nanoseconds on a clock that never goes back. Only differences mean anything.
  virtual Time steady_now() const = 0;
  // `step` returns when to call it again at the latest, by steady_now(); kNever waits for wake().
  // The first call comes soon after the loop is made.
  using Step = std::move_only_function<Time()>;
  virtual std::unique_ptr<BackgroundLoop> loop(std::string name, Step step) = 0;
  virtual std::unique_ptr<BackgroundPool> pool(std::string name, size_t threads,
                                               size_t max_waiting) = 0;
  // For a task of a pool that needs an answer: sleeps until the signal is set. Returns false when
  // the process ends first, which only happens in the simulator.
  virtual bool await(ReadySignal& signal) {
    signal.wait();
    return true;
  }
};

// Everything that a shard needs of the machine beside its storage: threads, clocks and waits.
class Scheduler : public Background {
 public:
  // The system's clock, in nanoseconds since 1970. It may be set, also back.
  virtual Time wall_now() const = 0;
  // Milliseconds of a clock that never goes back, in steps of a few of them. Every turn reads it.
  virtual int64_t coarse_ms() const = 0;
  // Processor time that the calling thread has used, in nanoseconds.
  virtual Time processor_time() const = 0;
  virtual unsigned processors() const = 0;  // how many threads can run at a time
  // As loop(), for steps that requests wait for: they run promptly also on a busy machine.
  virtual std::unique_ptr<BackgroundLoop> prompt_loop(std::string name, Step step) = 0;
  // Returns once `ready` returns true, or false at `deadline` by steady_now(). `ready` is called
  // again and again, without a lock of the scheduler.
  virtual bool wait_until(const std::function<bool()>& ready, Time deadline) = 0;
  // Starts the work and returns a function that waits for its end.
  using Work = std::function<Result<void>()>;
  virtual Work beside(Work work) = 0;
};

// Background work on threads of this process, and the clocks of the system.
class BackgroundThreads final : public Scheduler {
 public:
  Time steady_now() const override;
  std::unique_ptr<BackgroundLoop> loop(std::string name, Step step) override;
  std::unique_ptr<BackgroundPool> pool(std::string name, size_t threads,
                                       size_t max_waiting) override;
  Time wall_now() const override;
  unsigned processors() const override;
  int64_t coarse_ms() const override;
  Time processor_time() const override;
  std::unique_ptr<BackgroundLoop> prompt_loop(std::string name, Step step) override;
  bool wait_until(const std::function<bool()>& ready, Time deadline) override;
  Work beside(Work work) override;
};

}  // namespace pawl
