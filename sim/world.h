#pragma once
// A simulated world: one kernel on memory stores, a clock that jumps, a disk that fails, a process
// that dies at any point, and an outside that loses, delays and duplicates receipts. Everything
// follows from a seed.

#include <deque>
#include <random>
#include <set>

#include "kernel/commit.h"
#include "kernel/kernel.h"
#include "kernel/replay.h"
#include "storage/memory/memory.h"

namespace pawl::sim {

class World {
 public:
  World(uint64_t seed, std::vector<const Program*> programs);

  // True with probability `percent` in a hundred.
  bool chance(unsigned percent) { return roll(100) < percent; }
  uint64_t roll(uint64_t below) { return random_() % below; }
  std::array<uint64_t, 2> dice() { return {random_(), random_()}; }

  void submit(Input input, Reply reply);
  // The stages of the pipeline, called in any order. A stage without work does nothing.
  void drive();          // runs queued inputs and closes the group
  void append();         // makes the oldest groups durable; may fail and kill the process
  void apply();          // makes durable cells visible and sometimes applies rows
  void release_group();  // releases answers and effects of applied groups
  void settle_all();     // runs all stages until nothing is left to do
  ReadSnapshot snapshot();

  void crash();  // kills the process: memory is lost and the rows fall back
  void restart();
  bool alive() const { return kernel_ != nullptr; }
  uint64_t crashes() const { return crashes_; }

  // Effects that have left and may still be answered from outside.
  std::vector<Effect>& outside() { return outside_; }
  Time now = 1'000'000 * kSecond;
  unsigned disk_fault_percent = 2;

  MemoryJournal journal;
  MemoryRows rows;
  std::vector<const Program*> programs;

  // Broken promises, described for people; empty when there are none.
  std::vector<std::string> broken;
  void expect(bool held, std::string what);

 private:
  void sent(const Effect& effect, Seq frame);

  std::mt19937_64 random_;
  std::unique_ptr<CellCache> cache_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Committer> committer_;
  std::deque<std::pair<Input, Reply>> queue_;
  std::deque<Group> taken_, durable_, applied_;
  std::vector<Effect> outside_;
  uint64_t crashes_ = 0;
};

}  // namespace pawl::sim
