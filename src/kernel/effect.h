#pragma once
// An effect asks the outside for something. A receipt is the answer. Between the two, the effect is
// a cell like any other: timers and job queues are views over open effects, nothing more.

#include <string>

#include "kernel/cell.h"

namespace pawl {

enum class To : uint8_t {
  clock = 1,   // settled when `due` has come
  worker = 2,  // offered on `queue` to workers that poll
  cell = 3,    // `body` becomes an input with verb `queue` to the program, exactly once
  member = 4,  // sent to a compute member or executor, chosen by the face from `queue`
  shard = 5,   // `body` becomes an input with verb `queue` in another shard, exactly once
};

struct Effect {
  std::string id;  // unique while open; the idempotency key that workers see
  To to = To::clock;
  std::string program;  // the program that gets the receipt
  std::string tenant;
  std::string queue;
  Time due = 0;  // clock: when it settles; worker: not offered before
  Bytes body;
  // Worker: a higher priority is handed out first. Effects of one priority are handed out in turn
  // over their fairness keys.
  int32_t priority = 0;
  std::string fairness_key{};
  // Set by the kernel: key of the cell of an Idempotency-Key whose answer this effect decides
  // (once.h). Empty for none.
  Key once{};
  // Shard: where it goes, and as whom it acts there. Null for the others.
  struct Address {
    uint32_t shard = 0;
    std::string program{};  // the program that runs there
    std::string user{}, roles{};
    uint64_t number = 0;  // set by the kernel: see delivery.h
  };
  std::shared_ptr<const Address> address{};
};

// Shared by the cell, the turn and the outbox that carries the effect out.
using EffectPtr = std::shared_ptr<const Effect>;

Bytes encode(const Effect& effect);
Result<Effect> decode_effect(BytesView bytes);

// The key of the cell that holds an open effect, and the prefix of all such keys.
Key effect_key(std::string_view id);
inline constexpr std::string_view kEffectPrefix{"~effect\0", 8};

// An outbox carries effects out: the clock, the workers' queues, the members. It is called after
// the frame is durable, in frame order, by one thread at a time.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void opened(const EffectPtr& effect) = 0;
  virtual void closed(const Effect& effect) = 0;  // settled or withdrawn
  virtual void flushed() {}                       // end of a group: wake waiting pollers
  // Every effect that was open when the shard started has been given to opened().
  virtual void restored() {}
};

}  // namespace pawl
