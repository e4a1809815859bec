#pragma once
// A WorkQueue offers open effects to workers, by program, tenant and queue: a face never leases the
// effects of another one. A lease is a promise in memory,
// not a frame: after a restart the effect is offered again.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernel/effect.h"

namespace pawl {

struct Poll {
  std::string tenant;
  std::vector<std::string> queues;
  std::string worker;
  size_t limit = 1;
  Time lease = 30 * kSecond;
  Time wait = 0;          // how long to wait for the first effect; 0: answer at once
  std::string program{};  // the effects of this program only
};

struct Leased {
  EffectPtr effect;
  Time until;
};

class WorkQueue {
 public:
  virtual ~WorkQueue() = default;
  // Leases up to `limit` offered effects: the highest priority first, then fairly between the
  // queues and, in a queue, between the fairness keys, then the oldest first. When none is offered
  // and `wait` > 0, the answer comes when one appears or the wait is over. `done` may run on
  // another thread. The returned id is for cancel() and give_up().
  using Polled = std::move_only_function<void(std::vector<Leased>)>;
  virtual uint64_t poll(Poll poll, Polled done) = 0;
  virtual void cancel(uint64_t poll) = 0;
  // Ends a waiting poll as if its wait were over: it is answered with an empty list.
  virtual void give_up(uint64_t poll) = 0;
  // Offers a leased effect again at once, because its worker has gone.
  virtual void release(std::string_view effect_id) = 0;
  // Sets the end of the worker's lease to `until` and returns it; a later end that the lease has
  // already stays. Nothing when the worker does not hold the effect.
  virtual std::optional<Time> extend([[maybe_unused]] std::string_view effect_id,
                                     [[maybe_unused]] std::string_view worker,
                                     [[maybe_unused]] Time until) {
    return std::nullopt;
  }
  // A paused queue offers nothing until it is resumed.
  virtual void pause(std::string_view program, std::string_view tenant, std::string_view queue,
                     bool paused) = 0;
  struct Depth {
    std::string program, tenant, queue;
    size_t offered, leased, waiting_polls;
    bool paused;
  };
  virtual std::vector<Depth> depths() const = 0;
  // Where one effect is, and its queue. Nothing when the queue does not have the effect.
  struct Place {
    enum class State : uint8_t { held, offered, leased };
    State state;
    Time until;          // held: when it is offered; leased: end of the lease
    std::string worker;  // leased
    Depth queue;
  };
  virtual std::optional<Place> place_of([[maybe_unused]] std::string_view effect_id) const {
    return std::nullopt;
  }
};

}  // namespace pawl
