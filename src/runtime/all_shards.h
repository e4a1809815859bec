#pragma once
// All shards as one kernel, for a service that serves all tenants. An input goes to the shard of
// its tenant, and a cell is read there. A scan merges the rows of the shards by key, so lists,
// counts and their cursors are as with one shard: a cursor is a key, and there is one order of keys
// over all shards. Each shard's part of a snapshot is consistent by itself.

#include <map>
#include <mutex>

#include "runtime/shards.h"

namespace pawl {

class AllShards final : public KernelAccess {
 public:
  explicit AllShards(const Shards& shards) : shards_(shards) {}

  void submit(Input input, Reply reply) override;
  // The cell of an open effect does not name its tenant: all shards are asked for it.
  Result<Cell> read(BytesView key) const override;
  ReadSnapshot snapshot() const override;
  Seq durable() const override { return shards_.durable(); }
  // A seq names one frame in each shard. Those of all shards are visited, shard by shard; a visitor
  // that returns false ends the visit of the shard.
  Result<void> frames(Seq from,
                      const std::function<Result<bool>(const Frame&)>& visit) const override;
  // Frames of different shards may come at the same time.
  uint64_t watch(Watcher watcher) override;
  void unwatch(uint64_t id) override;
  Time now() const override { return shards_[0].now(); }

 private:
  const Shards& shards_;
  std::mutex mutex_;
  std::map<uint64_t, std::vector<uint64_t>> watches_;  // the ids of each shard
  uint64_t next_ = 1;
};

// The tenant in the key of a cell: its second part, or the third when the second begins with '~'.
std::string_view tenant_in(BytesView key);

// The rows of several shards in one order. A key that several have is visited once.
std::unique_ptr<RowsSnapshot> merged_rows(std::vector<std::unique_ptr<RowsSnapshot>> parts);

}  // namespace pawl
