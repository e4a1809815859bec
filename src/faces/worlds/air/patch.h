#pragma once
// A patch document lists the changes from one manifest to the next. The compiled patch is the next
// manifest with the new nodes; its hash names what is shadowed, approved and applied.

#include <functional>

#include "faces/worlds/air/manifest.h"

namespace pawl::worlds {

// `nodes` are the definitions that the store may not have yet; the manifest refers to them by hash.
struct Patch {
  Manifest manifest;
  std::vector<Node> nodes;
};
cbor::Value to_value(
    const Patch& patch);  // {manifest, [nodes]}: the form that is hashed and stored
std::string patch_hash(const Patch& patch);
Result<Patch> parse_patch(const json::Value& value);  // from the compiled form
// Fills in the hashes that the author left out: of the nodes of the patch, else of the definition
// of that name in `base`. Error: validation_failed, for a name that neither has.
Result<Patch> complete_patch(Patch patch, const Manifest& base, const Builtins& builtins);

// `base` is the manifest whose hash the document names. Definitions that the document removes or
// replaces are checked by their hash.
// Error: validation_failed. The result is not checked as a whole manifest: load() does that.
Result<Patch> compile_patch(const json::Value& document, const Manifest& base);

// A patch document, or {manifest, nodes} with or without hashes, as a compiled patch.
Result<Patch> read_patch(const json::Value& value, const Manifest& base, const Builtins& builtins);

// A blob of the store by its digest.
using FindBlob = std::function<Result<Bytes>(BytesView digest)>;
// The bytes that one arm of sys/GovPatchInput@1 leads to. `document`: they are a patch document in
// JSON, not a compiled patch.
struct PatchInput {
  Bytes bytes;
  bool document = false;
};
// Errors: effect.manager when the arm has no value, invalid_request for a bad hash, and those of
// `blob`.
Result<PatchInput> open_patch(const cbor::Value& input, const FindBlob& blob);

}  // namespace pawl::worlds
