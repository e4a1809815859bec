#pragma once
// The worlds face: a program, a service with its HTTP routes, and the executors of this process.
//
//   Modules modules(&runner);
//   WorldsProgram program(modules);  // the shard runs it
//   Face face(shard, workers, program, background, options, client);
//   // effects To::member go to face.executors()

#include "faces/worlds/executors.h"
#include "faces/worlds/http/http_routes.h"

namespace pawl::worlds {

class Face {
 public:
  Face(KernelAccess& kernel, WorkQueue& work, const WorldsProgram& program, Background& background,
       FaceOptions options = {}, HttpClient* client = nullptr)
      : service_(kernel, work, program, background, std::move(options)),
        http_(service_),
        executors_(service_, background, client) {}
  std::vector<wire::Route> routes() { return http_.routes(); }
  std::vector<wire::Dialect> dialects() const;
  Outbox& executors() { return executors_; }
  Service& service() { return service_; }
  void stop() { service_.stop(); }

 private:
  Service service_;
  HttpRoutes http_;
  Executors executors_;
};

}  // namespace pawl::worlds
