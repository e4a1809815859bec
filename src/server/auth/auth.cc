// Verifies and issues tokens, and keeps the key pairs.

#include "server/auth/auth.h"

#include "base/hash.h"
#include "base/log.h"
#include "json/text.h"
#include "runtime/monotonic.h"
#include "wire/message.h"

namespace pawl::server {
namespace {

// The password of the key pairs that are stored under this signing key.
std::string seal_of(const RsaKey& key) {
  return hex(view(sha256("pawl key pairs", key.private_pem())));
}

std::unexpected<Error> unauthorized() {
  return fail(Code::unauthenticated, "UNAUTHORIZED",
              "say who you are: Authorization: Bearer <token>");
}

}  // namespace

Result<AuthMode> parse_auth_mode(std::string_view text) {
  if (text == "none" || text == "mock") return AuthMode::none;
  if (text == "jwt") return AuthMode::jwt;
  return fail(Code::invalid, "BAD_AUTH",
              "'" + std::string(text) + "' is not an authentication mode; allowed: none, jwt");
}

Authenticator::Authenticator(AuthOptions options, std::function<Time()> now)
    : options_(std::move(options)),
      now_(std::move(now)),
      logins_(monotonic_now),
      tenants_(options_.limits, options_.memory),
      everybody_{options_.default_caller, granted_to(options_.default_caller)} {
  if (options_.mode == AuthMode::none)
    everybody_.tenant = tenants_.use(options_.default_caller.tenant);
}

Result<std::unique_ptr<Authenticator>> Authenticator::make(AuthOptions options,
                                                           std::function<Time()> now) {
  std::unique_ptr<Authenticator> made(new Authenticator(std::move(options), std::move(now)));
  const AuthOptions& given = made->options_;
  if (!given.signing_key.empty()) {
    TRY(RsaKey key, RsaKey::from_pem(given.signing_key));
    if (!key.is_private())
      return fail(Code::invalid, "BAD_KEY",
                  "the signing key is a public key; give the private one");
    made->configured_kid_ = key.kid();
    made->seal_ = seal_of(key);
    made->put_key_pair({.kid = key.kid(), .created = made->now_(), .key = key});
  }
  if (!given.old_signing_key.empty()) {
    TRY(RsaKey old, RsaKey::from_pem(given.old_signing_key));
    if (!old.is_private())
      return fail(Code::invalid, "BAD_KEY",
                  "the old signing key is a public key; give the private one");
    made->old_seal_ = seal_of(old);
    if (old.kid() != made->configured_kid_)
      made->put_key_pair({.kid = old.kid(), .created = 0, .signs = false, .key = old});
  }
  if (!given.jwks.empty()) TRY_OK(made->trust_jwks(given.jwks));
  if (given.mode == AuthMode::jwt && made->pairs_.empty() && made->trusted_.empty() &&
      given.remote_issuer.empty()) {
    return fail(
        Code::invalid, "NO_KEY",
        "--auth jwt needs a signing key (--jwt-key), trusted keys (--jwt-jwks) or an OpenID "
        "provider (--auth-issuer)");
  }
  return made;
}

PermissionSet Authenticator::granted_to(const Caller& caller) const {
  PermissionSet granted = permissions_of(caller.roles);
  // Admins of a tenant give roles to the clients of their tenant as they like, so a role alone must
  // not open the server to them.
  bool operates = options_.mode == AuthMode::none ||
                  (!options_.operator_tenant.empty() && caller.tenant == options_.operator_tenant);
  return operates ? granted : granted.without(Permission::server_operate);
}

Result<Caller> Authenticator::caller(std::string_view authorization) {
  TRY(Admitted admitted, admit(authorization));
  return std::move(admitted.caller);
}

Result<Admitted> Authenticator::admit(std::string_view authorization) {
  if (options_.mode == AuthMode::none) return everybody_;
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size() ||
      !wire::same_name(authorization.substr(0, kScheme.size()), kScheme))
    return unauthorized();
  std::string_view token = authorization.substr(kScheme.size());
  Digest digest = sha256(token);
  Bytes name(view(digest));
  Time now = now_();
  {
    std::shared_lock lock(mutex_);
    auto known = verified_.find(name);
    if (known != verified_.end() && now <= known->second.until) return known->second;
  }
  Result<Identity> identity = verify(token);
  if (!identity) {
    log(Level::debug, "token refused", {{"why", identity.error().message}});
    return unauthorized();
  }
  Admitted admitted{identity->caller, granted_to(identity->caller),
                    identity->client, identity->generation,
                    identity->until,  tenants_.use(identity->caller.tenant)};
  std::unique_lock lock(mutex_);
  if (verified_.size() >= options_.remembered) {
    std::erase_if(verified_, [&](const auto& entry) { return entry.second.until < now; });
    if (verified_.size() >= options_.remembered) forget();
  }
  return verified_.insert_or_assign(std::move(name), std::move(admitted)).first->second;
}

