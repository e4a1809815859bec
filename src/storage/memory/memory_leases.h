#pragma once
// Leases in memory, for nodes of one process: tests and the simulator. They keep every promise of
// the interface; the clock of the store is given, and the store can be away.

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/time.h"
#include "storage/leases.h"

namespace pawl {

// What the nodes share, as they share a database.
class MemoryLeaseStore {
 public:
  MemoryLeaseStore(uint32_t shards, std::function<Time()> clock);
  // While it is away, every call of a node fails as `unavailable`. With `carries_out`, what was
  // asked happens all the same: only the answer is lost.
  void set_away(bool away, bool carries_out = false);
  std::unique_ptr<Leases> connect();

 private:
  friend class MemoryLeases;
  struct Node {
    int64_t life = 0;
    std::string place;
    Bytes details;
    Time lease_until = 0;
  };
  struct Owned {
    uint64_t epoch = 0;
    std::string owner;
    int64_t life = 0;
  };
  bool alive(const std::string& node, int64_t life) const;  // needs mutex_

  mutable std::mutex mutex_;
  std::function<Time()> clock_;
  std::map<std::string, Node> nodes_;
  std::vector<Owned> shards_;
  bool away_ = false, carries_out_ = false;
};

}  // namespace pawl
