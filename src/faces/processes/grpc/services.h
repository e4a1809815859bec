#pragma once
// The gRPC services of the processes face: workflow.v1.WorkflowEngine with its calls, and
// pawl.v1.Workers with its stream. The same verbs as over HTTP.

#include <functional>
#include <memory>
#include <vector>

#include "faces/processes/service.h"

namespace grpc {
class Service;
}

namespace pawl::processes {

// The generated classes have a Service of their own.
using Verbs = Service;

// Who calls, from the value of the metadata `authorization` (empty when absent).
using Authenticate = std::function<Result<Caller>(std::string_view authorization)>;

class GrpcServices {
 public:
  GrpcServices(Verbs& verbs, Authenticate authenticate);
  ~GrpcServices();
  std::vector<grpc::Service*> all();

 private:
  struct Both;
  std::unique_ptr<Both> both_;
};

}  // namespace pawl::processes
