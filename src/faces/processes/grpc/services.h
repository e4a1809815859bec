#pragma once
// The gRPC services of the processes face: workflow.v1.WorkflowEngine, and pawl.v1.Workers with its
// stream. They call the same verbs as the HTTP routes.

#include <functional>
#include <memory>
#include <vector>

#include "faces/processes/service.h"
#include "wire/admit.h"

namespace grpc {
class Service;
}

namespace pawl::processes {

// Another name for Service: the generated classes have a member type called Service.
using Verbs = Service;

// Runs a long read of a tenant on another thread, so that the threads of gRPC stay free. Returns
// false when too many of the tenant wait.
using LongReads =
    std::function<bool(std::string_view tenant, std::move_only_function<void()> task)>;

class GrpcServices {
 public:
  // `verbs` must outlive it. Without `long_reads` they run at once.
  GrpcServices(Verbs& verbs, wire::Admit admit, LongReads long_reads = {});
  ~GrpcServices();
  // To register with the gRPC server; owned by this object, which must outlive that server.
  std::vector<grpc::Service*> all();

 private:
  struct Services;
  std::unique_ptr<Services> services_;
};

}  // namespace pawl::processes
