#pragma once
// The limits of the processes face, each with its reason. A test reaches each one.

#include <cstddef>
#include <cstdint>

namespace pawl::processes {

// Steps of one definition: a larger document was generated, not written.
inline constexpr size_t kMaxSteps = 10'000;
// Branches of one gateway: each is a token in the instance's cell.
inline constexpr size_t kMaxBranches = 1'000;
// Steps that one request may run without a wait: a loop without a wait ends here.
inline constexpr size_t kStepsPerTurn = 20'000;
// Values and bytes that expressions may create and copy in one turn, and an eighth of the bytes
// that they read: bounds the time for which a turn of synchronous steps delays all others.
inline constexpr size_t kWorkPerTurn = 64 * 1024 * 1024;
// Subschemas that the check of one request against a JSON Schema may visit, and what a visit counts
// as work of the turn.
inline constexpr size_t kSchemaVisits = 2'000'000;
inline constexpr size_t kWorkPerVisit = 16;
// Workflows chained in one turn, for the same reason. The chain continues in the next turn.
inline constexpr size_t kChainPerTurn = 50;
// Workflows that may follow one another without a wait: a cycle of workflows ends here.
inline constexpr size_t kChainInARow = 10'000;
// Waiting chains that the upload of their next workflow continues.
inline constexpr size_t kAwaitedPerUpload = 10'000;
// Executions and jobs of one instance: their ordinal is the last four characters of their ids.
inline constexpr uint32_t kMaxOrdinals = 1 << 20;
// Tokens of one instance at the same time.
inline constexpr size_t kMaxTokens = 10'000;
// Variables of one instance, as JSON text: they travel with every job.
inline constexpr size_t kVariablesBytes = 4 * 1024 * 1024;
inline constexpr size_t kDefinitionIdBytes = 256;
inline constexpr size_t kBusinessKeyBytes = 1024;
// Names that are parts of keys.
inline constexpr size_t kNameBytes = 512;
// Items of one batch, jobs of one poll, rows of one page.
inline constexpr size_t kBatchItems = 1'000;
inline constexpr size_t kMaxJobs = 1'000;
inline constexpr size_t kMaxPage = 1'000;
// Instances that one list request may read when a filter has no index.
inline constexpr size_t kMaxVisited = 100'000;
// Variables of the instances in one answer, as JSON text. A list of operators ends there and goes
// on with its cursor; a page by number is refused with `too_large`.
inline constexpr size_t kListBytes = 64 * 1024 * 1024;
// Steps that an instance can undo: more belong to a loop, whose body should be a workflow of its
// own.
inline constexpr size_t kMaxCompensations = 1'000;
// Instances that may call each other, from the first parent to the last child: a definition that
// calls itself ends here.
inline constexpr uint32_t kMaxCallDepth = 32;
// Signals that are kept for one name and correlation key, and for the WAITs of one instance: more
// mean that nobody waits for them.
inline constexpr size_t kKeptSignals = 256;
inline constexpr size_t kKeptSignalsOfInstance = 16;
// The longest time for which a signal is kept.
inline constexpr int64_t kMaxSignalDays = 366;
// Stored queries of one definition: each is compiled when the definition is loaded.
inline constexpr size_t kMaxQueries = 100;
// Concurrent jobs, and jobs in the unit of a rate, that a limit may name: the value of a limit far
// above what one server runs is a mistake.
inline constexpr int64_t kMaxConcurrent = 1'000'000;
inline constexpr int64_t kMaxRate = 100'000;
// The value of a limit's key or of a fairness key: it is a part of cell keys.
inline constexpr size_t kLimitKeyBytes = 256;
// The priority of an instance, from minus this to this: enough steps for any scheme.
inline constexpr int64_t kMaxPriority = 1000;
// Waiting jobs that one turn lets start, and the bytes of their variables after which it stops: the
// rest follows in the next turn, so that no turn and no frame gets large.
inline constexpr size_t kAdmittedPerTurn = 200;
inline constexpr size_t kAdmittedBytes = 4 * 1024 * 1024;
// How late a job under a rate may start without the next one starting later as well. Timers are a
// little late; without this, a fast rate would be missed. It is also what a burst may exceed.
inline constexpr int64_t kRateSlackMs = 50;
// The longest wait of a poll.
inline constexpr int64_t kMaxWaitMs = 60'000;

// Schedules of one tenant: each has a timer and wakes the kernel when it is due.
inline constexpr size_t kMaxSchedules = 1'000;
// A schedule as JSON, with its variables: its cell is written with every run.
inline constexpr size_t kScheduleBytes = 64 * 1024;
inline constexpr size_t kScheduleIdBytes = 256;
// Items of each list of a calendar.
inline constexpr size_t kCalendarItems = 500;
// The shortest interval: shorter ones are a queue, not a schedule.
inline constexpr int64_t kMinIntervalSeconds = 1;
// Days in which a next run is looked for: "29 February on a Monday" comes after 28 years.
inline constexpr int64_t kSearchDays = 366 * 29;
// A run that begins later than this after it was due was missed; the catch-up policy decides.
inline constexpr int64_t kLateSeconds = 60;
// Missed runs that are caught up: the newest ones, and none that was due longer ago.
inline constexpr size_t kCatchUpRuns = 1'000;
inline constexpr int64_t kCatchUpSeconds = 7 * 24 * 3600;
// Runs that one turn starts; the rest follows in further turns.
inline constexpr size_t kRunsPerTurn = 20;
// Runs that wait for the run before them. A further one is skipped.
inline constexpr size_t kQueuedRuns = 100;
// Runs that a schedule remembers: older ones are overwritten.
inline constexpr size_t kRememberedRuns = 100;
// Instances of one schedule whose end it waits for.
inline constexpr size_t kTrackedInstances = 100;
// Runs that one request for the next runs computes.
inline constexpr size_t kShownRuns = 100;

}  // namespace pawl::processes
