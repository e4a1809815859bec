#pragma once
// A schedule starts instances of a definition when it is due. It is a cell with the document of its
// owner and the state of its runs, and it has one clock effect for its next run. Its last runs are
// cells of their own.

#include <memory>
#include <string>
#include <vector>

#include "faces/processes/schedule/recurrence.h"
#include "faces/processes/state/instance.h"
#include "kernel/cell.h"

namespace pawl::processes {

// What happens to a run that is due while the instance of an earlier run is not finished.
enum class Overlap : uint8_t { allow, skip, queue, cancel };
// What happens to runs that were missed, for example because no server ran.
enum class CatchUp : uint8_t { none, last, all };

// The document of a schedule, read.
struct ScheduleSpec {
  std::string id, definition_id;
  uint32_t version = 0;  // 0: the current one
  json::Object variables;
  std::string business_key;   // "{time}" in it stands for the time of the run
  std::string time_variable;  // the variable that gets the time of the run; empty: none
  Time starts = 0, ends = INT64_MAX;
  Overlap overlap = Overlap::skip;
  CatchUp catch_up = CatchUp::last;
  Recurrence recurrence;

  // The first run after `after` within starts and ends; 0: none.
  Time next(Time after) const;
};
// Error: invalid BAD_SCHEDULE. `created` is where an interval without startAt begins to count.
Result<ScheduleSpec> parse_schedule(const json::Value& document, Time created);

struct Schedule {
  std::string text;  // the document as JSON
  Time created = 0, changed = 0;
  bool paused = false;
  std::string pause_reason{};
  Time next = 0;          // when the next run is due; 0: none follows
  uint64_t timer = 0;     // number of the newest clock effect
  uint64_t recorded = 0;  // runs that were recorded
  uint64_t started = 0, skipped = 0, failed = 0, missed = 0;
  std::vector<std::string> running{};          // instances whose end matters for the overlap policy
  std::vector<Time> queued{};                  // runs that wait for the end of such an instance
  std::vector<Time> backlog{};                 // runs that the next turns start: a catch-up
  std::shared_ptr<const ScheduleSpec> spec{};  // of `text`; not stored
};
Bytes encode(const Schedule& schedule);
Result<Schedule> decode_schedule(BytesView bytes);

enum class RunOutcome : uint8_t { started = 1, skipped = 2, failed = 3, missed = 4 };
std::string_view outcome_name(RunOutcome outcome);
struct ScheduleRun {
  uint64_t number = 0;  // from 1
  Time due = 0, at = 0;
  RunOutcome outcome = RunOutcome::started;
  std::string instance_id{}, message{};
};
Bytes encode(const ScheduleRun& run);
Result<ScheduleRun> decode_run(BytesView bytes);

Key schedule_key(std::string_view tenant, std::string_view id);
Key schedule_prefix(std::string_view tenant);
// Runs share kRememberedRuns cells in turn.
Key run_key(std::string_view tenant, std::string_view id, uint64_t number);
Key runs_prefix(std::string_view tenant, std::string_view id);
// The end of this instance starts a queued run. The cell holds the id of the schedule.
Key run_end_key(std::string_view tenant, std::string_view instance_id);

// The clock effect of a schedule. Its number tells an old timer from the newest.
struct ScheduleTimer {
  std::string tenant, schedule_id;
  uint64_t number = 0;
};
std::string schedule_timer_id(const ScheduleTimer& timer);
// Nothing when it is the timer of something else.
std::optional<ScheduleTimer> parse_schedule_timer(std::string_view effect_id);

// The schedule as the HTTP API shows it.
json::Value schedule_json(const Schedule& schedule);
json::Value run_json(const ScheduleRun& run);

}  // namespace pawl::processes
