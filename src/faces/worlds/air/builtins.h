#pragma once
// The built-in sys/* definitions, which every world has. A manifest may leave them out, or list
// them with exactly their hash.

#include <map>

#include "faces/worlds/air/node.h"

namespace pawl::worlds {

// Each ends with a null pointer.
extern const char* const kBuiltinSchemas[];
extern const char* const kBuiltinDefs[];

struct Builtin {
  Node node;
  std::string node_hash;  // with $kind: what intents carry
  std::string ref_hash;   // without $kind: what a manifest refers to
};

class Builtins {
 public:
  Builtins();
  Builtins(const Builtins&) = delete;
  const Builtin* find(std::string_view name) const;
  const Schemas& schemas() const { return schemas_; }
  const std::map<std::string, Builtin, std::less<>>& all() const { return all_; }

 private:
  std::map<std::string, Builtin, std::less<>> all_;
  Schemas schemas_;
};

}  // namespace pawl::worlds
