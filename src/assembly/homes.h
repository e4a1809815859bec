#pragma once
// The faces of all shards of the process. A request goes to the faces of its shard, which its home
// names (kHomes in homes.cc). With one shard they are simply its faces.

#include "assembly/faces.h"
#include "runtime/all_shards.h"

namespace pawl::assembly {

// Which shard a request is for.
enum class Home : uint8_t {
  node,      // any: nothing that is stored
  accounts,  // the first: machine clients and keys, which are found without a tenant
  tenant,    // that of the caller's tenant
};
// Nothing for a pattern that is not in the table: such a route must not be served. `context_path`
// is the prefix of the routes of entities.
std::optional<Home> home_of(std::string_view pattern, std::string_view context_path);

// What the faces use. Everything must outlive them.
struct HomesOver {
  const server::Config& config;
  const Programs& programs;
  const Shards& shards;
  AllShards* all;  // null: there is one shard
  Workers& workers;
  server::Authenticator& authenticator;
  worlds::HttpClient& outgoing;
  ChargeFor charge{};
};

class Homes {
 public:
  explicit Homes(const HomesOver& over);
  ~Homes();

  // Fails when a route has no home.
  Result<void> add_routes(wire::Router& router);
  // For gRPC. One service of processes serves all tenants: the calls of one stream may be for
  // several shards one day.
  processes::Face& processes();
  entities::Face& entities(std::string_view tenant) { return of(tenant).entities(); }
  worlds::Face& worlds(std::string_view tenant) { return of(tenant).worlds(); }

  // As those of Faces.
  bool add_long_read(std::string_view tenant, BackgroundPool::Task task) {
    return of(tenant).add_long_read(tenant, std::move(task));
  }
  Result<void> start();
  std::vector<std::pair<std::string, int64_t>> limited_jobs() const;
  void stop();
  void end_reads();

 private:
  Faces& of(std::string_view tenant) { return *faces_[shards_.home(tenant)]; }
  // One row that calls the handler of the right shard. `index` is its place among the rows.
  Result<wire::Route> joined(size_t index) const;

  const Shards& shards_;
  const std::string context_path_;
  std::vector<std::unique_ptr<Faces>> faces_;
  std::unique_ptr<processes::Face> all_processes_;  // null: there is one shard
  // The routes of each shard, which the joined rows use. Empty when there is one shard.
  std::vector<wire::Router> routers_;
  std::vector<std::vector<const wire::Route*>> rows_;  // of each router
};

}  // namespace pawl::assembly
