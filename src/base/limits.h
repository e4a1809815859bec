#pragma once
// Every limit of the house, each with its reason. A test reaches each one.

#include <cstddef>
#include <cstdint>

namespace pawl::limits {

// The peers take 10 MiB; larger things belong in a blob.
inline constexpr size_t kBodyBytes = 10 * 1024 * 1024;
// Deep enough for any document people write, shallow enough that recursion cannot end the stack.
inline constexpr size_t kJsonDepth = 256;
// A cell travels whole in each frame that changes it; the largest body must fit with its wrapping.
inline constexpr size_t kCellBytes = 16 * 1024 * 1024;
// One turn is one frame, read into memory at once.
inline constexpr size_t kFrameBytes = 256 * 1024 * 1024;
// Changes of one turn; delete-all and batches are the largest honest users.
inline constexpr size_t kTurnChanges = 1'000'000;
// Keys are compared and copied everywhere.
inline constexpr size_t kKeyBytes = 4096;
// Inputs waiting for the kernel; beyond it callers are told to come back.
inline constexpr size_t kQueuedInputs = 100'000;
// Turns that stay open for a receipt; each holds its writes in memory.
inline constexpr size_t kOpenTurns = 10'000;
// One group of turns is one append; past this the group is closed.
inline constexpr size_t kGroupBytes = 8 * 1024 * 1024;
inline constexpr size_t kGroupTurns = 4096;
// A request's answer is remembered for a day under its Idempotency-Key.
inline constexpr int64_t kOnceSeconds = 24 * 3600;
inline constexpr size_t kOnceKeyBytes = 255;

}  // namespace pawl::limits
