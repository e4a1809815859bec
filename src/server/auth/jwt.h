#pragma once
// JSON Web Tokens signed with RS256. No other algorithm is accepted.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/caller.h"
#include "base/time.h"
#include "json/value.h"

struct evp_pkey_st;

namespace pawl::server {

// An RSA key: a pair, or the public half alone. Copies share the key, which never changes.
class RsaKey {
 public:
  // Reads PEM, or base64 of PEM. `password` opens an encrypted key.
  static Result<RsaKey> from_pem(std::string_view text, const std::string& password = {});
  static Result<RsaKey> from_jwk(const json::Value& jwk);
  static RsaKey generate(int bits = 2048);

  bool is_private() const { return private_; }
  // The first 16 bytes, in hex, of SHA-256 over the DER SubjectPublicKeyInfo.
  const std::string& kid() const { return kid_; }
  Bytes sign(BytesView message) const;  // needs the private half
  bool verify(BytesView message, BytesView signature) const;
  json::Value jwk(std::string_view kid) const;  // the public half
  std::string public_pem() const;
  // Needs the private half. With a password the text is encrypted (PKCS #8, AES-256).
  std::string private_pem(const std::string& password = {}) const;

 private:
  static Result<RsaKey> wrap(evp_pkey_st* key, bool is_private);
  std::shared_ptr<evp_pkey_st> key_;
  bool private_ = false;
  std::string kid_;
};

// The RSA keys for signatures of a JWKS document, by kid. Keys for other uses are always skipped.
enum class JwksReading { refuse_bad_keys, skip_bad_keys };
using KeysByKid = std::map<std::string, RsaKey, std::less<>>;
Result<KeysByKid> read_jwks(std::string_view document, JwksReading reading);

// A token split into its parts. Its signature and claims are not verified yet.
struct Token {
  std::string kid;
  json::Value claims;
  BytesView signed_part;  // a view into the text that was parsed
  Bytes signature;
};
Result<Token> parse_token(std::string_view text);
inline constexpr Time kLeeway = 30 * kSecond;
// Checks exp and iat, which must be present, and nbf if it is. Returns the time until which the
// token is valid, leeway included.
Result<Time> check_times(const json::Value& claims, Time now, Time leeway = kLeeway);

std::string sign_token(const RsaKey& key, std::string_view kid, const json::Value& claims);

// The generation of the secret of the machine client that got the token. The client is named by
// `sub` of the claim `act` if there is one, else by `sub`.
inline constexpr char kGenerationClaim[] = "cgen";

struct ClaimRules {
  std::string issuer;
  std::string audience;  // empty: any audience
  Time leeway = kLeeway;
};
struct Identity {
  Caller caller;
  Time until = 0;        // the token is valid until then, leeway included
  std::string client{};  // see Admitted
  std::string generation{};
};
// The caller that the claims of a verified token name.
Result<Identity> read_claims(const json::Value& claims, const ClaimRules& rules, Time now);

}  // namespace pawl::server
