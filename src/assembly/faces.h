#pragma once
// The faces over one shard: their routes and their outboxes, as the server and the simulator have
// them. A new face is added here. The gRPC services stand apart, in cli/grpc_faces.h.

#include <memory>
#include <vector>

#include "assembly/programs.h"
#include "runtime/clock.h"
#include "runtime/shard.h"
#include "runtime/workers.h"
#include "server/auth/auth.h"
#include "server/ops/config.h"
#include "wire/route.h"

namespace pawl::processes {
class Face;
}
namespace pawl::entities {
class Face;
}
namespace pawl::worlds {
class Face;
class HttpClient;
}  // namespace pawl::worlds

namespace pawl::assembly {

// What the faces use. Everything must outlive them.
struct FacesOver {
  const server::Config& config;
  const Programs& programs;
  Shard& shard;
  Workers& workers;
  server::Authenticator& authenticator;
  worlds::HttpClient& outgoing;  // sends the HTTP requests of worlds
  ChargeFor charge{};
};

class Faces {
 public:
  // The background is the shard's scheduler.
  explicit Faces(const FacesOver& over);
  ~Faces();
  void add_routes(wire::Router& router);
  processes::Face& processes();
  entities::Face& entities();
  worlds::Face& worlds();
  // Runs a task on the threads for long reads. False: too many wait.
  bool add_long_read(std::string_view tenant, BackgroundPool::Task task);
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

}  // namespace pawl::assembly
