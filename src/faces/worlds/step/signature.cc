// Checks Ed25519 signatures with OpenSSL.

#include <openssl/evp.h>

#include "faces/worlds/step/settlement.h"

namespace pawl::worlds {

bool verify_ed25519(BytesView public_key, BytesView message, BytesView signature) {
  if (public_key.size() != 32 || signature.size() != 64) return false;
  auto bytes = [](BytesView v) { return reinterpret_cast<const unsigned char*>(v.data()); };
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes(public_key), public_key.size()),
      EVP_PKEY_free);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  return key && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(message),
                          message.size()) == 1;
}

}  // namespace pawl::worlds
