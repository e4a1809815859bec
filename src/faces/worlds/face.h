#pragma once
// The worlds face: a program, a service and its routes, and the executors of this process.
//
//   Modules modules(&runner);  WorldsProgram program(modules);      // the program goes to the
//   shard Face face(shard, workers, program, options, client);            // To::member effects go
//   to executors()

#include "faces/worlds/executors.h"

namespace pawl::worlds {

class Face {
 public:
  Face(KernelAccess& kernel, WorkQueue& work, const WorldsProgram& program,
       FaceOptions options = {}, HttpClient* client = nullptr)
      : service_(kernel, work, program, std::move(options)), executors_(service_, client) {}
  std::vector<wire::Route> routes() { return service_.routes(); }
  std::vector<wire::Dialect> dialects() const;
  Outbox& executors() { return executors_; }
  Service& service() { return service_; }
  void stop() { service_.stop(); }

 private:
  Service service_;
  Executors executors_;
};

}  // namespace pawl::worlds
