#pragma once
// pawl.v1.Executors: open work, frames and receipts over gRPC. Each call is a verb of the service,
// as the HTTP route of the same name is, so that both always mean the same.

#include <functional>
#include <memory>

#include "base/caller.h"
#include "base/result.h"

namespace grpc {
class Service;
}

namespace pawl::worlds {

class Service;

// The caller, from the value of the metadata `authorization` (empty when absent).
using Authenticate = std::function<Result<Caller>(std::string_view authorization)>;

class GrpcExecutors {
 public:
  // `service` must outlive it, and the gRPC server must be shut down before it is destroyed.
  GrpcExecutors(Service& service, Authenticate authenticate);
  ~GrpcExecutors();
  // Owned by this object.
  grpc::Service* service();

 private:
  class Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace pawl::worlds
