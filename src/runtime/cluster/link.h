#pragma once
// A Link carries deliveries (kernel/delivery.h) to the shard that they are for: to a shard of this
// process, or to the node that owns it.

#include <condition_variable>
#include <map>
#include <mutex>

#include "kernel/access.h"

namespace pawl {

// This process does not serve the shard now.
inline constexpr Reason kShardNotHere{"SHARD_NOT_HERE"};

class Link {
 public:
  virtual ~Link() = default;
  // Calls `done` at most once, on any thread, with what the kernel of the target answered or with
  // the reason why it was not reached. A link that loses a delivery may leave `done` uncalled. The
  // input must be one of delivery_of() or forget_delivered(). Thread-safe.
  virtual void send(uint32_t shard, Input delivery, Reply done) = 0;
};

// The link between the shards of one process.
class LocalLink final : public Link {
 public:
  // The shard may take deliveries from now on, until detach() returns.
  void attach(uint32_t shard, KernelAccess& kernel);
  // Returns when no delivery to the shard is being handed over any more. Does nothing when the
  // shard is not attached. Not to be called from a reply.
  void detach(uint32_t shard);

  void send(uint32_t shard, Input delivery, Reply done) override;

 private:
  struct Target {
    KernelAccess* kernel = nullptr;
    size_t inside = 0;  // calls of send() that use it
  };
  std::mutex mutex_;
  std::condition_variable left_;
  std::map<uint32_t, Target> targets_;
};

}  // namespace pawl