Result<Authenticator::VerifyKey> Authenticator::key_for(const std::string& kid) const {
  auto refused = [](std::string why) {
    return fail(Code::unauthenticated, "UNAUTHORIZED", std::move(why));
  };
  if (auto pair = key_pair(kid)) {
    if (!pair->active) return refused("the key pair " + kid + " is not active");
    return VerifyKey{pair->key, options_.issuer, pair->tenant, true};
  }
  {
    std::shared_lock lock(mutex_);
    if (auto found = trusted_.find(kid); found != trusted_.end())
      return VerifyKey{found->second, options_.issuer};
    if (auto found = issuer_keys_.find(kid); found != issuer_keys_.end())
      return VerifyKey{found->second, options_.remote_issuer};
  }
  if (unknown_key_) unknown_key_();
  return refused("no key is known as " + kid);
}

Result<Identity> Authenticator::verify(std::string_view text) const {
  TRY(Token token, parse_token(text));
  TRY(VerifyKey by, key_for(token.kid));
  auto refused = [](std::string why) {
    return fail(Code::unauthenticated, "UNAUTHORIZED", std::move(why));
  };
  if (!by.key.verify(token.signed_part, token.signature)) return refused("the signature is wrong");
  TRY(Identity identity, read_claims(token.claims, {by.issuer, options_.audience}, now_()));
  if (!by.tenant.empty() && by.tenant != identity.caller.tenant)
    return refused("the key pair " + token.kid + " is another tenant's");
  if (by.ours) TRY_OK(check_client(token.claims, identity));
  return identity;
}

Result<void> Authenticator::check_client(const json::Value& claims, Identity& identity) const {
  // Tokens of an earlier version, and those that an operator has signed, have no generation.
  identity.generation = claims.string_or(kGenerationClaim);
  if (identity.generation.empty()) return {};
  const json::Value* actor = claims.find("act");
  identity.client = (actor ? *actor : claims).string_or("sub");
  if (has_client(identity.client, identity.generation)) return {};
  return fail(Code::unauthenticated, "UNAUTHORIZED",
              "the client " + identity.client + " was deleted or has a new secret");
}

bool Authenticator::has_client(std::string_view id, std::string_view generation) const {
  std::shared_lock lock(mutex_);
  auto found = clients_.find(id);
  return found != clients_.end() && found->second == generation;
}

void Authenticator::set_client(std::string id, std::string generation) {
  {
    std::unique_lock lock(mutex_);
    std::string& known = clients_[id];
    if (known == generation) return;
    known = std::move(generation);
    forget();
  }
  streams_.end_all(id);
}

void Authenticator::drop_client(std::string_view id) {
  {
    std::unique_lock lock(mutex_);
    if (auto found = clients_.find(id); found != clients_.end()) clients_.erase(found);
    forget();
  }
  streams_.end_all(id);
}

Result<std::string> Authenticator::issue(json::Value claims) {
  std::optional<KeyPair> pair = signing_pair(claims.string_or("caas_org_id"));
  if (!pair)
    return fail(
        Code::unsupported, "NO_SIGNING_KEY",
        "this server has no active signing key; start it with --jwt-key or issue a key pair");
  int64_t now = now_() / kSecond;
  claims.object().set("iss", options_.issuer);
  claims.object().set("iat", now);
  claims.object().set("exp", now + options_.expiry_seconds);
  if (!options_.audience.empty() && !claims.find("aud"))
    claims.object().set("aud", options_.audience);
  return sign_token(pair->key, pair->kid, claims);
}

std::string Authenticator::jwks() const {
  std::shared_lock lock(mutex_);
  json::Array keys;
  for (const KeyPair& pair : pairs_)
    if (pair.active) keys.push_back(pair.key.jwk(pair.kid));
  return json::print(json::object({{"keys", std::move(keys)}}));
}

size_t Authenticator::remembered() const {
  std::shared_lock lock(mutex_);
  return verified_.size();
}

void Authenticator::forget() { verified_.clear(); }

void Authenticator::put_key_pair(KeyPair pair) {
  CHECK(pair.key.is_private());
  std::unique_lock lock(mutex_);
  std::erase_if(pairs_, [&](const KeyPair& old) { return old.kid == pair.kid; });
  // The configured key counts as the oldest, whenever the server was started, so that an issued key
  // always signs before it.
  auto later = std::find_if(pairs_.begin(), pairs_.end(), [&](const KeyPair& old) {
    return pair.kid == configured_kid_ ||
           (old.kid != configured_kid_ && old.created > pair.created);
  });
  pairs_.insert(later, std::move(pair));
  forget();
}

