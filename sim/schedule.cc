#include "sim/schedule.h"

#include <algorithm>

namespace pawl::sim {

// Reading the clock takes this long, so that code which works for long sees time pass.
static constexpr Time kReading = 50;
// A step takes up to this long.
static constexpr uint64_t kMaxStep = 20 * kMicrosecond;
// Steps that wait while others run, at most.
static constexpr unsigned kMaxDepth = 3;

class Schedule::Loop final : public BackgroundLoop {
 public:
  Loop(Schedule& schedule, std::shared_ptr<LoopState> state)
      : schedule_(schedule), state_(std::move(state)) {}
  // A loop that is destroyed while its step waits for the disk ends with that step: only a process
  // that dies does this, and then nothing runs any more.
  ~Loop() override {
    state_->ended = true;
    std::erase(schedule_.loops_, state_);
  }
  void wake() override { state_->due = 0; }

 private:
  Schedule& schedule_;
  std::shared_ptr<LoopState> state_;
};

// The tasks of one owner run in their order; the dice choose the owner.
class Schedule::Pool final : public BackgroundPool {
 public:
  Pool(Schedule& schedule, size_t max_waiting)
      : schedule_(schedule), state_(std::make_shared<State>()), max_waiting_(max_waiting) {}
  ~Pool() override { state_->lanes.clear(); }
  bool add(std::string_view owner, Task task) override {
    std::deque<Task>& lane = state_->lanes[std::string(owner)];
    const size_t share = owner.empty() ? max_waiting_ : std::max<size_t>(1, max_waiting_ / 4);
    if (state_->waiting >= max_waiting_ || lane.size() >= share) return false;
    lane.push_back(std::move(task));
    ++state_->waiting;
    const Time due = schedule_.now_ + static_cast<Time>(schedule_.roll(kMillisecond));
    schedule_.pool_tasks_.emplace(
        std::pair(due, schedule_.next_task_++),
        [&schedule = schedule_, state = state_] { run_one(schedule, *state); });
    return true;
  }
  bool stopping() const override { return false; }

 private:
  struct State {
    std::map<std::string, std::deque<Task>> lanes;
    size_t waiting = 0;
  };
  static void run_one(Schedule& schedule, State& state) {
    std::erase_if(state.lanes, [](const auto& lane) { return lane.second.empty(); });
    if (state.lanes.empty()) return;
    auto chosen = state.lanes.begin();
    std::advance(chosen, static_cast<ptrdiff_t>(schedule.roll(state.lanes.size())));
    Task task = std::move(chosen->second.front());
    chosen->second.pop_front();
    --state.waiting;
    task();
  }

  Schedule& schedule_;
  std::shared_ptr<State> state_;  // shared with the posted tasks, which may outlive the pool
  const size_t max_waiting_;
};

class Schedule::StorageTasks final : public TaskQueue {
 public:
  explicit StorageTasks(Schedule& schedule)
      : schedule_(schedule), state_(std::make_shared<StorageState>()) {
    schedule_.storage_.push_back(state_);
  }
  ~StorageTasks() override { std::erase(schedule_.storage_, state_); }
  void add(std::function<void()> job) override { state_->jobs.push_back(std::move(job)); }
  void add_first(std::function<void()> job) override { state_->jobs.push_front(std::move(job)); }
  void finish() override {
    while (!state_->jobs.empty()) {
      auto job = std::move(state_->jobs.front());
      state_->jobs.pop_front();
      job();
    }
  }

