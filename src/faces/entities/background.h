#pragma once
// Work that takes longer than a request should hold its thread: scans, search jobs, filling an
// index. A few threads, a bounded line; when it is full the caller is told to come back.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pawl::entities {

class Background {
 public:
  using Work = std::move_only_function<void()>;
  explicit Background(size_t threads) : size_(threads) {}
  ~Background() { stop(); }
  void start();
  void stop();  // what waits is dropped
  bool add(Work work);
  bool stopping() const;

 private:
  static constexpr size_t kWaiting = 1000;
  void loop();
  size_t size_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> line_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pawl::entities
