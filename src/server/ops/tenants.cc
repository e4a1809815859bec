#include "server/ops/tenants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "runtime/monotonic.h"

namespace pawl::server {
namespace {

constexpr LimitRow kRows[kLimits] = {
    {Limit::connections, "TENANT_CONNECTIONS", "--tenant-max-connections",
     "open connections of one tenant", "close some and retry"},
    {Limit::streams, "TENANT_STREAMS", "--tenant-max-streams", "open streams of one tenant",
     "end some and retry"},
    {Limit::jobs, "TENANT_JOBS", "--tenant-max-jobs", "jobs in flight of one tenant",
     "finish some and poll again"},
    {Limit::requests, "TENANT_REQUESTS", "--tenant-max-requests",
     "requests of one tenant in a second", "send them more slowly"},
    {Limit::bytes, "TENANT_BYTES", "--tenant-max-bytes", "bytes stored by one tenant",
     "delete something; the size is measured again within a minute"},
    {Limit::memory, "TENANT_MEMORY", "", "the tenant's share of the server's memory",
     "wait for answers, or send less at once"},
    {Limit::address_connections, "ADDRESS_CONNECTIONS", "--address-max-connections",
     "open connections of one address without a valid token", "send a request with a token"},
    {Limit::address_requests, "ADDRESS_REQUESTS", "--address-max-requests",
     "requests of one address in a second without a valid token", "send a valid token"},
};

// A stranger's burst is longer: a page or a script begins with many open requests at once.
constexpr size_t kStrangerBurstSeconds = 10;

}  // namespace

std::span<const LimitRow> limit_rows() { return kRows; }

const LimitRow& limit_row(Limit limit) { return kRows[static_cast<size_t>(limit)]; }

Error limit_error(Limit limit, size_t max) {
  const LimitRow& row = limit_row(limit);
  std::string text = max ? fmt::format("{}: at most {} are allowed", row.subject, max)
                         : fmt::format("{} is used up", row.subject);
  if (!row.setting.empty()) text += fmt::format(" ({})", row.setting);
  return {Code::exhausted, std::string(row.code), fmt::format("{}; {}", text, row.remedy)};
}

bool RateBucket::take(Time now, size_t per_second, size_t burst) {
  const Time price = kSecond / static_cast<Time>(per_second);
  const Time room = price * static_cast<Time>(burst);
  Time spent = spent_until_.load(std::memory_order_relaxed);
  while (true) {
    const Time next = std::max(spent, now) + price;
    if (next - now > room) return false;
    if (spent_until_.compare_exchange_weak(spent, next, std::memory_order_relaxed)) return true;
  }
}

bool TenantUse::take(std::atomic<size_t>& count, size_t max) {
  const size_t before = count.fetch_add(1, std::memory_order_relaxed);
  if (!max || before < max) return true;
  count.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

bool TenantUse::take_request() {
  const size_t max = limits_.requests_per_second;
  return !max || requests_.take(monotonic_now(), max, max);
}

TenantPtr Tenants::use(const std::string& tenant) {
  std::lock_guard lock(mutex_);
  std::weak_ptr<TenantUse>& known = tenants_[tenant];
  TenantPtr found = known.lock();
  if (found) return found;
  known = found = std::make_shared<TenantUse>(tenant, limits_, memory_);
  if (tenants_.size() >= sweep_at_) {
    std::erase_if(tenants_, [](const auto& row) { return row.second.expired(); });
    sweep_at_ = std::max<size_t>(64, tenants_.size() * 2);
  }
  return found;
}

std::vector<TenantPtr> Tenants::in_use() const {
  std::lock_guard lock(mutex_);
  std::vector<TenantPtr> out;
  for (const auto& [name, known] : tenants_)
    if (TenantPtr tenant = known.lock()) out.push_back(std::move(tenant));
  return out;
}

Result<std::shared_ptr<StreamSeat>> Tenants::open_stream(const TenantPtr& tenant) {
  if (!tenant->take_stream()) return fail(refuse(Limit::streams));
  return std::make_shared<StreamSeat>(tenant);
}

Result<void> Tenants::count_request(const TenantPtr& tenant) {
  if (tenant->take_request()) return {};
  return fail(refuse(Limit::requests));
}

Tenants::Address* Tenants::address(const std::string& network) {
  auto found = addresses_.find(network);
  if (found != addresses_.end()) return &found->second;
  if (addresses_.size() >= limits::kLoginKeys) {
    const Time now = monotonic_now();
    std::erase_if(addresses_, [&](const auto& row) {
      return row.second.connections == 0 && row.second.requests->full(now);
    });
    if (addresses_.size() >= limits::kLoginKeys) return nullptr;
  }
  return &addresses_[network];
}

Tenants::Entered Tenants::enter(const std::string& network) {
  std::lock_guard lock(mutex_);
  Address* row = address(network);
  const size_t max = limits_.address_connections;
  if (!row || (max && row->connections >= 2 * max)) return Entered::no;
  ++row->connections;
  return max && row->connections > max ? Entered::on_probation : Entered::yes;
}

void Tenants::leave(const std::string& network) {
  std::lock_guard lock(mutex_);
  if (auto found = addresses_.find(network); found != addresses_.end()) --found->second.connections;
}

Result<void> Tenants::count_stranger(const std::string& network) {
  const size_t max = limits_.address_requests_per_second;
  if (!max) return {};
  {
    std::lock_guard lock(mutex_);
    Address* row = address(network);
    if (row && row->requests->take(monotonic_now(), max, max * kStrangerBurstSeconds)) return {};
  }
  return fail(refuse(Limit::address_requests));
}

size_t Tenants::max_of(Limit limit) const {
  switch (limit) {
    case Limit::connections: return limits_.connections;
    case Limit::streams: return limits_.streams;
    case Limit::requests: return limits_.requests_per_second;
    case Limit::bytes: return limits_.bytes;
    case Limit::address_connections: return limits_.address_connections;
    case Limit::address_requests: return limits_.address_requests_per_second;
    case Limit::jobs:
    case Limit::memory: return 0;
  }
  CHECK(false);
}

Error Tenants::refuse(Limit limit) {
  refused_[static_cast<size_t>(limit)].fetch_add(1, std::memory_order_relaxed);
  return limit_error(limit, max_of(limit));
}

void Tenants::count_refusal(const Error& error) {
  for (const LimitRow& row : kRows)
    if (row.code == error.reason)
      refused_[static_cast<size_t>(row.limit)].fetch_add(1, std::memory_order_relaxed);
}

uint64_t Tenants::refused(Limit limit) const {
  // The budget counts what the shares refuse.
  if (limit == Limit::memory) return memory_ ? memory_->refused_by_share() : 0;
  return refused_[static_cast<size_t>(limit)].load(std::memory_order_relaxed);
}

Tenants::Entered ConnectionSeat::enter(std::string network) {
  if (!tenants_) return Tenants::Entered::yes;
  network_ = std::move(network);
  const Tenants::Entered entered = tenants_->enter(network_);
  entered_ = entered != Tenants::Entered::no;
  return entered;
}

bool ConnectionSeat::move_to(const TenantPtr& tenant) {
  if (tenant == tenant_ || !tenant) return true;
  if (!tenant->take_connection()) return false;
  leave();
  tenant_ = tenant;
  return true;
}

void ConnectionSeat::leave() {
  if (tenant_) tenant_->drop_connection();
  if (std::exchange(entered_, false)) tenants_->leave(network_);
  tenant_.reset();
}

}  // namespace pawl::server
