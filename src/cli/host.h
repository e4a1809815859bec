#pragma once
// The host is the whole server, put together: read it to know what the program is made of.

#include <atomic>
#include <memory>
#include <thread>

#include "cli/data_dir.h"
#include "cli/faces.h"
#include "cli/programs.h"
#include "server/grpc/server.h"
#include "server/http/front.h"
#include "server/ops/admin.h"
#include "server/ops/metrics.h"

namespace pawl::cli {

class Host {
 public:
  // Opens the data, replays what is missing, listens. On an error nothing is left running.
  static Result<std::unique_ptr<Host>> start(const server::Config& config);
  ~Host();
  // Answers what was accepted, then closes everything in order.
  void stop();

  std::string http() const { return http_->address().text(); }
  std::string grpc() const { return grpc_->address().text(); }
  std::string admin() const { return admin_->address().text(); }
  // True once the journal has failed: the server answers reads and says 503 to the rest.
  bool failed() const { return failed_; }

 private:
  explicit Host(const server::Config& config)
      : config_(config),
        programs_({.max_state_visits = static_cast<int>(config.number("max-state-visits")),
                   .wasm_cache = config.text("data") + "/wasm"}) {}
  Result<void> open();
  Result<void> listen();
  void measure();
  std::vector<wire::Route> admin_routes();
  void keep_house();

  server::Config config_;
  Programs programs_;
  server::Metrics metrics_;
  std::unique_ptr<server::Authenticator> authenticator_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Faces> faces_;
  wire::Router router_, admin_router_;
  std::unique_ptr<server::HttpFront> front_, admin_front_;
  std::unique_ptr<server::Authenticator> nobody_;  // the admin listener asks nobody
  std::unique_ptr<server::HttpServer> http_, admin_;
  std::unique_ptr<server::GrpcServer> grpc_;
  std::atomic<bool> failed_{false}, started_{false};

  std::mutex house_mutex_;
  std::condition_variable house_wake_;
  bool ending_ = false;
  std::thread house_thread_;
};

}  // namespace pawl::cli