std::optional<KeyPair> Authenticator::key_pair(std::string_view kid) const {
  std::shared_lock lock(mutex_);
  for (const KeyPair& pair : pairs_)
    if (pair.kid == kid) return pair;
  return std::nullopt;
}

std::optional<KeyPair> Authenticator::signing_pair(std::string_view tenant) const {
  std::shared_lock lock(mutex_);
  const KeyPair* best = nullptr;
  for (const KeyPair& pair : pairs_) {
    bool usable = pair.active && pair.signs && (pair.tenant.empty() || pair.tenant == tenant);
    if (usable && (!best || best->tenant.empty() || !pair.tenant.empty())) best = &pair;
  }
  return best ? std::optional(*best) : std::nullopt;
}

Result<json::Value> Authenticator::make_pair() const {
  if (seal_.empty())
    return fail(Code::unsupported, "NO_SIGNING_KEY",
                "key pairs are kept under the server's signing key; start it with --jwt-key");
  RsaKey key = RsaKey::generate();
  return json::object({{"kid", key.kid()}, {"pem", key.private_pem(seal_)}});
}

Result<void> Authenticator::use_pair(const json::Value& row) {
  std::string kid(row.string_or("kid"));
  const json::Value* active = row.find("active");
  bool on = active && active->is_bool() && active->boolean();
  if (auto known = key_pair(kid)) {
    known->active = on;
    put_key_pair(*std::move(known));
    return {};
  }
  if (!row.find("pem")) return {};  // the row of an earlier configured key
  auto key = RsaKey::from_pem(row.string_or("pem"), seal_);
  if (!key && !old_seal_.empty()) key = RsaKey::from_pem(row.string_or("pem"), old_seal_);
  if (!key || !key->is_private())
    return fail(Code::invalid, "BAD_KEY",
                "the key pair was sealed under another signing key; name that key with "
                "--jwt-old-key, or delete the pair and issue a new one");
  TRY(Time created, parse_rfc3339(row.string_or("createdAt")));
  put_key_pair({.kid = std::move(kid),
                .tenant = std::string(row.string_or("tenantId")),
                .created = created,
                .active = on,
                .key = *std::move(key)});
  return {};
}

Result<json::Value> Authenticator::read_foreign(
    std::string_view text,
    const std::function<Result<json::Value>(std::string_view kid)>& jwk_of) const {
  TRY(Token token, parse_token(text));
  TRY(json::Value jwk, jwk_of(token.kid));
  TRY(RsaKey key, RsaKey::from_jwk(jwk));
  if (!key.verify(token.signed_part, token.signature))
    return fail(Code::unauthenticated, "UNAUTHORIZED", "signature verification failed");
  TRY_OK(check_times(token.claims, now_()));
  return token.claims;
}

bool Authenticator::remove_key_pair(std::string_view kid) {
  std::unique_lock lock(mutex_);
  forget();
  return std::erase_if(pairs_, [&](const KeyPair& pair) { return pair.kid == kid; }) > 0;
}

void Authenticator::trust(std::string kid, RsaKey key) {
  std::unique_lock lock(mutex_);
  trusted_.insert_or_assign(std::move(kid), std::move(key));
  forget();
}

bool Authenticator::distrust(std::string_view kid) {
  std::unique_lock lock(mutex_);
  forget();
  auto found = trusted_.find(kid);
  if (found == trusted_.end()) return false;
  trusted_.erase(found);
  return true;
}

Result<void> Authenticator::trust_jwks(std::string_view document) {
  TRY(KeysByKid keys, read_jwks(document, JwksReading::refuse_bad_keys));
  for (auto& [kid, key] : keys)
    trust(kid, std::move(key));
  return {};
}

void Authenticator::set_issuer_keys(KeysByKid keys) {
  std::unique_lock lock(mutex_);
  issuer_keys_ = std::move(keys);
  forget();
}

Result<void> check_exposure(AuthMode mode, bool insecure, const std::vector<Address>& listeners) {
  if (mode != AuthMode::none || insecure) return {};
  for (const Address& address : listeners) {
    if (address.is_loopback()) continue;
    return fail(Code::invalid, "EXPOSED",
                address.text() +
                    " can be reached from other machines, and --auth none accepts every caller; "
                    "choose --auth jwt, listen on 127.0.0.1, or allow it with --insecure");
  }
  return {};
}

}  // namespace pawl::server
