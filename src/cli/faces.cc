#include "cli/faces.h"

namespace pawl::cli {

struct Faces::All {};

Faces::Faces(const server::Config&, Shard&, Workers&, server::Authenticator&) : all_(std::make_unique<All>()) {}
Faces::~Faces() = default;

void Faces::add_routes(wire::Router&) {}
std::vector<grpc::Service*> Faces::services() { return {}; }
Result<void> Faces::start() { return {}; }
void Faces::stop() {}

}  // namespace pawl::cli
