#pragma once
// Governance changes the rules of a world: propose, shadow, approve or reject, apply. Each step is
// a record. A proposal is not applied while work is in flight.

#include "faces/worlds/govern/migration.h"

namespace pawl::worlds {

// The reasons that block an apply.
// Counts of the head, and deliveries that are not worked off yet. `timers` is shown to the caller
// only: an armed timer is an open intent and counts in `inflight`.
struct Quiescence {
  uint64_t non_terminal = 0, waiting = 0, inflight = 0, queued = 0, timers = 0;
  bool strict_ok() const { return non_terminal == 0 && inflight == 0 && queued == 0; }
  bool relaxed_ok() const { return waiting == 0 && inflight == 0 && queued == 0; }
};

class Governance {
 public:
  explicit Governance(WorldTurn& turn) : turn_(turn) {}

  // Against the active manifest.
  Result<Patch> compile(const json::Value& document) const;
  // The whole next manifest is loaded and checked here, so that no broken proposal is recorded.
  Result<Proposal> propose(const Patch& patch, std::optional<std::string> description);
  // From shadowed or approved. Each call here fails with governance.proposal_missing for an unknown
  // id and with governance.proposal_state or governance.proposal_applied from another state.
  Result<Proposal> decide(uint64_t id, std::string approver, bool approve);
  // `strict`: no instance may be running or waiting. Otherwise instances may be running.
  Result<Proposal> apply(uint64_t id, bool strict);
  Quiescence quiescence() const;

  Result<Proposal> proposal(uint64_t id) const;
  // governance.shadow_mismatch when the stored bytes are not those that were proposed.
  Result<Patch> stored_patch(const Proposal& proposal) const;
  // Call it before record(): it notes the height that this record will get.
  void save(Proposal& proposal);

 private:
  Result<void> refuse_unless_quiescent(bool strict) const;

  WorldTurn& turn_;
};

// A proposal that is not in the state that the next step expects.
std::unexpected<Error> wrong_state(const Proposal& proposal, std::string_view expected);

// The outcomes of governance, as the receipts of its effects say them.
cbor::Value proposed_receipt(const Proposal& proposal, const std::string& base);
cbor::Value shadowed_receipt(uint64_t proposal, const cbor::Value& report);
cbor::Value decided_receipt(const Proposal& proposal, bool approve, cbor::Value reason);
cbor::Value applied_receipt(const Proposal& proposal);

}  // namespace pawl::worlds