 private:
  Schedule& schedule_;
  std::shared_ptr<StorageState> state_;
};

Time Schedule::steady_now() const { return now_ += kReading; }

void Schedule::after(Time delay, Task task) {
  tasks_.emplace(std::pair(now_ + std::max<Time>(delay, 0), next_task_++), std::move(task));
}

std::unique_ptr<BackgroundLoop> Schedule::loop(std::string name, Step step) {
  auto state = std::make_shared<LoopState>();
  state->name = std::move(name);
  state->step = std::move(step);
  loops_.push_back(state);
  return std::make_unique<Loop>(*this, std::move(state));
}

std::unique_ptr<BackgroundPool> Schedule::pool(std::string, size_t, size_t max_waiting) {
  return std::make_unique<Pool>(*this, max_waiting);
}

std::unique_ptr<TaskQueue> Schedule::storage_tasks() {
  return std::make_unique<StorageTasks>(*this);
}

Scheduler::Work Schedule::beside(Work work) {
  // Shared: the function may be copied.
  auto result = std::make_shared<Result<void>>(work());
  return [result] { return *result; };
}

void Schedule::run_loop(const std::shared_ptr<LoopState>& loop) {
  loop->running = true;
  loop->due = BackgroundLoop::kNever;  // a wake() during the step sets it again
  const Time due = loop->step();
  loop->running = false;
  if (!loop->ended) loop->due = std::min(loop->due, due);
}

// Tasks that are due, from the first one on.
static size_t count_due(const std::map<std::pair<Time, uint64_t>, Schedule::Task>& tasks,
                        Time now) {
  size_t out = 0;
  for (auto task = tasks.begin(); task != tasks.end() && task->first.first <= now; ++task)
    ++out;
  return out;
}

// Runs the task with this number among those that are due.
static void run_task(std::map<std::pair<Time, uint64_t>, Schedule::Task>& tasks, size_t number) {
  auto chosen = tasks.begin();
  std::advance(chosen, static_cast<ptrdiff_t>(number));
  const Schedule::Task task = std::move(chosen->second);
  tasks.erase(chosen);
  task();
}

bool Schedule::run_ready() {
  size_t ready = 0;
  for (const auto& loop : loops_)
    if (!loop->running && loop->due <= now_) ++ready;
  const size_t posted = count_due(tasks_, now_);
  // A task of a pool may wait for an answer, which a step that waits below it could not give.
  const size_t pooled = depth_ == 0 ? count_due(pool_tasks_, now_) : 0;
  // Jobs of the journal take locks that a waiting append holds.
  size_t storage = 0;
  if (depth_ == 0)
    for (const auto& state : storage_)
      if (!state->jobs.empty()) ++storage;
  const size_t choices = ready + posted + pooled + storage;
  if (choices == 0) return false;
  ++steps_;
  const Time was = now_;
  now_ += static_cast<Time>(roll(kMaxStep));
  size_t chosen = roll(choices);
  if (chosen < ready) {
    run_ready_loop(chosen, was);
  } else if ((chosen -= ready) < posted) {
    run_task(tasks_, chosen);
  } else if ((chosen -= posted) < pooled) {
    run_task(pool_tasks_, chosen);
  } else {
    run_storage_job(chosen - pooled);
  }
  return true;
}

void Schedule::run_ready_loop(size_t number, Time now) {
  for (const auto& loop : loops_) {
    if (loop->running || loop->due > now || number-- > 0) continue;
    const std::shared_ptr<LoopState> chosen = loop;  // its owner may end it
    return run_loop(chosen);
  }
}

void Schedule::run_storage_job(size_t number) {
  for (const auto& state : storage_) {
    if (state->jobs.empty() || number-- > 0) continue;
    auto job = std::move(state->jobs.front());
    state->jobs.pop_front();
    in_storage_job_ = true;
    job();
    in_storage_job_ = false;
    return;
  }
}

Time Schedule::next_due() const {
  Time due = tasks_.empty() ? BackgroundLoop::kNever : tasks_.begin()->first.first;
  if (depth_ == 0 && !pool_tasks_.empty()) due = std::min(due, pool_tasks_.begin()->first.first);
  for (const auto& loop : loops_)
    if (!loop->running) due = std::min(due, loop->due);
  return due;
}

bool Schedule::step() {
  if (frozen_) return false;
  if (run_ready()) return true;
  const Time due = next_due();
  if (due == BackgroundLoop::kNever) return false;
  now_ = std::max(now_, due);
  return true;
}

void Schedule::run_for(Time time) {
  const Time until = now_ + time;
  while (now_ < until && !frozen_) {
    if (run_ready()) continue;
    now_ = std::max(now_, std::min(next_due(), until));
  }
}

void Schedule::meanwhile(Time time) {
  if (frozen_) return;
  const Time until = now_ + time;
  // A job of the journal waits with locks that an append needs.
  if (depth_ >= kMaxDepth || in_storage_job_) {
    now_ = until;
    return;
  }
  ++depth_;
  while (now_ < until && !frozen_) {
    if (run_ready()) continue;
    now_ = std::max(now_, std::min(next_due(), until));
  }
  --depth_;
}

// `ready` may change something when it returns true, so it is not called again after that.
bool Schedule::wait_until(const std::function<bool()>& ready, Time deadline) {
  ++depth_;
  bool is_ready = ready();
  if (!is_ready && at_wait) at_wait();
  while (!is_ready && !frozen_ && now_ < deadline) {
    if (!run_ready()) {
      const Time due = std::min(next_due(), deadline);
      if (due == BackgroundLoop::kNever) break;
      now_ = std::max(now_, due);
    }
    is_ready = ready();
  }
  --depth_;
  return is_ready;
}

}  // namespace pawl::sim
