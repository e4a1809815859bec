#pragma once
// Those who wait for a world's next records: long polls and streams. One thread steps them all,
// when their world has moved or their time has come.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "faces/worlds/store/keys.h"
#include "kernel/access.h"

namespace pawl::worlds {

class Followers {
 public:
  using Clock = std::chrono::steady_clock;
  // When to step it again at the latest; nothing: it is done. With `over` set it must be.
  using Step = std::move_only_function<std::optional<Clock::time_point>(bool over)>;

  explicit Followers(KernelAccess& kernel);
  ~Followers() { stop(); }
  void add(const WorldId& world_id, Step step);
  void stop();  // each is stepped once more, and told that it is over

 private:
  struct One {
    Key head;  // the cell that moves with every record
    Step step;
    Clock::time_point due;
    bool moved = false;
  };
  void snapshot(const Frame& frame);
  void run();

  KernelAccess& kernel_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<One> all_;  // only the thread takes from it
  std::atomic<bool> any_{false};
  bool ending_ = false;
  uint64_t watch_;      // the door's number for us
  std::thread thread_;  // begins with the first follower
};

}  // namespace pawl::worlds
