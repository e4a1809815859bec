#pragma once
// Intents are the effects that workflows ask for. An intent is checked against the manifest, its
// params are made canonical and its hash is fixed; it is recorded before anything outside sees it.

#include "faces/worlds/step/world_turn.h"

namespace pawl::worlds {

inline constexpr std::string_view kTimerEffect = "sys/timer.set@1";
inline constexpr std::string_view kBlobPutEffect = "sys/blob.put@1";
inline constexpr std::string_view kBlobGetEffect = "sys/blob.get@1";

class Intents {
 public:
  explicit Intents(WorldTurn& turn) : turn_(turn) {}

  // The intent of the effect that stands at `index` in a step's output. Nothing is written.
  Result<PendingIntent> prepare(const Delivery& item, const EmittedEffect& emitted,
                                uint64_t index) const;
  // Records an intent that this turn answers itself.
  Result<void> record(const PendingIntent& intent);
  // Records an intent, lists it in its cell and, unless the world is detached or replayed, offers
  // it to its executor.
  Result<void> open(const PendingIntent& intent, CellEdit& cell);
  // Offers every open intent again: a fork that becomes live.
  Result<void> offer_all();
  // Takes an intent that is settled out of the store and off its cell's list.
  void settle(const PendingIntent& intent);
  void unlist(CellEdit& cell, BytesView intent);
  // Drops everything that the cell waits for, because the instance has ended. Late receipts are
  // ignored.
  void drop_all(CellEdit& cell);

 private:
  Result<void> offer(const PendingIntent& intent);
  Result<Bytes> canonical_params(const EmittedEffect& emitted, const DeclaredEffect& effect) const;

  WorldTurn& turn_;
};

// True for effects that this process performs itself; false for those that wait for an executor.
bool is_done_here(std::string_view effect, const Manifest& manifest);

}  // namespace pawl::worlds
