#include "runtime/pooled_loops.h"

#include <algorithm>
#include <chrono>

#include "base/result.h"

namespace pawl {

class PooledLoops::Loop final : public BackgroundLoop {
 public:
  Loop(PooledLoops& pool, Step step, bool prompt)
      : pool_(pool), step_(std::move(step)), prompt_(prompt) {
    std::lock_guard lock(pool_.mutex_);
    pool_.make_ready(*this);
  }
  ~Loop() override {
    std::unique_lock lock(pool_.mutex_);
    ending_ = true;
    pool_.ended_.wait(lock, [this] { return state_ != State::running; });
    pool_.due_.erase({due_, this});
    std::erase(prompt_ ? pool_.ready_promptly_ : pool_.ready_, this);
  }
  void wake() override {
    std::lock_guard lock(pool_.mutex_);
    if (state_ == State::running)
      woken_ = true;
    else
      pool_.make_ready(*this);
  }

 private:
  friend class PooledLoops;
  enum class State { resting, ready, running };
  PooledLoops& pool_;
  Step step_;
  const bool prompt_;
  State state_ = State::resting;
  bool woken_ = false;  // during the step
  bool ending_ = false;
  Time due_ = kNever;  // resting: when it is due
};

// One user's part of a pool. Destroying it drops the tasks of this user that wait, and waits for
// those that run.
class PoolPart final : public BackgroundPool {
 public:
  explicit PoolPart(std::shared_ptr<BackgroundPool> pool) : pool_(std::move(pool)) {}
  ~PoolPart() override {
    std::map<uint64_t, Task> dropped;  // destroyed without the lock
    std::unique_lock lock(own_->mutex);
    own_->ending = true;
    dropped.swap(own_->waiting);
    own_->ended.wait(lock, [this] { return own_->running == 0; });
    lock.unlock();
  }
  bool add(std::string_view owner, Task task) override {
    uint64_t id = 0;
    {
      std::lock_guard lock(own_->mutex);
      if (own_->ending) return false;
      id = own_->next++;
      own_->waiting.emplace(id, std::move(task));
    }
    if (pool_->add(owner, [own = own_, id] { own->run(id); })) return true;
    std::map<uint64_t, Task>::node_type refused;
    std::lock_guard lock(own_->mutex);
    refused = own_->waiting.extract(id);
    return false;
  }
  bool stopping() const override {
    std::lock_guard lock(own_->mutex);
    return own_->ending;
  }

 private:
  // Shared with the tasks in the pool, which may outlive this part.
  struct Own {
    void run(uint64_t id) {
      {
        std::map<uint64_t, Task>::node_type task;
        {
          std::lock_guard lock(mutex);
          task = waiting.extract(id);
          if (!task) return;
          ++running;
        }
        task.mapped()();
      }
      std::lock_guard lock(mutex);
      --running;
      ended.notify_all();
    }
    std::mutex mutex;
    std::condition_variable ended;
    std::map<uint64_t, Task> waiting;
    uint64_t next = 0;
    size_t running = 0;
    bool ending = false;
  };
  const std::shared_ptr<BackgroundPool> pool_;
  const std::shared_ptr<Own> own_ = std::make_shared<Own>();
};

std::unique_ptr<BackgroundPool> PooledLoops::pool(std::string name, size_t threads,
                                                  size_t max_waiting) {
  std::lock_guard lock(pools_mutex_);
  std::shared_ptr<BackgroundPool> shared = pools_[name].lock();
  if (!shared) {
    shared = own_.pool(name, threads, max_waiting);
    pools_[name] = shared;
  }
  return std::make_unique<PoolPart>(std::move(shared));
}

PooledLoops::PooledLoops(size_t threads) {
  for (size_t i = 0; i < std::max<size_t>(1, threads); ++i)
    threads_.emplace_back([this] { run(); });
}

PooledLoops::~PooledLoops() {
  {
    std::lock_guard lock(mutex_);
    CHECK(ready_.empty() && ready_promptly_.empty() && due_.empty());
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

std::unique_ptr<BackgroundLoop> PooledLoops::loop(std::string, Step step) {
  return std::make_unique<Loop>(*this, std::move(step), false);
}

std::unique_ptr<BackgroundLoop> PooledLoops::prompt_loop(std::string, Step step) {
  return std::make_unique<Loop>(*this, std::move(step), true);
}

void PooledLoops::make_ready(Loop& loop) {
  if (loop.state_ == Loop::State::ready || loop.ending_) return;
  due_.erase({loop.due_, &loop});
  loop.due_ = BackgroundLoop::kNever;
  loop.state_ = Loop::State::ready;
  (loop.prompt_ ? ready_promptly_ : ready_).push_back(&loop);
  changed_.notify_one();
}

void PooledLoops::collect_due(Time now) {
  while (!due_.empty() && due_.begin()->first <= now)
    make_ready(*due_.begin()->second);
}

PooledLoops::Loop* PooledLoops::next() {
  std::deque<Loop*>& from = ready_promptly_.empty() ? ready_ : ready_promptly_;
  if (from.empty()) return nullptr;
  Loop* loop = from.front();
  from.pop_front();
  return loop;
}

void PooledLoops::rest(Loop& loop, Time due) {
  loop.state_ = Loop::State::resting;
  if (loop.ending_) return ended_.notify_all();
  if (std::exchange(loop.woken_, false)) return make_ready(loop);
  loop.due_ = due;
  if (due == BackgroundLoop::kNever) return;
  due_.emplace(due, &loop);
  // A thread that sleeps until a later time must sleep less.
  if (due_.begin()->second == &loop) changed_.notify_one();
}

void PooledLoops::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    collect_due(steady_now());
    Loop* loop = next();
    if (!loop) {
      if (due_.empty())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, std::chrono::steady_clock::time_point(
                                      std::chrono::nanoseconds(due_.begin()->first)));
      continue;
    }
    loop->state_ = Loop::State::running;
    loop->woken_ = false;
    lock.unlock();
    const Time due = loop->step_();
    lock.lock();
    rest(*loop, due);
  }
}

}  // namespace pawl
