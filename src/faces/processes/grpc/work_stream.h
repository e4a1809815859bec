#pragma once
// pawl.v1.Workers/Work: jobs go out within the worker's credit, results come back, each is
// confirmed once it is durable. When the stream ends, jobs without a result are offered to others
// at once.

#include <processes/workers.grpc.pb.h>
#include "faces/processes/grpc/services.h"

namespace pawl::processes {

class WorkersService final : public pawl::v1::Workers::CallbackService {
 public:
  WorkersService(Verbs& verbs, Authenticate authenticate)
      : verbs_(verbs), authenticate_(std::move(authenticate)) {}
  grpc::ServerBidiReactor<pawl::v1::FromWorker, pawl::v1::ToWorker>* Work(
      grpc::CallbackServerContext* context) override;

 private:
  Verbs& verbs_;
  const Authenticate authenticate_;
};

}  // namespace pawl::processes
