#pragma once
// InternalEffects answers the effects that need nothing from outside (blobs, introspection,
// governance, workspaces) in the turn that asked for them, with a receipt like any other.

#include "faces/worlds/step/settlement.h"

namespace pawl::worlds {

class Governance;
class Shadow;

class InternalEffects {
 public:
  InternalEffects(WorldTurn& turn, Settlement& settlement, Governance& governance, Shadow& shadow)
      : turn_(turn), settlement_(settlement), governance_(governance), shadow_(shadow) {}

  Result<void> answer(const PendingIntent& intent);
  static bool answers(std::string_view effect);

 private:
  using Answer = Result<cbor::Value> (InternalEffects::*)(const cbor::Value& params);
  struct Row {
    std::string_view effect;
    Answer answer;
  };
  static const Row kRows[];
  Result<cbor::Value> run(std::string_view effect, const cbor::Value& params);
  std::optional<Bytes> recorded_refusal(BytesView intent) const;
  bool was_answered(BytesView intent) const;

  cbor::Value read_meta() const;
  Result<cbor::Value> blob_put(const cbor::Value& params);
  Result<cbor::Value> blob_get(const cbor::Value& params);
  Result<cbor::Value> introspect_head(const cbor::Value& params);
  Result<cbor::Value> introspect_manifest(const cbor::Value& params);
  Result<cbor::Value> introspect_state(const cbor::Value& params);
  Result<cbor::Value> introspect_cells(const cbor::Value& params);
  Result<cbor::Value> propose(const cbor::Value& params);
  Result<cbor::Value> shadow(const cbor::Value& params);
  Result<cbor::Value> approve(const cbor::Value& params);
  Result<cbor::Value> apply(const cbor::Value& params);
  Result<cbor::Value> workspace_resolve(const cbor::Value& params);
  Result<cbor::Value> workspace_root(const cbor::Value& params);

  WorldTurn& turn_;
  Settlement& settlement_;
  Governance& governance_;
  Shadow& shadow_;
};

// True when this class answers the effect, or a workspace tree does.
bool is_internal_effect(std::string_view effect);

}  // namespace pawl::worlds
