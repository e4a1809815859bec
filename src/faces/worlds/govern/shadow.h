#pragma once
// A shadow run shows what a proposal would do: the patched manifest over the live cells, with seed
// events and stub receipts. It happens inside the turn and is taken back at its end; only its
// report stays.

#include "faces/worlds/govern/governance.h"
#include "faces/worlds/step/ingress.h"

namespace pawl::worlds {

struct ShadowOptions {
  std::vector<Event> seeds{};  // events to try; values are any CBOR of their schema
};

class Shadow {
 public:
  Shadow(WorldTurn& turn, Governance& governance, Ingress& ingress, Stepper& stepper)
      : turn_(turn), governance_(governance), ingress_(ingress), stepper_(stepper) {}

  // Returns the report as canonical CBOR.
  // Refused while deliveries wait, and inside another shadow run.
  Result<Bytes> run(uint64_t proposal, const ShadowOptions& options);

 private:
  class Report;  // a CBOR map of bounded lists

  std::optional<Bytes> recorded_report(uint64_t proposal) const;
  Result<Bytes> run_aside(const Proposal& proposal, LoadedManifest next,
                          const ShadowOptions& options);
  Result<void> try_out(LoadedManifest next, const ShadowOptions& options, Report& report);
  Result<void> send_seeds(const std::vector<Event>& seeds, Report& report);
  Result<void> answer_with_stubs();
  Result<void> list_waiting(Report& report);
  void list_predicted(Report& report);
  Result<void> list_deltas(const ShadowLog& log, Report& report);

  WorldTurn& turn_;
  Governance& governance_;
  Ingress& ingress_;
  Stepper& stepper_;
};

}  // namespace pawl::worlds
