#pragma once
// Secrets rest sealed: AES-256-GCM under a key of 32 bytes. The binding's name is bound to the
// sealed bytes, so that they cannot be moved to another binding.

#include "base/bytes.h"

namespace pawl::worlds {

Result<Bytes> seal_secret(BytesView key, BytesView name, BytesView plain);
Result<Bytes> open_secret(BytesView key, BytesView name, BytesView sealed);

}  // namespace pawl::worlds
