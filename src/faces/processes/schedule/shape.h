#pragma once
// The members of a schedule's document: the table that reads it, and its schema for callers.

#include "wire/member.h"

namespace pawl::processes {

inline constexpr wire::RequestShape kCalendar{
    "Calendar",
    {wire::row::texts("at", "Times of the day.").required().example(R"(["09:00"])"),
     wire::row::texts("daysOfWeek", "MON to SUN.").example(R"(["MON"])"),
     wire::row::list("daysOfMonth", "1 to 31; -1 is the last day.", wire::Kind::integer),
     wire::row::list("months", "1 to 12.", wire::Kind::integer),
     wire::row::texts("dates", "Dates, 2026-12-01."),
     wire::row::texts("except", "Dates on which nothing runs.")}};

inline constexpr wire::RequestShape kSchedule{
    "ScheduleRequest",
    {wire::row::text("id", "The id of the schedule.").example(R"("nightly")"),
     wire::row::text("definitionId", "The definition to start.").required().example(R"("loan")"),
     wire::row::integer("definitionVersion", "Its version; none: the active one.")
         .range(1, UINT32_MAX),
     wire::row::variables("variables", "The variables of each instance."),
     wire::row::text("businessKey", "The business key; {time} in it is the time of the run."),
     wire::row::text("cron", "When: a cron expression.").example(R"("0 3 * * *")"),
     wire::row::text("interval", "Or: an ISO 8601 duration between runs."),
     wire::row::object("calendar", "Or: days and times.", kCalendar),
     wire::row::text("timeZone", "The zone of cron and calendar; none: UTC.")
         .example(R"("Europe/Berlin")"),
     wire::row::time("startAt", "No run is before it."),
     wire::row::time("endAt", "No run is after it."),
     wire::row::choice("catchUp", {"none", "last", "all"}, "Which missed runs are made up for.")
         .by_default("last"),
     wire::row::choice("overlap", {"allow", "skip", "queue", "cancel"},
                       "What happens while an earlier instance runs.")
         .by_default("skip"),
     wire::row::text("timeVariable", "The variable that gets the time of the run."),
     wire::row::text("description")}};

}  // namespace pawl::processes
