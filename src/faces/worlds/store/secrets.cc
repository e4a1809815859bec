#include "faces/worlds/store/secrets.h"

#include <openssl/evp.h>

#include <memory>

#include "base/hash.h"

namespace pawl::worlds {
namespace {

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
// The sealed form is nonce, tag, text.
constexpr size_t kNonce = 12, kTag = 16;

// OpenSSL takes unsigned bytes.
unsigned char* raw(Bytes& b) { return reinterpret_cast<unsigned char*>(b.data()); }
const unsigned char* raw(BytesView b) { return reinterpret_cast<const unsigned char*>(b.data()); }

Result<void> check_key(BytesView key) {
  if (key.size() == 32) return {};
  return fail(Code::unavailable, "secret.resolver_missing",
              "stored secrets need a key of 32 bytes: set PAWL_WORLDS_SECRET_KEY, or bind the "
              "secret as env:NAME");
}

}  // namespace

Result<Bytes> seal_secret(BytesView key, BytesView name, BytesView plain) {
  TRY_OK(check_key(key));
  Bytes mixed(key);
  Writer w(mixed);
  w.str(name);
  w.str(plain);
  // A hash of key, name and text: sealing needs no random source, and no nonce is used for two
  // texts.
  Bytes nonce = Bytes(view(sha256(mixed))).substr(0, kNonce);
  Cipher c(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  Bytes text(plain.size(), '\0'), tag(kTag, '\0');
  int n = 0;
  const bool ok =
      c && EVP_EncryptInit_ex(c.get(), EVP_aes_256_gcm(), nullptr, raw(key), raw(nonce)) == 1 &&
      EVP_EncryptUpdate(c.get(), nullptr, &n, raw(name), static_cast<int>(name.size())) == 1 &&
      EVP_EncryptUpdate(c.get(), raw(text), &n, raw(plain), static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(c.get(), raw(text) + n, &n) == 1 &&
      EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_GET_TAG, kTag, raw(tag)) == 1;
  if (!ok) return fail(Code::internal, "secret.resolver_error", "the secret could not be sealed");
  return nonce + tag + text;
}

Result<Bytes> open_secret(BytesView key, BytesView name, BytesView sealed) {
  TRY_OK(check_key(key));
  auto bad = [&] {
    return fail(Code::corrupt, "secret.resolver_error",
                "secret '" + std::string(name) +
                    "' does not open: the server's secret key is not the one it was sealed with");
  };
  if (sealed.size() < kNonce + kTag) return bad();
  Bytes tag(sealed.substr(kNonce, kTag));
  const BytesView text = sealed.substr(kNonce + kTag);
  Cipher c(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  Bytes plain(text.size(), '\0');
  int n = 0;
  const bool ok =
      c &&
      EVP_DecryptInit_ex(c.get(), EVP_aes_256_gcm(), nullptr, raw(key),
                         raw(sealed.substr(0, kNonce))) == 1 &&
      EVP_DecryptUpdate(c.get(), nullptr, &n, raw(name), static_cast<int>(name.size())) == 1 &&
      EVP_DecryptUpdate(c.get(), raw(plain), &n, raw(text), static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_SET_TAG, kTag, raw(tag)) == 1 &&
      EVP_DecryptFinal_ex(c.get(), raw(plain) + n, &n) == 1;
  if (!ok) return bad();
  return plain;
}

}  // namespace pawl::worlds
