#pragma once
// The gRPC services of the faces.

#include <memory>
#include <vector>

#include "assembly/homes.h"
#include "server/auth/call_gate.h"

namespace grpc {
class Service;
}

namespace pawl::cli {

class GrpcFaces {
 public:
  // Both must outlive this object.
  GrpcFaces(assembly::Homes& homes, const server::CallGate& gate);
  ~GrpcFaces();
  std::vector<grpc::Service*> services();

 private:
  struct All;
  std::unique_ptr<All> all_;
};

}  // namespace pawl::cli
