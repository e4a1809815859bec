#pragma once
// JSON Web Tokens as far as we trust them: RS256 and nothing else.

#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/caller.h"
#include "base/time.h"
#include "json/value.h"

struct evp_pkey_st;

namespace pawl::server {

// An RSA key, whole or its public half. A value: copies share the key, which never changes.
class RsaKey {
 public:
  // PEM, or base64 of PEM; `password` for one that is encrypted.
  static Result<RsaKey> from_pem(std::string_view text, const std::string& password = {});
  static Result<RsaKey> from_jwk(const json::Value& jwk);
  static RsaKey generate(int bits = 2048);

  bool is_private() const { return private_; }
  // The first 16 bytes, in hex, of SHA-256 over the DER SubjectPublicKeyInfo.
  const std::string& kid() const { return kid_; }
  Bytes sign(BytesView message) const;  // wants the private half
  bool verify(BytesView message, BytesView signature) const;
  json::Value jwk(std::string_view kid) const;  // the public half
  std::string public_pem() const;
  // Wants the private half; with a password it is encrypted (PKCS #8, AES-256).
  std::string private_pem(const std::string& password = {}) const;

 private:
  static Result<RsaKey> wrap(evp_pkey_st* key, bool is_private);
  std::shared_ptr<evp_pkey_st> key_;
  bool private_ = false;
  std::string kid_;
};

// A token taken apart; nothing in it is believed yet.
struct Token {
  std::string kid;
  json::Value claims;
  BytesView signed_part;  // of the text it was parsed from
  Bytes signature;
};
Result<Token> parse_token(std::string_view text);
inline constexpr Time kLeeway = 30 * kSecond;
// exp and iat are there and hold, and nbf where it is given. Until when the token is good, leeway
// included.
Result<Time> check_times(const json::Value& claims, Time now, Time leeway = kLeeway);

std::string sign_token(const RsaKey& key, std::string_view kid, const json::Value& claims);

struct ClaimRules {
  std::string issuer;
  std::string audience;  // empty: not looked at
  Time leeway = kLeeway;
};
struct Identity {
  Caller caller;
  Time until = 0;  // the token is good until then, leeway included
};
// What the claims of a token with a good signature say about the caller.
Result<Identity> read_claims(const json::Value& claims, const ClaimRules& rules, Time now);

}  // namespace pawl::server
