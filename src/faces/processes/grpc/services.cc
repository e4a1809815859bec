#include "faces/processes/grpc/services.h"

#include "faces/processes/grpc/work_stream.h"
#include "faces/processes/grpc/workflow_engine_service.h"

namespace pawl::processes {

// Hidden here, so that only this folder includes the generated headers.
struct GrpcServices::Services {
  WorkflowEngineService engine;
  WorkersService workers;
};

GrpcServices::GrpcServices(Verbs& verbs, wire::Admit admit, LongReads long_reads)
    : services_(new Services{{verbs, admit, std::move(long_reads)}, {verbs, admit}}) {}
GrpcServices::~GrpcServices() = default;

std::vector<grpc::Service*> GrpcServices::all() {
  return {&services_->engine, &services_->workers};
}

}  // namespace pawl::processes
