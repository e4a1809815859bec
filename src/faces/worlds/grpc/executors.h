#pragma once
// pawl.v1.Executors: open work, frames and receipts over gRPC. Each call is a verb of the service,
// as the HTTP route of the same name is, so that both always mean the same.

#include <functional>
#include <memory>

#include "wire/admit.h"

namespace grpc {
class Service;
}

namespace pawl::worlds {

class Service;

class GrpcExecutors {
 public:
  // The service of a tenant. The services must outlive this object, and the gRPC server must be
  // shut down before it is destroyed.
  using ServiceOf = std::function<Service&(std::string_view tenant)>;
  GrpcExecutors(ServiceOf service, wire::Admit admit);
  ~GrpcExecutors();
  // Owned by this object.
  grpc::Service* service();

 private:
  class Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace pawl::worlds
