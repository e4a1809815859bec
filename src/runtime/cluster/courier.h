#pragma once
// The courier carries the effects of one shard to other shards, and brings the receipts back. It is
// the outbox for To::shard. It keeps the open effects in memory only: a start rebuilds them.
//
// A delivery is repeated until the target has decided and the receipt has settled the effect: the
// target makes sure that it happens once (kernel/delivery.h). A target that cannot be reached is
// tried again for ever, first soon and then every few seconds, with one delivery at a time.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "kernel/access.h"
#include "kernel/delivery.h"
#include "runtime/background.h"
#include "runtime/cluster/link.h"

namespace pawl {

struct CourierOptions {
  uint32_t shard = 0;  // the source
  // Deliveries to one target that wait for its answer.
  size_t window = 256;
  // An answer that does not come in this time is taken for lost.
  Time patience = 30 * kSecond;
  // The first pause after a failure; it doubles up to the second.
  Time first_pause = 20 * kMillisecond, longest_pause = 2 * kSecond;
  // When nothing is open any more, the target is told so after this time.
  Time quiet = kSecond;
};

struct CourierStats {
  size_t open = 0;       // effects that are not settled
  size_t in_flight = 0;  // of these, sent and not answered
  size_t failing = 0;    // of these, failed at least once
  size_t parked = 0;     // of these, in quarantine: an operator must release them
  uint64_t delivered = 0, refused = 0, repeated = 0;
  std::string last_failure{};  // why a delivery failed last
};

class Courier final : public Outbox {
 public:
  // All must outlive the courier.
  Courier(KernelAccess& source, Link& link, Background& background, CourierOptions options);
  ~Courier() override;
  // Begins to deliver, once the shard has told all its open effects: either may come first.
  void start();
  // Sends nothing afterwards. Answers that come later are ignored.
  void stop();

  void opened(const EffectPtr& effect) override;
  void closed(const Effect& effect) override;
  void flushed() override;
  void restored() override;

  CourierStats stats() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // shared with answers that have not come yet
};

}  // namespace pawl
