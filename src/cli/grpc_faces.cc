#include "cli/grpc_faces.h"

#include "faces/entities/face.h"
#include "faces/entities/grpc/service.h"
#include "faces/processes/face.h"
#include "faces/processes/grpc/services.h"
#include "faces/worlds/face.h"
#include "faces/worlds/grpc/executors.h"

namespace pawl::cli {

struct GrpcFaces::All {
  std::unique_ptr<processes::GrpcServices> processes;
  std::unique_ptr<entities::GrpcService> entities;
  std::unique_ptr<worlds::GrpcExecutors> worlds;
};

GrpcFaces::GrpcFaces(assembly::Homes& homes, const server::CallGate& gate)
    : all_(std::make_unique<All>()) {
  wire::Admit admit = [&gate](const wire::Call& call) { return gate.admit(call); };
  auto long_reads = [&homes](std::string_view tenant, BackgroundPool::Task task) {
    return homes.add_long_read(tenant, std::move(task));
  };
  all_->processes =
      std::make_unique<processes::GrpcServices>(homes.processes().service(), admit, long_reads);
  all_->entities = entities::make_grpc_service(
      [&homes](std::string_view tenant) -> entities::Face& { return homes.entities(tenant); },
      admit);
  all_->worlds = std::make_unique<worlds::GrpcExecutors>(
      [&homes](std::string_view tenant) -> worlds::Service& {
        return homes.worlds(tenant).service();
      },
      admit);
}

GrpcFaces::~GrpcFaces() = default;

std::vector<grpc::Service*> GrpcFaces::services() {
  std::vector<grpc::Service*> out = all_->processes->all();
  out.push_back(all_->entities->service());
  out.push_back(all_->worlds->service());
  return out;
}

}  // namespace pawl::cli
