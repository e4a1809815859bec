#pragma once
// A loaded manifest holds every definition that a world uses, checked against each other, and the
// routes of its events. It is built once per manifest and never changes.

#include <functional>
#include <map>
#include <set>

#include "faces/worlds/air/builtins.h"

namespace pawl::worlds {

struct Module {
  ModuleDef def;
  std::string hash;
};
struct Workflow {
  WorkflowDef def;
  std::string hash;                // node hash
  const Module* module = nullptr;  // of the same manifest
  TypePtr state, event, key;       // key is null when unkeyed
  std::set<std::string, std::less<>> may_emit;
  std::map<std::string, std::string> arms{};  // schema -> arm of the event variant
};
struct DeclaredEffect {
  EffectDef def;
  std::string hash;
};

// One route of an event to a workflow.
struct Binding {
  const Workflow* workflow;
  std::string arm;                      // wrapped as this arm; empty: delivered as it is
  std::string subscribed;               // the schema that the subscription names
  std::vector<std::string> key_path{};  // empty: unkeyed
};

// Workflows point into `modules`, and bindings into `workflows`. Moving the object keeps these
// addresses, because maps keep their nodes. A copy would point into the original: share it instead.
struct LoadedManifest {
  Manifest manifest;
  std::string hash;
  std::vector<Node> nodes;  // without sys/*
  Schemas schemas;
  std::map<std::string, Workflow, std::less<>> workflows;
  std::map<std::string, Module, std::less<>> modules;
  std::map<std::string, DeclaredEffect, std::less<>> effects;
  std::map<std::string, SecretDef, std::less<>> secrets;
  // Event schema -> its routes. Events are delivered in this order, which is that of the
  // subscriptions.
  std::map<std::string, std::vector<Binding>, std::less<>> routes;

  // `builtins` must outlive it.
  explicit LoadedManifest(const Builtins& builtins) : schemas(&builtins.schemas()) {}
  // Null when there is none. The built-in sys/* definitions are found as well.
  const Workflow* workflow(std::string_view name) const;
  const Module* module(std::string_view name) const;
  const DeclaredEffect* effect(std::string_view name) const;
};

// Finds a node by its hash, in a document or in the content-addressed store.
using FindNode = std::function<Result<Node>(const std::string& hash)>;

struct LoadOptions {
  // False: a manifest that lists secrets is refused with secret.resolver_missing.
  bool secrets_can_be_resolved = true;
};
// Errors: manifest.error when a definition cannot be loaded, manifest.validation when definitions
// contradict each other, secret.resolver_missing.
Result<LoadedManifest> load(Manifest manifest, const FindNode& find, const Builtins& builtins,
                            const LoadOptions& options = {});

// The authoring form is a list of nodes with one manifest among them. Hashes may be left out.
struct Authored {
  Manifest manifest;
  std::vector<Node> nodes;
};
struct AuthorOptions {
  // Module name -> hash of its bytes, for modules without an artifact hash.
  std::map<std::string, std::string> artifacts{};
  // Adds every schema that a listed definition refers to, as the author tool does.
  bool close_over_schemas = false;
};
Result<Authored> author(const json::Value& nodes, const Builtins& builtins,
                        const AuthorOptions& options = {});
// Fills in the hashes that references lack, from `nodes` and the built-in definitions. A name that
// is in neither stays without a hash.
void fill_hashes(Manifest& manifest, const std::vector<Node>& nodes, const Builtins& builtins);
// False for the hash of a reference that its author left out.
inline bool is_given_hash(const std::string& hash) { return !hash.empty() && hash != kNoHash; }
// Looks nodes up by their hash in `nodes`, which must outlive the result: it holds pointers.
FindNode finder(const std::vector<Node>& nodes);

// A path such as "order_id" or "$value.note_id" in parts; empty parts are skipped.
std::vector<std::string> key_path(std::string_view path);

}  // namespace pawl::worlds
