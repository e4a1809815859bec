#pragma once
// A false world: one kernel on memory stores, time that jumps, a disk that fails, a process that
// dies at any point, and an outside that loses, delays and doubles receipts. All of it from a seed.

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
  // One stage of the pipeline, chosen by the caller; each does nothing when there is nothing to do.
  void drive();          // run queued inputs, close the group
  void append();         // make the oldest groups durable; may fail and kill the process
  void apply();          // what is durable becomes visible; now and then rows follow
  void release_group();  // answers and effects of what is applied
  void settle_all();     // all stages until nothing moves
  ReadSnapshot snapshot();

  void crash();  // the process dies now; memory is gone, rows fall back
  void restart();
  bool alive() const { return kernel_ != nullptr; }
  uint64_t crashes() const { return crashes_; }

  // Effects that have left and are not known to be settled: the outside may answer them.
  std::vector<Effect>& outside() { return outside_; }
  Time now = 1'000'000 * kSecond;
  unsigned disk_fault_percent = 2;

  MemoryJournal journal;
  MemoryRows rows;
  std::vector<const Program*> programs;

  // Broken promises, told for a person; empty while all is well.
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
