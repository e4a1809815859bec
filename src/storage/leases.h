#pragma once
// Leases say which node owns which shard. A node renews one lease for all its shards; when the
// lease has run out, every other node may claim them. A claim has an epoch, and the journal
// refuses appends of an older epoch: a node that does not know yet that it lost a shard can do no
// harm.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace pawl {

// The right to append to the journal of a shard.
struct Claim {
  uint32_t shard = 0;
  uint64_t epoch = 0;
  std::string node;
};

// The lease was not renewed in time, and another node may own its shards.
inline constexpr Reason kLeaseLost{"LEASE_LOST"};
// Another process uses the name of this node.
inline constexpr Reason kNodeNameTaken{"NODE_NAME_TAKEN"};

struct NodeRow {
  std::string name;
  Bytes details;  // what the node tells the others: its addresses and its version
  bool alive = false;
};

struct ShardRow {
  uint32_t shard = 0;
  uint64_t epoch = 0;
  std::string owner;  // empty: nobody
  bool held = false;  // the owner's lease has not run out
  uint64_t head = 0;  // the last entry of the journal
};

struct Owners {
  std::vector<NodeRow> nodes;    // by name
  std::vector<ShardRow> shards;  // by number
};

class Leases {
 public:
  virtual ~Leases() = default;
  // Begins the life of a node. `place` is the same for every life in the same data folder: there a
  // new life replaces the one before at once. From another place the name is refused with
  // NODE_NAME_TAKEN while its lease has not run out.
  virtual Result<void> join(const std::string& node, const std::string& place, BytesView details,
                            std::chrono::milliseconds lease) = 0;
  // Extends the lease to `lease` from now on. LEASE_LOST (`conflict`): it had run out, or a new
  // life of the node began; nothing of this life may be served any more.
  virtual Result<void> renew(std::chrono::milliseconds lease) = 0;
  // Replaces the details that join() gave.
  virtual Result<void> tell(BytesView details) = 0;
  // Takes a shard that no living node owns, or that an earlier life of this node owned. Empty: it
  // has an owner.
  virtual Result<std::optional<Claim>> claim(uint32_t shard) = 0;
  // Gives a shard back, so that others may claim it at once.
  virtual Result<void> give_up(const Claim& claim) = 0;
  // Gives everything back and ends this life.
  virtual Result<void> leave() = 0;
  virtual Result<Owners> owners() = 0;
};

}  // namespace pawl
