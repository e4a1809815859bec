#pragma once
// The entities face put together: service, members, routes. Whoever constructs it gives it the
// door, starts it, hands its routes to the router and its outbox to the shard.

#include "faces/entities/members/members.h"
#include "faces/entities/service.h"
#include "wire/route.h"

namespace pawl::entities {

// What the face needs of the server's keys. All empty when nobody is authenticated.
struct Keys {
  // A signed token with these claims; iss, iat and exp are added.
  std::function<Result<std::string>(json::Value claims)> issue{};
  std::function<std::string()> jwks{};
  // Key pairs. A new one is kid and pem, its private half sealed; it signs and verifies once the
  // row of its cell (kid, tenantId, createdAt, active, pem) is handed back.
  std::function<Result<json::Value>()> make_pair{};
  std::function<Result<void>(const json::Value& row)> use_pair{};
  std::function<void(std::string_view kid)> drop_pair{};
  std::function<json::Value(std::string_view tenant)>
      signing_pair{};            // its row without pem; null when none is active
  std::string configured_kid{};  // of the key that the server was started with
  // The claims of a token whose times hold and which is signed by the key that `jwk_of` knows under
  // its kid.
  using JwkOf = std::function<Result<json::Value>(std::string_view kid)>;
  std::function<Result<json::Value>(std::string_view token, const JwkOf& jwk_of)> read_token{};
  std::function<Result<void>(const json::Value& jwk)> check_jwk{};
  std::function<Bytes()> secret{};  // 32 random bytes
  int64_t expiry_seconds = 3600;
};

struct FaceOptions {
  std::string prefix = "/api";
  MemberOptions members{};
  Keys keys{};
  bool verbose_errors = false;
  // Browsers from loopback may call; others only when listed (a comma list, or *).
  bool cors = true;
  std::string cors_origins{};
  size_t background_threads = 2;
  // The first machine client: written at start when its id is given.
  struct Bootstrap {
    std::string client_id{}, client_secret{}, tenant = "default-tenant", user = "admin",
                                              roles = "ROLE_ADMIN,ROLE_M2M";
  } bootstrap{};
};

class Face {
 public:
  Face(KernelAccess& kernel, FaceOptions options);
  ~Face();
  // After the shard has started.
  Result<void> start();
  void stop();

  Members& members() { return members_; }  // connect it for To::member, before the shard starts
  Service& service() { return service_; }
  const FaceOptions& options() const { return options_; }

  std::vector<wire::Route> routes();
  wire::Dialect dialect() const;

 private:
  KernelAccess& kernel_;
  FaceOptions options_;
  Members members_;
  Counts counts_;
  Background background_;
  Service service_;
};

}  // namespace pawl::entities
