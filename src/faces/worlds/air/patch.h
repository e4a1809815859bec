#pragma once
// A patch document says how to come from one manifest to the next; compiled, it is the next
// manifest and the nodes that are new. Its hash is what is shadowed, approved and applied.

#include <functional>

#include "faces/worlds/air/manifest.h"

namespace pawl::worlds {

struct Patch {
  Manifest manifest;
  std::vector<Node> nodes;
};
cbor::Value to_value(const Patch& patch);  // {manifest, [nodes]}: what is hashed and stored
std::string patch_hash(const Patch& patch);
Result<Patch> parse_patch(const json::Value& value);  // the compiled form again

// `base` is the manifest whose hash the document names; definitions it removes or replaces are
// checked by their hash.
Result<Patch> compile_patch(const json::Value& document, const Manifest& base);

// A blob of the store by its digest.
using FindBlob = std::function<Result<Bytes>(BytesView digest)>;
// One arm of sys/GovPatchInput@1: the bytes it leads to, and whether they are a patch document in
// JSON.
struct PatchInput {
  Bytes bytes;
  bool document = false;
};
Result<PatchInput> open_patch(const cbor::Value& input, const FindBlob& blob);

}  // namespace pawl::worlds
