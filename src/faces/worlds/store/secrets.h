#pragma once
// Secrets rest sealed: AES-256-GCM under a key of 32 bytes. The binding's name is bound to the
// sealed bytes, so that they cannot be moved to another binding.

#include "base/bytes.h"

namespace pawl::worlds {

// Equal inputs give equal bytes. Errors: unavailable secret.resolver_missing without a key of 32
// bytes; corrupt secret.resolver_error when the sealed bytes do not open with this key and name.
Result<Bytes> seal_secret(BytesView key, BytesView name, BytesView plain);
Result<Bytes> open_secret(BytesView key, BytesView name, BytesView sealed);

}  // namespace pawl::worlds
