#pragma once
// The entities face over gRPC. The heavy headers stay in the .cc files.

#include <functional>
#include <memory>

#include "faces/entities/face.h"
#include "wire/admit.h"

namespace grpc {
class Service;
}

namespace pawl::entities {

class GrpcService {
 public:
  virtual ~GrpcService() = default;
  virtual grpc::Service* service() = 0;  // owned by this object
};

// The face that serves a tenant. The faces must outlive the service.
using FaceOf = std::function<Face&(std::string_view tenant)>;
std::unique_ptr<GrpcService> make_grpc_service(FaceOf face, wire::Admit admit);

}  // namespace pawl::entities
