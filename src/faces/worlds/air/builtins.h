#pragma once
// The built-in sys/* definitions, which every world has. A manifest may leave them out, or list
// them with exactly their hash.

#include <map>

#include "faces/worlds/air/node.h"

namespace pawl::worlds {

// JSON text of one node each, ended by a null pointer. They are compiled in, so a text that does
// not parse is a CHECK failure at start. A changed text changes a hash that stored manifests carry.
extern const char* const kBuiltinSchemas[];
extern const char* const kBuiltinDefs[];

struct Builtin {
  Node node;
  std::string node_hash;  // with $kind: what intents carry
  std::string ref_hash;   // without $kind: what a manifest refers to
};

// Parsed and hashed once at start, then read by every thread: it never changes afterwards.
class Builtins {
 public:
  Builtins();
  Builtins(const Builtins&) = delete;
  // Null when there is none. The pointer is valid as long as this object.
  const Builtin* find(std::string_view name) const;
  // The named types alone. Loaded manifests look names up here that they do not define themselves.
  const Schemas& schemas() const { return schemas_; }
  const std::map<std::string, Builtin, std::less<>>& all() const { return all_; }

 private:
  std::map<std::string, Builtin, std::less<>> all_;
  Schemas schemas_;
};

}  // namespace pawl::worlds
