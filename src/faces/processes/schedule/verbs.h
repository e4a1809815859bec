#pragma once
// The verbs of schedules inside the program, and the places where the rest of the program calls
// them.

#include "faces/processes/run/program.h"
#include "faces/processes/schedule/schedule.h"

namespace pawl::processes {

namespace verb {
// `put_schedule` creates or replaces, `operate_schedule` pauses, resumes, triggers and deletes,
// `next_run` starts a queued run after the run before it has ended.
inline constexpr std::string_view put_schedule = "put-schedule",
                                  operate_schedule = "operate-schedule", next_run = "next-run";
}  // namespace verb

inline constexpr Reason kNoSchedule{"NO_SCHEDULE"};

Result<Bytes> put_schedule(TurnContext& context);
Result<Bytes> operate_schedule(TurnContext& context);
Result<Bytes> next_run(TurnContext& context);
// The timer of a schedule is due.
Result<void> run_schedule(TurnContext& context, const ScheduleTimer& timer);
// An instance has ended: when a run of a schedule waits for that, it is delivered next_run.
Result<void> end_run(TurnContext& context, const std::string& instance_id);

}  // namespace pawl::processes
