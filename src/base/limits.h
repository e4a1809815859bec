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
inline constexpr int64_t kIdempotencySeconds = 24 * 3600;
inline constexpr size_t kIdempotencyKeyBytes = 255;

// HTTP. The head of a request: Bearer tokens with many roles are the largest honest ones.
inline constexpr size_t kHeadBytes = 64 * 1024;
inline constexpr size_t kHeaderCount = 256;
// A chunk's size line and extensions, and the trailers after the last chunk: nobody honest needs
// more.
inline constexpr size_t kChunkLineBytes = 1024;
// Each costs a descriptor and some kilobytes; beyond it callers are told to come back.
inline constexpr size_t kConnections = 10'000;
// Requests of one connection that wait for their answers; reading stops until some are answered.
inline constexpr size_t kPipelinedRequests = 256;
// Answers that wait for a peer that does not read; reading its requests stops beyond it.
inline constexpr size_t kUnsentBytes = 1024 * 1024;
// A stream whose reader is this far behind is closed: it can come back and ask from where it was.
inline constexpr size_t kStreamBytes = 4 * 1024 * 1024;
// A message of a WebSocket, all fragments together.
inline constexpr size_t kWebSocketMessageBytes = 1024 * 1024;
// From the first byte of a request to its last; slower is a slow-loris.
inline constexpr int64_t kRequestSeconds = 30;
// Nothing asked and nothing owed.
inline constexpr int64_t kIdleSeconds = 120;
// A peer that takes no byte of what is owed to it.
inline constexpr int64_t kStalledSeconds = 30;
// A stream that had nothing to say for so long says that it is there: whoever stands between would
// take it for dead, and a reader that has gone without a word is found out. Twice missed and more,
// and our own readers ask again.
inline constexpr int64_t kKeepaliveSeconds = 15;
inline constexpr int64_t kClientSilenceSeconds = 60;
// After a refusal we read on and throw away, so that the peer sees the answer and not a reset.
inline constexpr int64_t kLingerSeconds = 2;
inline constexpr size_t kLingerBytes = 64 * 1024 * 1024;
// At stop: answers owed may take this long, open streams only that long.
inline constexpr int64_t kStopSeconds = 30;
inline constexpr int64_t kStopStreamSeconds = 2;
// Tokens whose signature was checked and that are still valid.
inline constexpr size_t kVerifiedTokens = 10'000;
inline constexpr size_t kTokenBytes = 16 * 1024;
// Label values of one metric; what comes after is counted together as "other".
inline constexpr size_t kMetricSeries = 1000;
// Messages of gRPC, either way.
inline constexpr size_t kGrpcMessageBytes = 64 * 1024 * 1024;

}  // namespace pawl::limits
