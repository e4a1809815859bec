#pragma once
// Followers wait for a world's next records: long polls and streams. One background loop steps all
// of them, each when its world has a new record or when its time has come. A slow step delays all
// others. Thread-safe.

#include <atomic>
#include <list>
#include <mutex>
#include <optional>

#include "faces/worlds/store/keys.h"
#include "kernel/access.h"
#include "runtime/background.h"

namespace pawl::worlds {

class Followers {
 public:
  // Returns when to be called again at the latest, by now(); nothing when the follower is done. The
  // call with `stopping` set is the last one.
  using Step = std::move_only_function<std::optional<Time>(bool stopping)>;

  Followers(KernelAccess& kernel, Background& background);
  ~Followers() { stop(); }
  // Steps it for the first time at once, on the loop's thread; after stop(), on the caller's
  // thread.
  void add(const WorldId& world_id, Step step);
  void stop();  // each follower is stepped once more, with `stopping` set
  Time now() const { return background_.steady_now(); }

 private:
  struct Follower {
    Key head;  // the cell that changes with every record
    Step step;
    Time due;
    bool moved = false;  // the world has new records
  };
  void watch_frame(const Frame& frame);
  Time step_due();

  KernelAccess& kernel_;
  Background& background_;
  std::mutex mutex_;
  std::list<Follower> all_;  // only the loop erases from it, until stop()
  // Lets watch_frame(), which runs for every frame of the server, return without the lock.
  std::atomic<bool> any_{false};
  bool stopping_ = false;
  uint64_t watch_;                        // names our watcher to the kernel; 0: none
  std::unique_ptr<BackgroundLoop> loop_;  // made for the first follower
};

}  // namespace pawl::worlds
