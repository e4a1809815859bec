#pragma once
// The host puts the whole server together and owns its parts. Read it to know what the program is
// made of.

#include <atomic>
#include <memory>
#include <stop_token>

#include "cli/data_dir.h"
#include "cli/grpc_faces.h"
#include "faces/worlds/outgoing.h"
#include "runtime/background.h"
#include "runtime/clock.h"
#include "runtime/pooled_loops.h"
#include "runtime/scrubber.h"
#include "server/auth/issuer_keys.h"
#include "server/grpc/server.h"
#include "server/http/front.h"
#include "server/ops/admin.h"
#include "server/ops/descriptors.h"
#include "server/ops/metrics.h"
#include "storage/row_sizes.h"

namespace pawl::cli {

class Host {
 public:
  // Opens the data folder, replays the journal where the rows lag behind, and listens. On an error
  // nothing is left running.
  static Result<std::unique_ptr<Host>> start(const server::Config& config);
  ~Host();
  // Answers the requests that were accepted, then closes everything in order.
  void stop();

  std::string http() const { return http_->address().text(); }
  std::string grpc() const { return grpc_->address().text(); }
  std::string admin() const { return admin_->address().text(); }
  // True once the journal has failed: the server still answers reads, and 503 to everything else.
  bool failed() const { return failed_; }

 private:
  explicit Host(const server::Config& config)
      : config_(config),
        memory_(memory_budget_of(config)),
        programs_(assembly::program_settings(config, config.text("data") + "/wasm")) {}
  Result<void> open();
  Result<void> check_exposure();
  Result<void> follow_issuer();  // fetches the keys of --auth-issuer, now and later
  Result<void> open_parts();     // everything but the listeners
  void close_parts();
  Result<void> open_shards();
  Result<Shards::Opened> open_shard(uint32_t shard, ShardOptions options,
                                    const std::shared_ptr<RowsMemory>& memory);
  static void report_quarantine(const Shard& shard);
  json::Value quarantine_list() const;
  void release_effect(const wire::Request& request, wire::Respond respond);
  ShardOptions shard_options(uint32_t shard, uint32_t shards);
  Scheduler& scheduler() { return pooled_ ? static_cast<Scheduler&>(*pooled_) : background_; }
  size_t mebibytes(std::string_view flag) const;
  static size_t memory_budget_of(const server::Config& config);
  Result<void> listen();
  // The rules for requests of browsers, the same for all listeners.
  server::BrowserRules browser_rules() const;
  Result<void> listen_http();
  Result<void> listen_grpc();
  Result<void> listen_admin();
  void write_serving_file();
  int64_t timers() const;
  void measure();
  void measure_limits();
  static wire::Route openapi_route(const std::string& document);
  std::vector<wire::Route> general_routes();
  std::vector<wire::Route> admin_routes();
  // The permissions of the admin routes, as the settings of /metrics change them.
  Result<server::RoutePermissions> admin_permissions() const;
  std::vector<const Journal*> journals() const;
  void back_up(const wire::Request& request, wire::Respond respond);
  void scrub(wire::Respond respond);
  void run_aside(const std::shared_ptr<wire::Respond>& answer, BackgroundPool::Task task);
  void start_housekeeping();
  void measure_tenants();
  // An error when the caller may not poll for jobs now.
  Result<void> before_poll(const Caller& caller);

  BackgroundThreads background_;  // first: everything below uses its loops
  // The loops of several shards share its threads; null: there is one shard.
  std::unique_ptr<PooledLoops> pooled_;
  server::Config config_;
  server::ConnectionShares shares_;
  MemoryBudget memory_;  // before everything that may hold a charge
  assembly::Programs programs_;
  server::Metrics metrics_;
  std::unique_ptr<server::Authenticator> authenticator_;
  // They outlive the shards: the requests of groups that were never answered end with them.
  wire::Router router_, admin_router_;
  std::unique_ptr<server::HttpFront> front_, admin_front_;
  std::vector<const RowSizes*> row_sizes_;  // of each shard's rows; null: they cannot tell
  std::unique_ptr<Shards> shards_;
  std::unique_ptr<AllShards> all_shards_;       // null: there is one shard
  std::vector<std::unique_ptr<Clock>> clocks_;  // one for each shard
  std::unique_ptr<Workers> workers_;
  server::GrpcConnections grpc_connections_;
  std::unique_ptr<server::CallGate> gate_;
  std::unique_ptr<worlds::Outgoing> outgoing_;
  std::unique_ptr<assembly::Homes> homes_;
  std::unique_ptr<GrpcFaces> grpc_faces_;
  std::string openapi_, admin_openapi_;  // the documents of the two routers
  std::unique_ptr<server::HttpServer> http_, admin_;
  std::unique_ptr<server::GrpcServer> grpc_;
  std::atomic<bool> failed_{false}, started_{false};
  bool stopped_ = false;

  std::stop_source issuer_stop_;  // ends a fetch that is under way
  std::unique_ptr<server::IssuerKeys> issuer_keys_;
  std::unique_ptr<BackgroundLoop> issuer_loop_;
  std::unique_ptr<BackgroundLoop> housekeeping_;
  std::unique_ptr<BackgroundLoop> stream_loop_;   // ends streams
  std::unique_ptr<BackgroundLoop> measure_loop_;  // measures what tenants store
  std::mutex backups_mutex_;  // guards backups_: stop() takes it away while requests still come
  std::unique_ptr<BackgroundPool> backups_ = background_.pool("backup", 1, 16);
  std::vector<std::unique_ptr<Scrubber>> scrubbers_;  // one for each journal
};

}  // namespace pawl::cli
