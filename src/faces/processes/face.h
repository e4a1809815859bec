#pragma once
// The processes face: a service with its HTTP routes. Its program is in run/program.h.

#include "faces/processes/run/program.h"
#include "faces/processes/schedule/schedules.h"
#include "faces/processes/service.h"
#include "wire/route.h"

namespace pawl::processes {

class Face {
 public:
  Face(KernelAccess& kernel, WorkQueue& work, QuarantineAccess quarantine = {},
       ServiceOptions options = {})
      : service_(kernel, work, std::move(quarantine), options), schedules_(kernel) {}
  std::vector<wire::Route> routes();
  std::vector<wire::Dialect> dialects() const;
  Service& service() { return service_; }

 private:
  Service service_;
  Schedules schedules_;
};

// The routes of each resource.
std::vector<wire::Route> definition_routes(Service& service);
std::vector<wire::Route> instance_routes(Service& service);
std::vector<wire::Route> job_routes(Service& service);
std::vector<wire::Route> operator_routes(Service& service);
std::vector<wire::Route> incident_routes(Service& service);
std::vector<wire::Route> batch_routes(Service& service);
std::vector<wire::Route> schedule_routes(Schedules& schedules);
std::vector<wire::Route> query_routes(Service& service);
std::vector<wire::Route> signal_routes(Service& service);
std::vector<wire::Route> retention_routes(Service& service);

}  // namespace pawl::processes
