// RS256 with OpenSSL.

#include "server/auth/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "base/hash.h"
#include "base/limits.h"
#include "json/text.h"

namespace pawl::server {
namespace {

// Shorter RSA keys are not secure.
constexpr int kMinBits = 2048;

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* p) const { Free(p); }
};
template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Freed<T, Free>>;
using OwnedBio = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;
using OwnedDigest = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;
using OwnedNumber = Owned<BIGNUM, BN_free>;

OwnedBio bio_of(std::string_view text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Bytes number_bytes(const EVP_PKEY* key, const char* name) {
  BIGNUM* raw = nullptr;
  CHECK(EVP_PKEY_get_bn_param(key, name, &raw) == 1);
  OwnedNumber number(raw);
  Bytes out(static_cast<size_t>(BN_num_bytes(raw)), '\0');
  BN_bn2bin(raw, reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

Bytes public_der(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  int size = i2d_PUBKEY(key, &der);
  CHECK(size > 0);
  Bytes out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

std::unexpected<Error> refused(std::string why) {
  return fail(Code::unauthenticated, "UNAUTHORIZED", std::move(why));
}

Result<Time> seconds_claim(const json::Value& claims, std::string_view name) {
  const json::Value* claim = claims.find(name);
  if (!claim || !claim->is_number())
    return refused("the claim " + std::string(name) + " is missing");
  double seconds = claim->as_double();
  if (!(seconds >= 0 && seconds < 9e9))
    return refused("the claim " + std::string(name) + " is out of range");
  return static_cast<Time>(seconds * 1000) * kMillisecond;
}

bool has_audience(const json::Value& claims, std::string_view audience) {
  const json::Value* aud = claims.find("aud");
  if (!aud) return false;
  if (aud->is_string()) return aud->string() == audience;
  if (!aud->is_array()) return false;
  for (const json::Value& item : aud->array()) {
    if (item.is_string() && item.string() == audience) return true;
  }
  return false;
}

std::string joined_roles(const json::Value& claims) {
  const json::Value* roles = claims.find("user_roles");
  if (!roles || !roles->is_array()) roles = claims.find("scopes");
  std::string out;
  if (!roles || !roles->is_array()) return out;
  for (const json::Value& role : roles->array()) {
    // Roles are joined with commas, so a comma inside one would add a second role.
    if (!role.is_string() || role.string().empty() || role.string().find(',') != std::string::npos)
      continue;
    if (!out.empty()) out += ',';
    out += role.string();
  }
  return out;
}

}  // namespace

Result<RsaKey> RsaKey::wrap(evp_pkey_st* key, bool is_private) {
  RsaKey out;
  out.key_ = std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free);
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA)
    return fail(Code::invalid, "BAD_KEY", "the key is not RSA; RS256 needs an RSA key");
  if (EVP_PKEY_get_bits(key) < kMinBits) {
    return fail(
        Code::invalid, "BAD_KEY",
        "the RSA key has fewer than " + std::to_string(kMinBits) + " bits; make a longer one");
  }
  out.private_ = is_private;
  Digest digest = sha256(public_der(key));
  out.kid_ = hex(view(digest).substr(0, 16));
  return out;
}

Result<RsaKey> RsaKey::from_pem(std::string_view text, const std::string& password) {
  std::string decoded;
  if (text.find("-----BEGIN") == std::string_view::npos) {
    std::string compact;
    for (char c : text) {
      if (c != '\n' && c != '\r' && c != ' ') compact.push_back(c);
    }
    auto bytes = unbase64(compact);
    if (!bytes) return fail(Code::invalid, "BAD_KEY", "the key is neither PEM nor base64 of PEM");
    decoded = *std::move(bytes);
    text = decoded;
  }
  OwnedBio bio = bio_of(text);
  // OpenSSL asks for a password at the terminal unless it gets a text, which may be empty.
  if (EVP_PKEY* key =
          PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, const_cast<char*>(password.c_str())))
    return wrap(key, true);
  bio = bio_of(text);
  if (EVP_PKEY* key = PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr))
    return wrap(key, false);
  return fail(Code::invalid, "BAD_KEY", "the PEM text holds no RSA key that can be read");
}

Result<RsaKey> RsaKey::from_jwk(const json::Value& jwk) {
  auto n = unbase64(jwk.string_or("n"));
  auto e = unbase64(jwk.string_or("e"));
  if (jwk.string_or("kty") != "RSA" || !n || !e || n->empty() || e->empty() || n->size() > 2048 ||
      e->size() > 8) {
    return fail(Code::invalid, "BAD_KEY", "a JSON Web Key must have kty RSA, n and e");
  }
  auto number = [](const Bytes& bytes) {
    return OwnedNumber(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                                 static_cast<int>(bytes.size()), nullptr));
  };
  OwnedNumber modulus = number(*n), exponent = number(*e);
  Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  Owned<OSSL_PARAM, OSSL_PARAM_free> params(OSSL_PARAM_BLD_to_param(builder.get()));
  Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* key = nullptr;
  bool made = EVP_PKEY_fromdata_init(context.get()) == 1 &&
              EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) == 1;
  if (!made) return fail(Code::invalid, "BAD_KEY", "n and e are not an RSA key");
  return wrap(key, false);
}

RsaKey RsaKey::generate(int bits) {
  EVP_PKEY* key = EVP_RSA_gen(static_cast<unsigned>(bits));
  CHECK(key != nullptr);
  auto made = wrap(key, true);
  CHECK(made);
  return *made;
}

