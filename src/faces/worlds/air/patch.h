#pragma once
// A patch document lists the changes from one manifest to the next. The compiled patch is the next
// manifest with the new nodes; its hash names what is shadowed, approved and applied.

#include <functional>

#include "faces/worlds/air/manifest.h"

namespace pawl::worlds {

struct Patch {
  Manifest manifest;
  std::vector<Node> nodes;
};
cbor::Value to_value(
    const Patch& patch);  // {manifest, [nodes]}: the form that is hashed and stored
std::string patch_hash(const Patch& patch);
Result<Patch> parse_patch(const json::Value& value);  // from the compiled form

// `base` is the manifest whose hash the document names. Definitions that the document removes or
// replaces are checked by their hash.
Result<Patch> compile_patch(const json::Value& document, const Manifest& base);

// A blob of the store by its digest.
using FindBlob = std::function<Result<Bytes>(BytesView digest)>;
// The bytes that one arm of sys/GovPatchInput@1 leads to. `document`: they are a patch document in
// JSON, not a compiled patch.
struct PatchInput {
  Bytes bytes;
  bool document = false;
};
Result<PatchInput> open_patch(const cbor::Value& input, const FindBlob& blob);

}  // namespace pawl::worlds
