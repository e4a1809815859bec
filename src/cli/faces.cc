#include "cli/faces.h"

#include "faces/processes/face.h"
#include "faces/processes/grpc/services.h"

namespace pawl::cli {

struct Faces::All {
  All(Shard& s, Workers& w, server::Authenticator& a) : processes(s, w), processes_grpc(processes.service(), [&a](std::string_view t) { return a.caller(t); }) {}
  processes::Face processes;
  processes::GrpcServices processes_grpc;
};

Faces::Faces(const server::Config&, Shard& shard, Workers& workers, server::Authenticator& a) : all_(new All(shard, workers, a)) {}
Faces::~Faces() = default;

void Faces::add_routes(wire::Router& router) { router.add(all_->processes.routes(), all_->processes.dialects()); }
std::vector<grpc::Service*> Faces::services() { return all_->processes_grpc.all(); }
Result<void> Faces::start() { return {}; }
void Faces::stop() {}

}  // namespace pawl::cli