Bytes RsaKey::sign(BytesView message) const {
  CHECK(private_);
  OwnedDigest digest(EVP_MD_CTX_new());
  size_t size = 0;
  auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  CHECK(EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1);
  CHECK(EVP_DigestSign(digest.get(), nullptr, &size, bytes, message.size()) == 1);
  Bytes signature(size, '\0');
  CHECK(EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       bytes, message.size()) == 1);
  signature.resize(size);
  return signature;
}

bool RsaKey::verify(BytesView message, BytesView signature) const {
  OwnedDigest digest(EVP_MD_CTX_new());
  if (EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key_.get()) != 1)
    return false;
  return EVP_DigestVerify(digest.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                          message.size()) == 1;
}

json::Value RsaKey::jwk(std::string_view kid) const {
  return json::object({{"kty", "RSA"},
                       {"kid", kid},
                       {"use", "sig"},
                       {"alg", "RS256"},
                       {"n", base64url(number_bytes(key_.get(), OSSL_PKEY_PARAM_RSA_N))},
                       {"e", base64url(number_bytes(key_.get(), OSSL_PKEY_PARAM_RSA_E))}});
}

std::string RsaKey::public_pem() const {
  OwnedBio bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PUBKEY(bio.get(), key_.get()) == 1);
  return text_of(bio.get());
}

std::string RsaKey::private_pem(const std::string& password) const {
  CHECK(private_);
  OwnedBio bio(BIO_new(BIO_s_mem()));
  const EVP_CIPHER* cipher = password.empty() ? nullptr : EVP_aes_256_cbc();
  CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), cipher,
                                      password.empty() ? nullptr : password.data(),
                                      static_cast<int>(password.size()), nullptr, nullptr) == 1);
  return text_of(bio.get());
}

Result<KeysByKid> read_jwks(std::string_view document, JwksReading reading) {
  TRY(json::Value value, json::parse(document));
  const json::Value* keys = value.find("keys");
  if (!keys || !keys->is_array())
    return fail(Code::invalid, "BAD_JWKS", "a JWKS document is {\"keys\": [...]}");
  KeysByKid out;
  for (const json::Value& jwk : keys->array()) {
    std::string_view use = jwk.string_or("use", "sig");
    if (jwk.string_or("kty") != "RSA" || use != "sig") continue;
    Result<RsaKey> key = RsaKey::from_jwk(jwk);
    if (!key && reading == JwksReading::skip_bad_keys) continue;
    if (!key) return fail(std::move(key.error()));
    std::string kid(jwk.string_or("kid", key->kid()));
    out.insert_or_assign(std::move(kid), *std::move(key));
  }
  return out;
}

Result<Token> parse_token(std::string_view text) {
  if (text.size() > limits::kTokenBytes) return refused("the token is too long");
  size_t first = text.find('.');
  size_t second = first == std::string_view::npos ? first : text.find('.', first + 1);
  if (second == std::string_view::npos || text.find('.', second + 1) != std::string_view::npos)
    return refused("a token has three parts");
  auto head_text = unbase64(text.substr(0, first));
  auto claims_text = unbase64(text.substr(first + 1, second - first - 1));
  auto signature = unbase64(text.substr(second + 1));
  if (!head_text || !claims_text || !signature) return refused("the token is not base64");
  auto head = json::parse(*head_text);
  auto claims = json::parse(*claims_text);
  if (!head || !claims || !head->is_object() || !claims->is_object())
    return refused("the token is not JSON");
  if (head->string_or("alg") != "RS256") return refused("the token's algorithm is not RS256");
  if (head->find("crit")) return refused("the token has critical extensions");
  if (head->string_or("kid").empty()) return refused("the token names no key");
  return Token{std::string(head->string_or("kid")), *std::move(claims), text.substr(0, second),
               *std::move(signature)};
}

std::string sign_token(const RsaKey& key, std::string_view kid, const json::Value& claims) {
  std::string head = json::print(json::object({{"alg", "RS256"}, {"kid", kid}, {"typ", "JWT"}}));
  std::string text = base64url(head) + "." + base64url(json::print(claims));
  return text + "." + base64url(key.sign(text));
}

Result<Time> check_times(const json::Value& claims, Time now, Time leeway) {
  TRY(Time expires, seconds_claim(claims, "exp"));
  TRY(Time issued, seconds_claim(claims, "iat"));
  if (now > expires + leeway) return refused("the token has expired");
  if (issued > now + leeway) return refused("the token was issued in the future");
  if (claims.find("nbf")) {
    TRY(Time not_before, seconds_claim(claims, "nbf"));
    if (not_before > now + leeway) return refused("the token is not valid yet");
  }
  return expires + leeway;
}

Result<Identity> read_claims(const json::Value& claims, const ClaimRules& rules, Time now) {
  if (claims.string_or("iss") != rules.issuer) return refused("the issuer is not " + rules.issuer);
  TRY(Time until, check_times(claims, now, rules.leeway));
  if (!rules.audience.empty() && !has_audience(claims, rules.audience))
    return refused("the audience is not " + rules.audience);
  Identity identity;
  identity.until = until;
  identity.caller.tenant = claims.string_or("caas_org_id");
  identity.caller.user = claims.string_or("caas_user_id", claims.string_or("sub"));
  identity.caller.roles = joined_roles(claims);
  if (identity.caller.tenant.empty()) return refused("the token names no tenant (caas_org_id)");
  if (identity.caller.user.empty()) return refused("the token names no user (caas_user_id or sub)");
  return identity;
}

}  // namespace pawl::server
