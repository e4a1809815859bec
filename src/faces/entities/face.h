#pragma once
// The entities face: service, compute members and routes. Its owner passes in the kernel and the
// background, connects members() as the outbox for To::member, adds the routes to the router and
// calls start().

#include "faces/entities/http/result_stream.h"
#include "faces/entities/members/members.h"
#include "faces/entities/service.h"
#include "wire/route.h"

namespace pawl::entities {

// The functions of the server's key store that the face needs. All are empty when the server runs
// without authentication.
struct Keys {
  // Signs a token with these claims; iss, iat and exp are added.
  std::function<Result<std::string>(json::Value claims)> issue{};
  std::function<std::string()> jwks{};
  // Makes a key pair: {kid, pem}, the private half encrypted. The pair is in use only after its row
  // {kid, tenantId, createdAt, active, pem} is passed to use_pair.
  std::function<Result<json::Value>()> make_pair{};
  std::function<Result<void>(const json::Value& row)> use_pair{};
  std::function<void(std::string_view kid)> drop_pair{};
  // The row of the tenant's active pair without pem; null when no pair is active.
  std::function<json::Value(std::string_view tenant)> signing_pair{};
  std::string configured_kid{};  // of the key that the server was started with
  // Checks the signature and the times of a token and returns its claims. `jwk_of` returns the
  // public key of a kid.
  using JwkOf = std::function<Result<json::Value>(std::string_view kid)>;
  std::function<Result<json::Value>(std::string_view token, const JwkOf& jwk_of)> read_token{};
  std::function<Result<void>(const json::Value& jwk)> check_jwk{};
  std::function<Bytes()> secret{};  // 32 random bytes
  // Told of every machine client at the start and when it changes: tokens that carry another
  // generation of its secret, or name a client that is gone, are no longer accepted.
  std::function<void(std::string_view client, std::string_view generation)> client_changed{};
  std::function<void(std::string_view client)> client_deleted{};
  // Logins are throttled: the time that a caller must wait before its next try, if any.
  std::function<std::optional<Time>(std::string_view client, std::string_view address)>
      login_wait{};
  std::function<void(std::string_view client, std::string_view address, bool good)> login_tried{};
  int64_t expiry_seconds = 3600;
};

struct FaceOptions {
  std::string prefix = "/api";
  MemberOptions members{};
  Keys keys{};
  bool verbose_errors = false;
  // Browsers may call from loopback origins and from the listed ones (separated by commas; * allows
  // all).
  bool cors = true;
  std::string cors_origins{};
  size_t background_threads = 3;  // for searches; one tenant has at most two of them
  ChargeFor charge{};             // counts the results of searches in progress
  // The tenant that operates the server: its admins may make clients of other tenants and manage
  // the keys that serve all tenants. Empty: no tenant.
  std::string operator_tenant{};
  // The first machine client, written at start unless client_id is empty.
  struct Bootstrap {
    std::string client_id{};
    std::string client_secret{};
    std::string tenant = "default-tenant";
    std::string user = "admin";
    std::string roles = "ROLE_ADMIN,ROLE_M2M";
  } bootstrap{};
};

class Face {
 public:
  Face(KernelAccess& kernel, Background& background, FaceOptions options);
  ~Face();
  // Call it after the shard has started.
  Result<void> start();
  // Ends all background work. Requests that come later get errors for work in the background.
  void stop();

  // The outbox for To::member; connect it before the shard starts.
  Members& members() { return members_; }
  Service& service() { return service_; }
  ResultStreams& result_streams() { return result_streams_; }
  StreamSlots& stream_slots() { return stream_slots_; }
  const FaceOptions& options() const { return options_; }

  std::vector<wire::Route> routes();
  wire::Dialect dialect() const;

 private:
  Result<void> put_bootstrap_client();

  KernelAccess& kernel_;
  FaceOptions options_;
  Members members_;
  Counts counts_;
  Service service_;
  StreamSlots stream_slots_;
  ResultStreams result_streams_;
};

}  // namespace pawl::entities
