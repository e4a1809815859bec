#pragma once
// The limits of the processes face, each with its reason. A test reaches each one.

#include <cstddef>
#include <cstdint>

namespace pawl::processes {

// Steps of one definition: a document of this size is generated, not written.
inline constexpr size_t kMaxSteps = 10'000;
// Branches of one gateway: each is a token in the instance's cell.
inline constexpr size_t kMaxBranches = 1'000;
// Steps that one request may run without waiting for anybody: a loop with no wait ends here.
inline constexpr size_t kStepsPerTurn = 20'000;
// What expressions may make and copy in one turn, in values and bytes: bounds the time that a turn
// of synchronous steps can take from everybody else.
inline constexpr size_t kWorkPerTurn = 64 * 1024 * 1024;
// Workflows chained in one turn, for the same reason; the chain goes on in the next.
inline constexpr size_t kChainPerTurn = 50;
// Workflows that may follow each other without any wait: a cycle of them ends here.
inline constexpr size_t kChainInARow = 10'000;
// Chains that one upload sets going, of those that waited for it.
inline constexpr size_t kAwaitedPerUpload = 10'000;
// Executions and jobs of one instance: their number is the last four characters of their ids.
inline constexpr uint32_t kMaxOrdinals = 1 << 20;
// Tokens alive at once in one instance.
inline constexpr size_t kMaxTokens = 10'000;
// Variables of one instance, as JSON text: they travel with every job.
inline constexpr size_t kVariablesBytes = 4 * 1024 * 1024;
inline constexpr size_t kDefinitionIdBytes = 256;
inline constexpr size_t kBusinessKeyBytes = 1024;
// Names that become parts of keys.
inline constexpr size_t kNameBytes = 512;
// Items of one batch, jobs of one poll, rows of one page.
inline constexpr size_t kBatchItems = 1'000;
inline constexpr size_t kMaxJobs = 1'000;
inline constexpr size_t kMaxPage = 1'000;
// Instances that one list request may look at when a filter has no index.
inline constexpr size_t kMaxLooked = 100'000;
// How long a poll may wait.
inline constexpr int64_t kMaxWaitMs = 60'000;

}  // namespace pawl::processes
