#pragma once
// The teller tells newcomers what was there: a page at a time, each only as fast as it reads, on a
// thread of its own so that no request waits for somebody else's long story.

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace pawl::lifecycle {

class Teller {
 public:
  enum class Next { more, wait, done };  // wait: the listener is behind, come back later
  using Task = std::function<Next()>;
  ~Teller();
  void add(Task task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Task> tasks_;
  bool ending_ = false;
  std::thread thread_;  // begins with the first task
};

}  // namespace pawl::lifecycle
