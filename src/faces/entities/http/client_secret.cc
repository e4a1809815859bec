#include "faces/entities/http/client_secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/hash.h"

namespace pawl::entities {
namespace {

constexpr std::string_view kPrefix = "scrypt$";
// About 10 ms and 4 MiB for each try. A login is rare: a token lasts for an hour.
constexpr uint64_t kCost = 4096, kBlock = 8, kParallel = 1;
constexpr uint64_t kMaxMemory = 16u << 20;
constexpr size_t kHashBytes = 32;

Bytes scrypt(std::string_view secret, BytesView salt) {
  Bytes out(kHashBytes, '\0');
  const int made = EVP_PBE_scrypt(
      secret.data(), secret.size(), reinterpret_cast<const uint8_t*>(salt.data()), salt.size(),
      kCost, kBlock, kParallel, kMaxMemory, reinterpret_cast<uint8_t*>(out.data()), out.size());
  CHECK(made == 1);
  return out;
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string hash_client_secret(std::string_view secret, BytesView salt) {
  return std::string(kPrefix) + hex(salt) + "$" + hex(scrypt(secret, salt));
}

bool is_client_secret(std::string_view secret, std::string_view stored) {
  if (!stored.starts_with(kPrefix)) return same(hex(view(sha256(secret))), stored);
  const std::string_view rest = stored.substr(kPrefix.size());
  const size_t dollar = rest.find('$');
  if (dollar == std::string_view::npos) return false;
  auto salt = unhex(rest.substr(0, dollar));
  return salt && same(hex(scrypt(secret, *salt)), rest.substr(dollar + 1));
}

}  // namespace pawl::entities
