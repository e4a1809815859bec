#include "cli/faces.h"

#include "faces/entities/face.h"
#include "faces/entities/grpc/service.h"
#include "faces/processes/face.h"
#include "faces/processes/grpc/services.h"
#include "json/text.h"

namespace pawl::cli {

struct Faces::All {
  std::unique_ptr<processes::Face> processes;
  std::unique_ptr<processes::GrpcServices> processes_grpc;
  std::unique_ptr<entities::Face> entities;
  std::unique_ptr<entities::GrpcService> entities_grpc;
};

static entities::Keys keys_of(server::Authenticator& authenticator) {
  if (authenticator.mode() == server::AuthMode::none) return {};
  entities::Keys keys;
  keys.issue = [&authenticator](json::Value claims) { return authenticator.issue(std::move(claims)); };
  keys.jwks = [&authenticator] { return authenticator.jwks(); };
  keys.trust = [&authenticator](const std::string& kid, const json::Value& jwk) -> Result<void> {
    TRY(server::RsaKey key, server::RsaKey::from_jwk(jwk));
    authenticator.trust(kid, std::move(key));
    return {};
  };
  keys.distrust = [&authenticator](std::string_view kid) { return authenticator.distrust(kid); };
  keys.verify = [&authenticator](std::string_view token) -> Result<Caller> {
    TRY(server::Identity identity, authenticator.verify(token));
    return identity.caller;
  };
  keys.secret = [] {
    Bytes out;
    Writer w(out);
    for (int i = 0; i < 2; ++i)
      for (uint64_t word : system_dice()) w.fixed64(word);
    return out;
  };
  keys.expiry_seconds = authenticator.expiry_seconds();
  return keys;
}

static entities::FaceOptions entity_options(const server::Config& c, server::Authenticator& authenticator) {
  auto ms = [&](std::string_view flag) { return std::chrono::milliseconds(c.duration(flag) / kMillisecond); };
  entities::FaceOptions o;
  o.prefix = c.text("context-path");
  o.members = {.keepalive_interval = ms("keepalive-interval"), .keepalive_timeout = ms("keepalive-timeout"), .dispatch_wait = ms("dispatch-wait")};
  o.keys = keys_of(authenticator);
  o.verbose_errors = c.text("error-mode") == "verbose";
  o.bootstrap = {c.text("bootstrap-client"), c.text("bootstrap-secret"), c.text("bootstrap-tenant"), c.text("bootstrap-user"), c.text("bootstrap-roles")};
  return o;
}

Faces::Faces(const server::Config& config, Shard& shard, Workers& workers, server::Authenticator& authenticator) : all_(std::make_unique<All>()) {
  all_->processes = std::make_unique<processes::Face>(shard, workers);
  all_->entities = std::make_unique<entities::Face>(shard, entity_options(config, authenticator));
  shard.connect(To::member, all_->entities->members());
  auto who = [&authenticator](std::string_view authorization) { return authenticator.caller(authorization); };
  all_->processes_grpc = std::make_unique<processes::GrpcServices>(all_->processes->service(), who);
  all_->entities_grpc = entities::make_grpc_service(*all_->entities, who);
}

Faces::~Faces() = default;

void Faces::add_routes(wire::Router& router) {
  router.add(all_->processes->routes(), all_->processes->dialects());
  router.add(all_->entities->routes(), all_->entities->dialect());
}

std::vector<grpc::Service*> Faces::services() {
  std::vector<grpc::Service*> out = all_->processes_grpc->all();
  out.push_back(all_->entities_grpc->service());
  return out;
}

Result<void> Faces::start() { return all_->entities->start(); }

void Faces::stop() { all_->entities->stop(); }

}  // namespace pawl::cli
