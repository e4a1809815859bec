#pragma once
// The authenticator tells who calls. In mode none every caller is the same; in mode jwt a signed
// token names the caller.

#include <functional>
#include <map>
#include <shared_mutex>
#include <unordered_map>

#include "base/limits.h"
#include "server/auth/jwt.h"
#include "server/auth/login_throttle.h"
#include "server/auth/permissions.h"
#include "server/auth/token_streams.h"
#include "server/http/address.h"
#include "server/ops/tenants.h"

namespace pawl::server {

enum class AuthMode { none, jwt };
Result<AuthMode> parse_auth_mode(std::string_view text);  // "none" ("mock"), "jwt"

struct AuthOptions {
  AuthMode mode = AuthMode::none;
  Caller default_caller{kDefaultTenant, "mock-user-001",
                        "ROLE_ADMIN,ROLE_M2M"};  // the caller of every request in mode none
  std::string signing_key{};  // PEM, or base64 of PEM; empty: no tokens are issued
  std::string issuer = "cyoda";
  std::string audience{};
  int64_t expiry_seconds = 3600;
  std::string jwks{};  // the text of a JWKS document with trusted public keys
  // The `iss` of tokens whose keys come by set_issuer_keys(); empty: no such tokens.
  std::string remote_issuer{};
  // The signing key before this one: it verifies the tokens that it signed and opens the key pairs
  // that were stored under it. It signs nothing.
  std::string old_signing_key{};
  size_t remembered = limits::kVerifiedTokens;
  // The tenant whose callers may operate the server in mode jwt; empty: no tenant.
  std::string operator_tenant{};
  TenantLimits limits{};
  MemoryBudget* memory = nullptr;  // where tenants have their accounts; null: they have none
};

// A caller and the permissions of its roles.
struct Admitted {
  Caller caller;
  PermissionSet granted;
  std::string client{};      // the machine client that got the token; empty when it has none
  std::string generation{};  // of the client's secret, see set_client()
  Time until = INT64_MAX;    // when the token expires
  TenantPtr tenant{};
};

// A key pair that signs and verifies tokens. A pair with a tenant serves the tokens of that tenant
// only; a pair without one serves all tenants.
struct KeyPair {
  std::string kid;
  std::string tenant{};
  Time created = 0;
  bool active = true;
  bool signs = true;  // false: it only verifies
  RsaKey key;
};

// Thread-safe.
class Authenticator {
 public:
  static Result<std::unique_ptr<Authenticator>> make(AuthOptions options,
                                                     std::function<Time()> now);

  // The caller that the Authorization header names. The error never tells why a token was refused;
  // the log does, at level debug.
  Result<Admitted> admit(std::string_view authorization);
  Result<Caller> caller(std::string_view authorization);  // admit() without the permissions
  AuthMode mode() const { return options_.mode; }
  size_t remembered() const;  // number of verified tokens in the cache

  // Issues a token with these claims, and adds iss, iat and exp.
  Result<std::string> issue(json::Value claims);
  int64_t expiry_seconds() const { return options_.expiry_seconds; }
  const std::string& operator_tenant() const { return options_.operator_tenant; }
  const std::string& issuer() const { return options_.issuer; }
  std::string jwks() const;  // the public halves of the active pairs

  // The newest active pair signs; a pair of the tenant goes before a pair of all tenants. Every
  // active pair verifies.
  void put_key_pair(KeyPair pair);  // replaces the pair with the same kid
  bool remove_key_pair(std::string_view kid);
  std::optional<KeyPair> key_pair(std::string_view kid) const;
  std::optional<KeyPair> signing_pair(std::string_view tenant) const;
  // Key pairs are stored as rows: kid, tenantId, createdAt, active and pem. The pem is the private
  // half, encrypted with the configured signing key. The row of the configured key itself has no
  // pem.
  Result<json::Value> make_pair() const;  // kid and pem of a new pair
  Result<void> use_pair(const json::Value& row);
  // The kid of the configured signing key; empty when there is none.
  const std::string& configured_kid() const { return configured_kid_; }

  // Machine clients. A token that this server issued to a client names the client and the
  // generation of its secret (kGenerationClaim). It is refused at once when the client is gone or
  // has another generation, and the streams that the client has opened end.
  void set_client(std::string id, std::string generation);
  void drop_client(std::string_view id);
  // Whether the client still has this generation. A stream that begins long after its request was
  // admitted asks again.
  bool has_client(std::string_view id, std::string_view generation) const;

  TokenStreams& streams() { return streams_; }
  void end_expired_streams() { streams_.end_expired(now_()); }
  Tenants& tenants() { return tenants_; }

  LoginThrottle& logins() { return logins_; }

  // The claims of a token of another issuer, once its signature and its times are verified.
  // `jwk_of` returns the key for the token's kid.
  Result<json::Value> read_foreign(
      std::string_view token,
      const std::function<Result<json::Value>(std::string_view kid)>& jwk_of) const;
  // Public keys of external issuers. Their tokens may name any tenant.
  void trust(std::string kid, RsaKey key);
  bool distrust(std::string_view kid);
  Result<void> trust_jwks(std::string_view document);
  // Replaces the keys of the remote issuer (see issuer_keys.h). Its tokens may name any tenant.
  void set_issuer_keys(KeysByKid keys);
  // Sets a function that is called when a token names an unknown key. Set it before the first call
  // of admit().
  void on_unknown_key(std::function<void()> unknown) { unknown_key_ = std::move(unknown); }

 private:
  Authenticator(AuthOptions options, std::function<Time()> now);
  struct VerifyKey {
    RsaKey key;
    std::string issuer;    // that the token must name
    std::string tenant{};  // that the token must name; empty: any
    bool ours = false;
  };
  Result<VerifyKey> key_for(const std::string& kid) const;
  Result<Identity> verify(std::string_view token) const;
  PermissionSet granted_to(const Caller& caller) const;
  // Sets the machine client of a token that this server has signed, if it names one.
  Result<void> check_client(const json::Value& claims, Identity& identity) const;
  void forget();  // empties the cache of verified tokens, when keys change

  const AuthOptions options_;
  const std::function<Time()> now_;
  mutable std::shared_mutex mutex_;
  std::string configured_kid_, seal_, old_seal_;
  std::vector<KeyPair> pairs_;  // oldest first
  KeysByKid trusted_, issuer_keys_;
  std::function<void()> unknown_key_;
  std::map<std::string, std::string, std::less<>> clients_;  // generation by id
  LoginThrottle logins_;
  TokenStreams streams_;
  Tenants tenants_;
  // The cache of verified tokens, by SHA-256 of the token: a repeated token needs no RSA.
  std::unordered_map<Bytes, Admitted> verified_;
  Admitted everybody_;  // the caller of every request in mode none
};

// Refuses mode none on addresses that other machines can reach, unless the operator allows it with
// --insecure.
Result<void> check_exposure(AuthMode mode, bool insecure, const std::vector<Address>& listeners);

}  // namespace pawl::server
