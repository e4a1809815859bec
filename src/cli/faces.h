#pragma once
// The faces of the server over one shard: their routes, their gRPC services and their outboxes. A
// new face is added here.

#include <memory>
#include <vector>

#include "cli/programs.h"
#include "runtime/clock.h"
#include "runtime/shard.h"
#include "runtime/workers.h"
#include "server/auth/auth.h"
#include "server/auth/call_gate.h"
#include "server/ops/config.h"
#include "wire/route.h"

namespace grpc {
class Service;
}

namespace pawl::cli {

class Faces {
 public:
  Faces(const server::Config& config, const Programs& programs, Shard& shard, Workers& workers,
        server::Authenticator& authenticator, const server::CallGate& gate,
        const ChargeFor& charge);
  ~Faces();
  void add_routes(wire::Router& router);
  std::vector<grpc::Service*> services();
  Result<void> start();  // after the shard has started
  // Process jobs that wait for a limit, by definition.
  std::vector<std::pair<std::string, int64_t>> limited_jobs() const;
  void stop();  // before the shard stops: ends long polls and disconnects members
  // Waits for the long reads that run. Call it when no listener runs any more and before the shard
  // stops.
  void end_reads();

 private:
  struct All;
  std::unique_ptr<All> all_;
};

}  // namespace pawl::cli
