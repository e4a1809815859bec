#include "assembly/faces.h"

#include "faces/entities/face.h"
#include "faces/lifecycle/face.h"
#include "faces/processes/face.h"
#include "faces/worlds/face.h"
#include "faces/worlds/program.h"
#include "pawl/version.h"
#include "server/http/detached_peer.h"

namespace pawl::assembly {

// Routes the effects for compute members and executors to the face whose program opened them.
class ByProgram final : public Outbox {
 public:
  void add(std::string program, Outbox& outbox) { to_[std::move(program)] = &outbox; }
  void opened(const EffectPtr& effect) override {
    if (auto it = to_.find(effect->program); it != to_.end()) it->second->opened(effect);
  }
  void closed(const Effect& effect) override {
    if (auto it = to_.find(effect.program); it != to_.end()) it->second->closed(effect);
  }
  void flushed() override {
    for (auto& [program, outbox] : to_)
      outbox->flushed();
  }

 private:
  std::map<std::string, Outbox*> to_;
};

// Threads for lists and other reads that take long, and how many of those may wait; a quarter of
// the waiting ones may be of one tenant.
static constexpr size_t kLongReadThreads = 3;
static constexpr size_t kWaitingLongReads = 2000;

struct Faces::All {
  explicit All(Background& background)
      : long_reads(background.pool("long reads", kLongReadThreads, kWaitingLongReads)) {}
  std::unique_ptr<processes::Face> processes;
  std::unique_ptr<entities::Face> entities;
  std::unique_ptr<lifecycle::Face> lifecycle;
  std::unique_ptr<worlds::Face> worlds;
  ByProgram members;
  // Last: its tasks use the faces.
  std::unique_ptr<BackgroundPool> long_reads;
};

// Runs the handlers of slow routes on the threads for long reads.
static std::vector<wire::Route> beside(BackgroundPool& pool, const wire::Router& router,
                                       std::vector<wire::Route> routes) {
  for (wire::Route& route : routes) {
    if (!route.slow) continue;
    route.handle = [&pool, &router, handle = std::move(route.handle)](wire::Request request,
                                                                      wire::Respond respond) {
      // Shared with the connection, which may end while the request waits or runs.
      auto peer = std::make_shared<server::DetachedPeer>(request.peer ? request.peer->address()
                                                                      : std::string());
      if (request.peer) request.peer->on_leave([peer] { peer->leave(); });
      request.peer = peer.get();
      const std::string tenant = request.caller.tenant;
      auto held = std::make_shared<std::pair<wire::Request, wire::Respond>>(std::move(request),
                                                                            std::move(respond));
      // Shared by the task and by the refusal when the pool does not take the task.
      if (pool.add(tenant, [held, peer, &handle, &router] {
            auto& [request, respond] = *held;
            if (!peer->has_left()) return handle(std::move(request), std::move(respond));
            respond(router.refuse(request, {Code::unavailable, "ABANDONED", "the client left"}));
          }))
        return;
      held->second(router.refuse(
          held->first, {Code::exhausted, "TENANT_LONG_READS",
                        "too many lists and other long reads of this tenant wait; retry later"}));
    };
  }
  return routes;
}

// A face may not include the server, so it gets the authenticator as a set of functions. Without
// authentication the set is empty.
static entities::Keys keys_of(server::Authenticator& authenticator) {
  if (authenticator.mode() == server::AuthMode::none) return {};
  entities::Keys keys;
  keys.issue = [&authenticator](json::Value claims) {
    return authenticator.issue(std::move(claims));
  };
  keys.jwks = [&authenticator] { return authenticator.jwks(); };
  keys.configured_kid = authenticator.configured_kid();
  keys.make_pair = [&authenticator] { return authenticator.make_pair(); };
  keys.use_pair = [&authenticator](const json::Value& row) { return authenticator.use_pair(row); };
  keys.drop_pair = [&authenticator](std::string_view kid) { authenticator.remove_key_pair(kid); };
  keys.signing_pair = [&authenticator](std::string_view tenant) -> json::Value {
    auto pair = authenticator.signing_pair(tenant);
    if (!pair) return {};
    return json::object(
        {{"kid", pair->kid}, {"active", true}, {"createdAt", rfc3339(pair->created)}});
  };
  keys.check_jwk = [](const json::Value& jwk) -> Result<void> {
    TRY_OK(server::RsaKey::from_jwk(jwk));
    return {};
  };
  keys.read_token = [&authenticator](std::string_view token, const auto& jwk_of) {
    return authenticator.read_foreign(token, jwk_of);
  };
  // 32 random bytes from the system, for the secret of a new machine client.
  keys.secret = [] {
    Bytes out;
    Writer w(out);
    for (int i = 0; i < 2; ++i)
      for (uint64_t word : system_dice())
        w.fixed64(word);
    return out;
  };
  keys.client_changed = [&authenticator](std::string_view client, std::string_view generation) {
    authenticator.set_client(std::string(client), std::string(generation));
  };
  keys.client_deleted = [&authenticator](std::string_view client) {
    authenticator.drop_client(client);
  };
  keys.login_wait = [&authenticator](std::string_view client, std::string_view address) {
    return authenticator.logins().wait(client, address);
  };
  keys.login_tried = [&authenticator](std::string_view client, std::string_view address,
                                      bool good) {
    if (good)
      authenticator.logins().succeeded(client, address);
    else
      authenticator.logins().failed(client, address);
  };
  keys.expiry_seconds = authenticator.expiry_seconds();
  return keys;
}

static entities::FaceOptions entity_options(const server::Config& c,
                                            server::Authenticator& authenticator) {
  auto ms = [&](std::string_view flag) {
    return std::chrono::milliseconds(c.duration(flag) / kMillisecond);
  };
  entities::FaceOptions o;
  o.prefix = c.text("context-path");
  o.members = {.keepalive_interval = ms("keepalive-interval"),
               .keepalive_timeout = ms("keepalive-timeout"),
               .dispatch_wait = ms("dispatch-wait")};
  o.keys = keys_of(authenticator);
  o.verbose_errors = c.text("error-mode") == "verbose";
  o.cors = c.boolean("cors");
  o.cors_origins = c.text("allowed-origins") + "," + c.text("cors-origins");
  o.bootstrap = {c.text("bootstrap-client"), c.text("bootstrap-secret"), c.text("bootstrap-tenant"),
                 c.text("bootstrap-user"), c.text("bootstrap-roles")};
  o.operator_tenant = authenticator.operator_tenant();
  return o;
}

static worlds::FaceOptions world_options(const server::Config& c) {
  worlds::FaceOptions o;
  o.environment = [allowed = c.list("worlds-env-allow")](const std::string& tenant,
                                                         const std::string& name) {
    return server::allowed_variable(allowed, tenant, name);
  };
  o.version = PAWL_VERSION;
  o.http_allow = c.list("worlds-http-allow");
  // A key that is not 32 bytes in hex leaves the secrets of worlds unavailable.
  if (auto key = unhex(c.text("worlds-secret-key")); key && key->size() == 32) o.secret_key = *key;
  return o;
}

// Runs before the shard starts: the faces connect their outboxes here, and start() of the shard
// reports open effects to them.
Faces::Faces(const FacesOver& over) : all_(std::make_unique<All>(over.shard.scheduler())) {
  const server::Config& config = over.config;
  Shard& shard = over.shard;
  Background& background = shard.scheduler();
  all_->processes = std::make_unique<processes::Face>(
      shard, over.workers,
      processes::QuarantineAccess{
          [&shard] { return shard.quarantine().list(); },
          [&shard](std::string_view effect) { return shard.release(effect); }},
      processes::ServiceOptions{.strict_leases = config.boolean("strict-leases")});
  entities::FaceOptions of_entities = entity_options(config, over.authenticator);
  of_entities.charge = over.charge;
  all_->entities = std::make_unique<entities::Face>(shard, background, std::move(of_entities));
  all_->lifecycle = std::make_unique<lifecycle::Face>(
      shard, background,
      lifecycle::FaceOptions{config.boolean("lifecycle-websocket"),
                             config.list("lifecycle-origins")});
  worlds::FaceOptions of_worlds = world_options(config);
  of_worlds.charge = over.charge;
  const worlds::WorldsProgram& program = over.programs.worlds();
  all_->worlds = std::make_unique<worlds::Face>(shard, over.workers, program, background,
                                                std::move(of_worlds), &over.outgoing);
  // Both faces send effects to members, and a shard has one outbox of each kind, so ByProgram
  // divides them.
  all_->members.add(std::string(entities::kProgram), all_->entities->members());
  all_->members.add(std::string(program.name()), all_->worlds->executors());
  shard.connect(To::member, all_->members);
}

Faces::~Faces() = default;

void Faces::add_routes(wire::Router& router) {
  auto aside = [&](std::vector<wire::Route> routes) {
    return beside(*all_->long_reads, router, std::move(routes));
  };
  router.add(aside(all_->processes->routes()), all_->processes->dialects());
  router.add(aside(all_->entities->routes()), all_->entities->dialect());
  router.add(aside(all_->lifecycle->routes()), all_->lifecycle->dialects());
  router.add(aside(all_->worlds->routes()), all_->worlds->dialects());
}

processes::Face& Faces::processes() { return *all_->processes; }
entities::Face& Faces::entities() { return *all_->entities; }
worlds::Face& Faces::worlds() { return *all_->worlds; }

bool Faces::add_long_read(std::string_view tenant, BackgroundPool::Task task) {
  return all_->long_reads->add(tenant, std::move(task));
}

Result<void> Faces::start() { return all_->entities->start(); }

std::vector<std::pair<std::string, int64_t>> Faces::limited_jobs() const {
  std::vector<std::pair<std::string, int64_t>> out;
  if (auto waiting = all_->processes->service().waiting_by_limit())
    for (auto& [limit, jobs] : *waiting)
      out.emplace_back(std::move(limit), static_cast<int64_t>(jobs));
  return out;
}

void Faces::end_reads() { all_->long_reads.reset(); }

void Faces::stop() {
  all_->entities->stop();
  all_->worlds->stop();
}

}  // namespace pawl::assembly
