#pragma once
// Membership makes this process a node of the cluster. It renews the node's lease, claims free
// shards up to a fair share, gives up what is over it, and stops every shard at once when the lease
// may have run out. Time is counted on this machine's steady clock, from before each renewal was
// sent: no clock of another machine is compared with it.
//
// Three loops: one renews, one watches the time, and one claims, opens and closes. Opening a shard
// may take long and a store may not answer, and neither may delay the others.

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/background.h"
#include "storage/leases.h"

namespace pawl {

// What a node tells the others (NodeRow::details).
struct NodeRecord {
  std::string http{}, grpc{}, internal{};  // addresses, "10.0.0.7:8080"
  std::string version{};
  bool draining = false;           // it gives up its shards and claims none
  std::vector<uint32_t> wanted{};  // shards that it shall own: their owners give them up
};
Bytes encode(const NodeRecord& record);
Result<NodeRecord> decode_node_record(BytesView bytes);

// Opens and closes shards. Calls for one shard never overlap, except fence().
class ShardOwner {
 public:
  virtual ~ShardOwner() = default;
  // Begins to serve the shard. May take long. After a failure the shard is given up.
  virtual Result<void> open(const Claim& claim) = 0;
  // Finishes what was accepted and ends the shard. Nothing of it runs when this returns.
  virtual void close(uint32_t shard) = 0;
  // The lease may have run out: from now on nothing of the shard may be answered or sent. Returns
  // soon; close() follows. May come on another thread while open() or close() runs.
  virtual void fence(uint32_t shard) = 0;
};

struct MembershipOptions {
  std::string node;   // unique name
  std::string place;  // names the data folder: see Leases::join
  NodeRecord record{};
  std::chrono::milliseconds lease = std::chrono::seconds(3);
};

struct MembershipStatus {
  bool joined = false;
  bool draining = false;
  Time lease_left = 0;  // 0: it may have run out
  std::vector<Claim> held{};
  uint64_t claims = 0;  // since the start
  uint64_t losses = 0;  // times that the lease was lost
  std::string last_failure{};
};

class Membership {
 public:
  // All must outlive the membership.
  Membership(Leases& leases, ShardOwner& owner, Scheduler& scheduler, MembershipOptions options);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  void start();
  // Closes the shards one by one, gives each up as soon as it is closed, and leaves. Shards that
  // are not closed after `grace` are left to the end of the lease.
  void stop(Time grace);
  // Gives up all shards and claims no more, until drain(false).
  void drain(bool on = true);
  // Takes over the shard, from whichever node owns it.
  void take(uint32_t shard);
  // The shard has stopped by itself: another owner was there, or the store could not be written.
  void failed(uint32_t shard);

  // Whether this node may answer for its shards at this moment. Cheap: asked before each answer.
  bool lease_valid() const;
  // Whether this node owns the shard and may answer for it at this moment.
  bool serves(uint32_t shard) const;
  // Nodes and owners as they were known last; at most a third of a lease old while the store
  // answers. Empty before the first answer.
  Owners owners() const;
  struct Found {
    std::string node;
    NodeRecord record;
    uint64_t epoch = 0;
  };
  // The living owner of a shard, as it was known last.
  std::optional<Found> owner_of(uint32_t shard) const;
  void look_again();  // asks the store soon who owns what
  MembershipStatus status() const;

 private:
  enum class State { out, joined, lost };
  enum class Phase { opening, open, closing };
  struct Held {
    Claim claim;
    Phase phase = Phase::opening;
    bool failed = false;
    // Claimed above the share, because nobody else could: not given up before.
    Time keep_until = 0;
  };
  struct Plan {
    std::vector<uint32_t> claim;
    std::vector<uint32_t> give_up;
  };

  Time renew_step();
  Time watch_step();
  Time work_step();
  void lose();
  bool join();
  bool look();  // asks for the owners
  Plan plan();
  void close_held(const std::vector<uint32_t>& shards);
  void claim(uint32_t shard);
  void tell();  // writes the record, when it has changed
  std::vector<uint32_t> held_where(bool (*wanted)(const Held&)) const;
  void note_failure(const Error& why);
  void wake(const std::unique_ptr<BackgroundLoop>& loop) const;
  Time lease_time() const;
  Time deadline(Time sent) const;  // until when a renewal holds that was sent then

  Leases& leases_;
  ShardOwner& owner_;
  Scheduler& scheduler_;
  const MembershipOptions options_;

  mutable std::mutex mutex_;  // guards the members below; never held over a call of the others
  State state_ = State::out;
  uint64_t life_ = 0;  // counts joins
  std::atomic<Time> valid_until_{0};
  NodeRecord record_;
  bool record_told_ = true;
  bool stopping_ = false;
  std::map<uint32_t, Held> held_;
  std::map<uint32_t, Time> free_since_;
  // Shards that could not be opened or failed here: other nodes get the time to try.
  struct Avoided {
    Time until = 0;
    uint32_t failures = 0;  // since the shard was last opened
  };
  std::map<uint32_t, Avoided> avoided_;
  Owners owners_;
  MembershipStatus counts_;
  // Null before start() and after stop(). Guarded by mutex_, too.
  std::unique_ptr<BackgroundLoop> renew_loop_, watch_loop_, work_loop_;
};

}  // namespace pawl
