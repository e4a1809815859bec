#pragma once
// The limits of one tenant, and of one client address whose callers have no valid token. Each limit
// has a row in one table: its name in refusals and metrics, and its setting. A refusal says which
// limit was reached, how large it is, and which setting changes it.
//
// The limits of the queue and of open turns are the shard's (runtime/shard.h), the limit of jobs is
// that of runtime/workers.h, and the share of memory is that of base/memory_budget.h.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/memory_budget.h"
#include "base/result.h"
#include "base/time.h"

namespace pawl::server {

enum class Limit : uint8_t {
  connections,
  streams,
  jobs,
  requests,
  bytes,
  memory,
  address_connections,
  address_requests,
};
inline constexpr size_t kLimits = static_cast<size_t>(Limit::address_requests) + 1;

struct LimitRow {
  Limit limit;
  std::string_view code;     // "TENANT_CONNECTIONS"
  std::string_view setting;  // "--tenant-max-connections"; empty: it has none
  std::string_view subject;  // "open connections of one tenant"
  std::string_view remedy;
};
const LimitRow& limit_row(Limit limit);
std::span<const LimitRow> limit_rows();
// The refusal, with Code::exhausted. `max` is the limit's value; 0: it has none.
Error limit_error(Limit limit, size_t max);

// 0 means no limit, for every field.
struct TenantLimits {
  size_t connections = 0;
  size_t streams = 0;
  size_t requests_per_second = 0;
  size_t bytes = 0;  // durable bytes, approximately
  size_t address_connections = 0;
  size_t address_requests_per_second = 0;
};

// A bucket of tokens that is filled at a steady rate: the time until which tokens are spent.
// Thread-safe.
class RateBucket {
 public:
  // Takes one token, unless more than `burst` are spent in advance.
  bool take(Time now, size_t per_second, size_t burst);
  bool full(Time now) const { return spent_until_.load(std::memory_order_relaxed) <= now; }

 private:
  std::atomic<Time> spent_until_{0};
};

// What one tenant uses now. Shared by the token cache, the connections and the streams of the
// tenant. Thread-safe.
class TenantUse {
 public:
  TenantUse(std::string tenant, const TenantLimits& limits, MemoryBudget* memory)
      : tenant(std::move(tenant)),
        account(memory ? std::make_shared<MemoryAccount>(*memory) : nullptr),
        limits_(limits) {}
  const std::string tenant;
  const std::shared_ptr<MemoryAccount> account;  // null without a budget

  // Each take has one drop. A take that does not fit changes nothing and returns false.
  bool take_connection() { return take(connections_, limits_.connections); }
  void drop_connection() { connections_.fetch_sub(1, std::memory_order_relaxed); }
  bool take_stream() { return take(streams_, limits_.streams); }
  void drop_stream() { streams_.fetch_sub(1, std::memory_order_relaxed); }
  bool take_request();

  // The durable bytes of the tenant, as they were last measured.
  void set_stored(size_t bytes) { stored_.store(bytes, std::memory_order_relaxed); }
  bool stores_too_much() const {
    return limits_.bytes && stored_.load(std::memory_order_relaxed) > limits_.bytes;
  }
  size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  size_t streams() const { return streams_.load(std::memory_order_relaxed); }

 private:
  static bool take(std::atomic<size_t>& count, size_t max);
  const TenantLimits& limits_;
  std::atomic<size_t> connections_{0}, streams_{0}, stored_{0};
  RateBucket requests_;
};
using TenantPtr = std::shared_ptr<TenantUse>;

// One open stream of a tenant, until it is released or destroyed.
class StreamSeat {
 public:
  explicit StreamSeat(TenantPtr taken_by) : tenant_(std::move(taken_by)) {}
  ~StreamSeat() { release(); }
  StreamSeat(const StreamSeat&) = delete;
  StreamSeat& operator=(const StreamSeat&) = delete;
  void release() {
    if (!released_.exchange(true)) tenant_->drop_stream();
  }

 private:
  const TenantPtr tenant_;
  std::atomic<bool> released_{false};
};

// The tenants that are in use, and the addresses of callers without a valid token. Thread-safe.
class Tenants {
 public:
  // The budget may be null. Both must outlive the tenants' connections and streams.
  explicit Tenants(TenantLimits limits, MemoryBudget* memory = nullptr)
      : limits_(limits), memory_(memory) {}

  // The tenant of that name; made when nobody uses it yet.
  TenantPtr use(const std::string& tenant);
  // Every tenant that is in use.
  std::vector<TenantPtr> in_use() const;
  // Takes one stream. Fails when the tenant has as many as it may have.
  Result<std::shared_ptr<StreamSeat>> open_stream(const TenantPtr& tenant);
  // Counts one request of the tenant.
  Result<void> count_request(const TenantPtr& tenant);
  // Counts one connection, or one request, of callers at that network that have no valid token. A
  // connection over the limit is on probation: it must name its tenant at once. There are at most
  // as many of those as the limit allows of the others.
  enum class Entered : uint8_t { yes, on_probation, no };
  Entered enter(const std::string& network);
  void leave(const std::string& network);
  Result<void> count_stranger(const std::string& network);

  const TenantLimits& limits() const { return limits_; }
  // Counts a refusal, for metrics, and words it.
  Error refuse(Limit limit);
  // Counts a refusal that another part worded: finds the limit by the reason.
  void count_refusal(const Error& error);
  uint64_t refused(Limit limit) const;

 private:
  struct Address {
    size_t connections = 0;
    std::unique_ptr<RateBucket> requests = std::make_unique<RateBucket>();
  };
  size_t max_of(Limit limit) const;
  Address* address(const std::string& network);  // null when the table is full; needs the lock

  const TenantLimits limits_;
  MemoryBudget* const memory_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<TenantUse>> tenants_;
  size_t sweep_at_ = 64;  // when so many are known, those that nobody uses are forgotten
  std::unordered_map<std::string, Address> addresses_;
  std::array<std::atomic<uint64_t>, kLimits> refused_{};
};

// The place of one connection: of its address until a request names its tenant, then of the tenant
// of its last authenticated request. Not thread-safe.
class ConnectionSeat {
 public:
  // `tenants` may be null: nothing is counted.
  explicit ConnectionSeat(Tenants* tenants) : tenants_(tenants) {}
  ~ConnectionSeat() { leave(); }
  ConnectionSeat(const ConnectionSeat&) = delete;
  ConnectionSeat& operator=(const ConnectionSeat&) = delete;
  Tenants::Entered enter(std::string network);
  // Returns false, and changes nothing, when the tenant has too many connections.
  bool move_to(const TenantPtr& tenant);
  const TenantPtr& tenant() const { return tenant_; }
  const std::string& network() const { return network_; }

 private:
  void leave();
  Tenants* const tenants_;
  std::string network_;
  bool entered_ = false;
  TenantPtr tenant_;
};

}  // namespace pawl::server
