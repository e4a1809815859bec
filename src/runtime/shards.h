#pragma once
// The shards of one process. Each is a kernel of its own, with its own journal and rows. They share
// the threads of one scheduler, and nothing else: no lock is common to the turns of two shards.
// One journal that fails stops its own shard only; the others go on.

#include "runtime/place.h"
#include "runtime/shard.h"

namespace pawl {

class Shards {
 public:
  struct Opened {
    std::unique_ptr<Shard> shard;
    const Rows* rows;  // of the shard
  };
  // Called for each shard, several at a time: a replay may take long.
  using Open = std::function<Result<Opened>(uint32_t shard)>;
  static Result<std::unique_ptr<Shards>> open(Scheduler& scheduler, uint32_t shards,
                                              const Open& open);
  Result<void> start();
  void stop();

  uint32_t size() const { return static_cast<uint32_t>(all_.size()); }
  Shard& operator[](uint32_t shard) const { return *all_[shard]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  // The rows as Shard::snapshot() sees them.
  std::unique_ptr<RowsSnapshot> rows_snapshot(uint32_t shard) const;
  // The shard of a tenant.
  uint32_t home(std::string_view tenant) const { return shard_of(tenant, size()); }

  // The sums of the shards, and the first failure of any.
  ShardStats stats() const;
  Result<void> healthy() const;
  Result<void> rows_intact() const;
  Result<void> progressing(Time limit) const;
  Time clock_behind() const;  // the largest
  Seq durable() const;        // frames of all journals
  std::vector<Quarantine::Parked> quarantine() const;
  // `not_found` when no shard has the effect in quarantine.
  Result<void> release(std::string_view effect_id) const;
  void forget_old_answers() const;

 private:
  explicit Shards(Scheduler& scheduler) : scheduler_(scheduler) {}
  // Calls `each` for every shard, several at a time. The first error is returned.
  Result<void> at_once(uint32_t shards, const std::function<Result<void>(uint32_t)>& each) const;

  Scheduler& scheduler_;
  std::vector<std::unique_ptr<Shard>> all_;
  std::vector<const Rows*> rows_;
};

}  // namespace pawl
