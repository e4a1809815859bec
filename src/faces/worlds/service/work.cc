// Open work for executors. A lease is a promise in memory: when it ends, or after a restart, the
// work is offered again.

#include <algorithm>

#include "faces/worlds/service/service.h"

namespace pawl::worlds {
namespace {

// Larger requests are cut to these without an error.
constexpr uint64_t kMaxPolled = 1000;
constexpr uint64_t kMaxLeaseMs = 3'600'000;
constexpr uint64_t kMaxWaitMs = 60'000;

}  // namespace

// Secrets are put in for this answer only. When one cannot be resolved, the work goes out with the
// error in place of its params, so that the executor can settle it as failed.
OpenWork Service::open_work(const Leased& leased, WorldId world_id, PendingIntent intent) const {
  auto params = cbor::decode(intent.params);
  auto manifest = loaded(world_id);
  auto filled =
      params && manifest && *manifest
          ? inject_secrets(world_id, **manifest, *params)
          : Result<cbor::Value>(fail(Code::corrupt, "store.error", "the params are damaged"));
  return {std::move(world_id.world), std::move(intent), leased.until, std::move(filled)};
}

Result<uint64_t> Service::poll(const Caller& caller, WorkRequest request,
                               std::move_only_function<void(std::vector<OpenWork>)> done) {
  if (request.effects.empty())
    return fail(Code::invalid, "invalid_request",
                "poll wants {\"effects\": [names], \"limit\": n, \"lease_ms\": n, \"wait_ms\": n}");
  Poll poll;
  poll.program = kProgram;
  poll.tenant = caller.tenant;
  poll.worker = request.worker.empty() ? caller.user : std::move(request.worker);
  poll.queues = std::move(request.effects);
  poll.limit = std::clamp<uint64_t>(request.limit, 1, kMaxPolled);
  poll.lease = static_cast<Time>(std::min(request.lease_ms, kMaxLeaseMs)) * kMillisecond;
  poll.wait = static_cast<Time>(std::min(request.wait_ms, kMaxWaitMs)) * kMillisecond;
  return work_.poll(
      std::move(poll), [this, done = std::move(done)](std::vector<Leased> found) mutable {
        std::vector<OpenWork> out;
        for (const Leased& leased : found) {
          auto name = parse_effect_id(leased.effect->id);
          auto intent = decode_pending(leased.effect->body);
          // Effects of this queue that are not open intents are left out.
          if (name && intent)
            out.push_back(open_work(leased, std::move(name->world_id), std::move(*intent)));
        }
        done(std::move(out));
      });
}

void Service::release(const WorldId& world_id, BytesView intent) {
  work_.release(effect_id(world_id, hex(intent)));
}

}  // namespace pawl::worlds
