#pragma once
// Who is calling: everyone the same (mode none), or whoever a signed token names (mode jwt).

#include <functional>
#include <map>
#include <shared_mutex>
#include <unordered_map>

#include "base/limits.h"
#include "server/auth/jwt.h"
#include "server/http/address.h"

namespace pawl::server {

enum class AuthMode { none, jwt };
Result<AuthMode> parse_auth_mode(std::string_view text);  // "none" ("mock"), "jwt"

struct AuthOptions {
  AuthMode mode = AuthMode::none;
  Caller nobody{kDefaultTenant, "mock-user-001",
                "ROLE_ADMIN,ROLE_M2M"};  // who everyone is in mode none
  std::string signing_key{};  // PEM or base64 of it; empty: tokens are verified, not issued
  std::string issuer = "cyoda";
  std::string audience{};
  int64_t expiry_seconds = 3600;
  std::string jwks{};  // the text of a JWKS document whose keys are trusted
  size_t remembered = limits::kVerifiedTokens;
};

// A pair that signs tokens and verifies them. One that belongs to a tenant is for the tokens of
// that tenant alone; one that belongs to nobody is for all.
struct KeyPair {
  std::string kid;
  std::string tenant{};
  Time created = 0;
  bool active = true;
  RsaKey key;
};

// Safe from any thread.
class Authenticator {
 public:
  static Result<std::unique_ptr<Authenticator>> make(AuthOptions options,
                                                     std::function<Time()> now);

  // From the Authorization header. The error never says why; the log does, at debug.
  Result<Caller> caller(std::string_view authorization);
  AuthMode mode() const { return options_.mode; }
  size_t remembered() const;  // verified tokens in memory

  // Tokens of our own. `claims` get iss, iat and exp; the rest is the caller's.
  Result<std::string> issue(json::Value claims);
  int64_t expiry_seconds() const { return options_.expiry_seconds; }
  const std::string& issuer() const { return options_.issuer; }
  std::string jwks() const;  // of the pairs that are active

  // The newest active pair signs, the tenant's own before that of all; every active one verifies.
  void put_key_pair(KeyPair pair);  // instead of one with the same kid
  bool remove_key_pair(std::string_view kid);
  std::optional<KeyPair> key_pair(std::string_view kid) const;
  std::optional<KeyPair> signing_pair(std::string_view tenant) const;
  // Pairs as rows that outlive the process: kid, tenantId, createdAt, active, and pem, the private
  // half encrypted under the configured signing key. The configured key's own row has no pem.
  Result<json::Value> make_pair() const;  // kid and pem of a new one
  Result<void> use_pair(const json::Value& row);
  // Of the configured signing key; empty when there is none.
  const std::string& configured_kid() const { return configured_kid_; }

  // The claims of somebody else's token: signed by the key that `jwk_of` gives for its kid, times
  // hold.
  Result<json::Value> read_foreign(
      std::string_view token,
      const std::function<Result<json::Value>(std::string_view kid)>& jwk_of) const;
  // Keys of others, whose tokens are believed whatever tenant they name.
  void trust(std::string kid, RsaKey key);
  bool distrust(std::string_view kid);
  Result<void> trust_jwks(std::string_view document);

 private:
  Authenticator(AuthOptions options, std::function<Time()> now);
  Result<Identity> verify(std::string_view token) const;
  void forget();  // verified tokens, when keys change

  const AuthOptions options_;
  const std::function<Time()> now_;
  mutable std::shared_mutex mutex_;
  std::string configured_kid_, seal_;
  std::vector<KeyPair> pairs_;  // oldest first
  std::map<std::string, RsaKey, std::less<>> trusted_;
  // Tokens already verified, by their SHA-256: a repeated token costs no RSA.
  std::unordered_map<Bytes, Identity> verified_;
};

// No authentication is for the machine itself: refuses to start on other addresses unless the
// operator said so.
Result<void> check_exposure(AuthMode mode, bool insecure, const std::vector<Address>& listeners);

}  // namespace pawl::server
