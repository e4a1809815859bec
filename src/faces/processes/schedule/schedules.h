#pragma once
// The verbs of schedules, without wire. Commands are answered when they are durable; reads are
// answered at once.

#include "faces/processes/schedule/schedule.h"
#include "faces/processes/service.h"

namespace pawl::processes {

class Schedules {
 public:
  explicit Schedules(KernelAccess& kernel) : kernel_(kernel) {}

  // `replaces`: an existing schedule is replaced and keeps its counts, runs and queue. Otherwise it
  // is refused with conflict SCHEDULE_EXISTS.
  void put(Submitter submitter, json::Value document, bool replaces, Done done);
  // pause, resume, trigger or delete. Error: not_found NO_SCHEDULE.
  void operate(Submitter submitter, std::string_view operation, const std::string& id,
               const std::string& reason, Done done);

  Result<Schedule> find(std::string_view tenant, std::string_view id) const;
  // By id, behind `after`. An empty definition id means all.
  Result<std::vector<Schedule>> list(std::string_view tenant, std::string_view definition_id,
                                     std::string_view after, size_t limit) const;
  // The newest run first.
  Result<std::vector<ScheduleRun>> runs(std::string_view tenant, const Schedule& schedule) const;
  Time now() const { return kernel_.now(); }

 private:
  void send(Submitter submitter, std::string_view verb, const json::Value& body, Done done);
  KernelAccess& kernel_;
};

}  // namespace pawl::processes
