#include "faces/processes/grpc/services.h"

#include "faces/processes/grpc/engine.h"
#include "faces/processes/grpc/work_stream.h"

namespace pawl::processes {

struct GrpcServices::Both {
  Engine engine;
  WorkersStream workers;
};

GrpcServices::GrpcServices(Verbs& verbs, Authenticate authenticate)
    : both_(new Both{{verbs, authenticate}, {verbs, authenticate}}) {}
GrpcServices::~GrpcServices() = default;

std::vector<grpc::Service*> GrpcServices::all() { return {&both_->engine, &both_->workers}; }

}  // namespace pawl::processes
