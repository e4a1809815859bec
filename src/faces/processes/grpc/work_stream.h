#pragma once
// The gRPC service pawl.v1.Workers. Its call Work is a stream: jobs go out within the worker's
// credit, results come back, and each result is confirmed when it is durable. When the stream ends,
// jobs without a result are offered to other workers at once.

#include <processes/workers.grpc.pb.h>
#include "faces/processes/grpc/services.h"

namespace pawl::processes {

class WorkersService final : public pawl::v1::Workers::CallbackService {
 public:
  WorkersService(Verbs& verbs, wire::Admit admit) : verbs_(verbs), admit_(std::move(admit)) {}
  grpc::ServerBidiReactor<pawl::v1::FromWorker, pawl::v1::ToWorker>* Work(
      grpc::CallbackServerContext* context) override;

 private:
  Verbs& verbs_;
  const wire::Admit admit_;
};

}  // namespace pawl::processes
