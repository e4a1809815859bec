#pragma once
// The entities face over gRPC. The heavy headers stay in the .cc files.

#include <functional>
#include <memory>

#include "faces/entities/face.h"

namespace grpc {
class Service;
}

namespace pawl::entities {

class GrpcService {
 public:
  virtual ~GrpcService() = default;
  virtual grpc::Service* service() = 0;  // owned by this object
};

// Finds the caller from the metadata `authorization`, which may be empty.
using Authenticate = std::function<Result<Caller>(const std::string& authorization)>;
// `face` must outlive the service.
std::unique_ptr<GrpcService> make_grpc_service(Face& face, Authenticate authenticate);

}  // namespace pawl::entities
