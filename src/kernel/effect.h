#pragma once
// An effect asks the outside for something. A receipt is the answer. Between the two, the effect is
// a cell like any other: timers and job queues are views over open effects, nothing more.

#include <string>

#include "kernel/cell.h"

namespace pawl {

enum class To : uint8_t {
  clock = 1,   // give the receipt when `due` has come
  worker = 2,  // offer it on `queue` to whoever polls
  cell = 3,  // deliver `body` as an input with verb `queue` to the program; settles by itself, once
  member = 4,  // send it to a compute member or executor, chosen by the face from `queue`
};

struct Effect {
  std::string id;  // unique while open; the idempotency key that workers see
  To to = To::clock;
  std::string program;  // whose input the receipt will be
  std::string tenant;
  std::string queue;
  Time due = 0;  // clock: when. worker: not before
  Bytes body;
};

// Shared between the cell, the turn and whoever carries the effect out.
using EffectPtr = std::shared_ptr<const Effect>;

Bytes encode(const Effect& effect);
Result<Effect> decode_effect(BytesView bytes);

// The cell that an open effect is kept in, and the prefix of them all.
Key effect_key(std::string_view id);
inline constexpr std::string_view kEffectPrefix{"~effect\0", 8};

// Where effects go once they may leave, and where they are called back. Called after the frame is
// durable, in frame order, from one thread at a time.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void opened(const EffectPtr& effect) = 0;
  virtual void closed(const Effect& effect) = 0;  // settled or withdrawn
  virtual void flushed() {}                       // a whole group was told: wake whoever waits
};

}  // namespace pawl
