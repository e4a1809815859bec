#pragma once
// The stored form of a client's secret. scrypt is slow and needs memory on purpose: whoever reads
// the store cannot try out secrets quickly. Each secret has its own salt.

#include <string>

#include "base/bytes.h"

namespace pawl::entities {

// "scrypt$SALT$HASH" in hex. `salt` is random.
std::string hash_client_secret(std::string_view secret, BytesView salt);
// Compares in constant time. Also knows the plain SHA-256 in hex that earlier versions stored.
bool is_client_secret(std::string_view secret, std::string_view stored);

}  // namespace pawl::entities
