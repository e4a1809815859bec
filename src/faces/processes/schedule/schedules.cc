#include "faces/processes/schedule/schedules.h"

#include <algorithm>

#include "faces/processes/schedule/verbs.h"
#include "json/text.h"

namespace pawl::processes {

void Schedules::send(Submitter submitter, std::string_view verb, const json::Value& body,
                     Done done) {
  send_command(kernel_, std::move(submitter), verb, json::print(body), {}, std::move(done));
}

void Schedules::put(Submitter submitter, json::Value document, bool replaces, Done done) {
  // Refused here and not in the turn: a document that cannot be read costs no frame.
  if (auto good = parse_schedule(document, kernel_.now()); !good)
    return done(fail(std::move(good.error())));
  send(std::move(submitter), verb::put_schedule,
       json::object({{"schedule", std::move(document)}, {"replace", replaces}}), std::move(done));
}

void Schedules::operate(Submitter submitter, std::string_view operation, const std::string& id,
                        const std::string& reason, Done done) {
  send(std::move(submitter), verb::operate_schedule,
       json::object({{"operation", operation}, {"id", id}, {"reason", reason}}), std::move(done));
}

Result<Schedule> Schedules::find(std::string_view tenant, std::string_view id) const {
  TRY(Cell cell, kernel_.read(schedule_key(tenant, id)));
  if (!cell.exists())
    return fail(Code::not_found, kNoSchedule, "schedule \"" + std::string(id) + "\" not found");
  return decode_schedule(cell.value());
}

Result<std::vector<Schedule>> Schedules::list(std::string_view tenant,
                                              std::string_view definition_id,
                                              std::string_view after, size_t limit) const {
  std::vector<Schedule> out;
  TRY_OK(kernel_.snapshot().scan(schedule_prefix(tenant), [&](BytesView, const Cell& cell) {
    auto schedule = decode_schedule(cell.value());
    if (!schedule || schedule->spec->id <= after) return true;
    if (!definition_id.empty() && schedule->spec->definition_id != definition_id) return true;
    out.push_back(std::move(*schedule));
    return out.size() < limit;
  }));
  return out;
}

Result<std::vector<ScheduleRun>> Schedules::runs(std::string_view tenant,
                                                 const Schedule& schedule) const {
  std::vector<ScheduleRun> out;
  TRY_OK(kernel_.snapshot().scan(runs_prefix(tenant, schedule.spec->id),
                                 [&](BytesView, const Cell& cell) {
                                   if (auto run = decode_run(cell.value()))
                                     out.push_back(std::move(*run));
                                   return true;
                                 }));
  std::sort(out.begin(), out.end(),
            [](const ScheduleRun& a, const ScheduleRun& b) { return a.number > b.number; });
  return out;
}

}  // namespace pawl::processes
