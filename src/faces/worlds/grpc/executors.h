#pragma once
// pawl.v1.Executors: open work, frames and receipts over gRPC. Each call is the HTTP route of the
// same name with other clothes, so that both always mean the same.

#include <functional>
#include <memory>
#include <vector>

#include "wire/route.h"

namespace grpc {
class Service;
}

namespace pawl::worlds {

// Who calls, from the value of the metadata `authorization` (empty when absent).
using Authenticate = std::function<Result<Caller>(std::string_view authorization)>;

class GrpcExecutors {
 public:
  // `routes`: those of the face.
  GrpcExecutors(std::vector<wire::Route> routes, Authenticate authenticate);
  ~GrpcExecutors();
  grpc::Service* service();

 private:
  class Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace pawl::worlds
