#pragma once
// A whole server in this process for the scenarios of the faces: shard, clock, workers, faces and
// listeners, put together as in cli/host.cc.

#include "bench/load.h"
#include "bench/scenario.h"
#include "faces/entities/face.h"
#include "faces/entities/program.h"
#include "faces/processes/face.h"
#include "faces/processes/grpc/services.h"
#include "json/text.h"
#include "runtime/clock.h"
#include "runtime/workers.h"
#include "server/auth/call_gate.h"
#include "server/grpc/server.h"
#include "server/http/front.h"

namespace pawl::bench {

class Site {
 public:
  explicit Site(const std::string& name);
  ~Site();
  std::string address() const { return http_->address().text(); }
  std::string grpc() const { return grpc_->address().text(); }
  // Sends one request. A status of 400 or above ends the run.
  json::Value call(std::string_view method, std::string_view path, std::string_view body = {});
  Shard& shard() { return *shard_; }
  entities::Face& entities() { return *entities_; }

 private:
  BackgroundThreads background_;  // first: the parts below use its loops
  Folder folder_;
  processes::Program processes_program_;
  entities::Program entities_program_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<processes::Face> processes_;
  std::unique_ptr<entities::Face> entities_;
  wire::Router router_;
  std::unique_ptr<server::Authenticator> nobody_;
  server::Metrics metrics_;
  std::unique_ptr<server::HttpFront> front_;
  std::unique_ptr<server::HttpServer> http_;
  std::unique_ptr<server::CallGate> gate_;
  std::unique_ptr<processes::GrpcServices> processes_grpc_;
  std::unique_ptr<server::GrpcServer> grpc_;
};

// Completed instances per second of the definition `linear`, with the stream and batches.
double linear_by_stream(Site& site, double for_seconds);

// A pause before each request makes the server idle when it comes.
Loaded bare_load(size_t connections, double for_seconds, double pause_seconds = 0);

}  // namespace pawl::bench
