#pragma once
// A patch document says how to come from one manifest to the next; compiled, it is the next manifest
// and the nodes that are new. Its hash is what is shadowed, approved and applied.

#include "faces/worlds/air/manifest.h"

namespace pawl::worlds {

struct Patch {
  Manifest manifest;
  std::vector<Node> nodes;
};
cbor::Value to_value(const Patch& patch);   // {manifest, [nodes]}: what is hashed and stored
std::string patch_hash(const Patch& patch);
Result<Patch> parse_patch(const json::Value& value);  // the compiled form again

// `base` is the manifest whose hash the document names; definitions it removes or replaces are checked
// by their hash.
Result<Patch> compile_patch(const json::Value& document, const Manifest& base);

}  // namespace pawl::worlds
