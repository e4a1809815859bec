#pragma once
// Names and hashes of AIR: "shop/order.step@1" and "sha256:" with 64 lower-case hex digits.

#include <string>
#include <string_view>

#include "base/hash.h"

namespace pawl::worlds {

// ns/name@version: ^[a-z][a-z0-9._-]*/[A-Za-z][A-Za-z0-9._-]*@[1-9][0-9]*$
bool is_name(std::string_view text);
// The name of a module may go on after its version: demo/SafeUpgrade@2_wasm. Manifests of the
// original do so, and it runs them.
bool is_module_name(std::string_view text);
bool is_hash(std::string_view text);
inline bool is_system(std::string_view name) { return name.starts_with("sys/"); }

std::string hash_text(BytesView digest);  // "sha256:hex" of 32 bytes
inline std::string hash_text(const Digest& d) { return hash_text(view(d)); }
Result<Bytes> parse_hash(std::string_view text);  // the 32 bytes

// The arm of {"$tag": arm, ...} in the spelling of the schema: PatchBlobRef becomes
// patch_blob_ref.
std::string arm_of(std::string_view tag);

// The hash of a module that is not built yet.
// All digits zero. It is hashed like a real one, so a definition's hash changes when it is built.
extern const std::string kNoHash;

}  // namespace pawl::worlds
