#pragma once
// What the manifest of a world says: its workflows, routes, effects and states, and the values that
// fit its schemas.

#include <memory>

#include "faces/worlds/air/manifest.h"
#include "sim/outside/lives.h"

namespace pawl::sim {

class WorldParts {
 public:
  // The manifest is that of a world that was built, so it loads.
  explicit WorldParts(const WorldSource& source);

  const worlds::LoadedManifest& manifest() const { return *loaded_; }
  // {manifest, nodes} for the simulated server. Executors of the outside carry out the requests
  // that a server would send itself, and nobody has to sign.
  const json::Value& document() const { return document_; }
  // Effects that executors carry out, in the order of their names.
  std::vector<std::string> asked_effects() const;

  // "pc=Done" for each member of the state that is a variant, and for the state itself.
  std::vector<std::string> labels(const std::string& workflow, const json::Value& state) const;
  // JSON Schemas, for sample().
  json::Value event_schema(const std::string& event) const;
  json::Value receipt_schema(const std::string& effect) const;

  static Part workflow(const std::string& name) { return {"workflow", name}; }
  static Part state(const std::string& workflow, const std::string& label);
  static Part effect(const std::string& workflow, const std::string& effect);
  static Part route(const std::string& event, const std::string& workflow);
  // Adds all parts that there are.
  void add(AllParts& parts) const;

 private:
  // A variant in a state: the state itself, whose name is empty, or one of its members.
  struct Variant {
    std::string member;
    std::vector<std::string> arms;
  };
  std::vector<Variant> variants_of(const worlds::Type& state) const;
  json::Value schema_of(const worlds::Type& type) const;
  json::Value named_schema(const std::string& name) const;

  worlds::Builtins builtins_;
  json::Value document_;
  std::vector<worlds::Node> nodes_;
  std::unique_ptr<worlds::LoadedManifest> loaded_;
};

// The names of the effects that executors carry out.
std::vector<std::string> asked_effects(const WorldSource& source);

// A variant without a value becomes its name, another one {"tag", "value"}, so that expressions
// read it easily.
json::Value plain_variants(const json::Value& value);

}  // namespace pawl::sim
