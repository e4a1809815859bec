#pragma once
// The memory budget bounds what callers can make the server hold: bodies that arrive, answers that
// are not read yet, streams whose reader is slow. Each holder has a MemoryCharge. A charge that
// does not fit is refused, and the holder refuses its caller; memory is never taken without a
// charge. No use may take the whole budget, so a flood of one kind leaves room for the others.
//
// A tenant has an account. While there are several accounts, an account may hold at most as much of
// a use, and of the whole budget, as is left free: one busy tenant gets a half, two get a third
// each, and there is always room for the next one.
//
// Memory that has a limit of its own (the cell cache, the cache of rows) is not counted here.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pawl {

enum class MemoryUse : uint8_t {
  heads,     // heads of requests that are not complete yet: their sender is not known
  bodies,    // request bodies, from their first byte until the answer
  answers,   // answers that the caller has not read
  streams,   // events and jobs that the reader of a stream has not read
  polls,     // polls that wait for jobs
  searches,  // results of searches in progress
  modules,   // WASM modules that wait for the compiler or are being compiled
};
inline constexpr size_t kMemoryUses = 7;

// A row for each use: its name in metrics, and its share of the budget in eighths.
struct MemoryUseRow {
  MemoryUse use;
  std::string_view name;
  size_t eighths;
};
std::span<const MemoryUseRow> memory_uses();

class MemoryBudget;

// Counts the bytes of a budget that one tenant holds. The budget must outlive it. Thread-safe.
class MemoryAccount {
 public:
  explicit MemoryAccount(MemoryBudget& budget);
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;
  size_t used(MemoryUse use) const;
  size_t used() const;

 private:
  friend class MemoryBudget;
  MemoryBudget& budget_;
  std::array<std::atomic<size_t>, kMemoryUses> used_{};
};

// Thread-safe. The account of each function may be null: the bytes belong to no tenant.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t bytes);
  // Counts the bytes, unless the use, the budget or the share of the account is full.
  enum class Taken : uint8_t { yes, budget_full, share_full };
  Taken take(MemoryUse use, size_t bytes, MemoryAccount* account = nullptr);
  // Counts bytes that are held in any case.
  void force(MemoryUse use, size_t bytes, MemoryAccount* account = nullptr);
  void give_back(MemoryUse use, size_t bytes, MemoryAccount* account = nullptr);

  size_t bytes() const { return bytes_; }
  size_t used(MemoryUse use) const;
  size_t used() const;
  uint64_t refused(MemoryUse use) const;  // number of charges that did not fit, for metrics
  uint64_t refused_by_share() const;      // those of them that only the share of a tenant refused

 private:
  friend class MemoryAccount;
  struct alignas(64) Counter {
    std::atomic<size_t> used{0};
    std::atomic<uint64_t> refused{0};
    size_t share = 0;
  };
  Taken check(MemoryUse use, const MemoryAccount* account) const;
  Counter& counter(MemoryUse use) { return counters_[static_cast<size_t>(use)]; }
  const Counter& counter(MemoryUse use) const { return counters_[static_cast<size_t>(use)]; }
  const size_t bytes_;
  std::array<Counter, kMemoryUses> counters_;
  std::atomic<size_t> accounts_{0};
  std::atomic<uint64_t> refused_by_share_{0};
};

// Part of a budget, held by one owner and given back when it is destroyed. Without a budget nothing
// is counted and nothing is refused. Not thread-safe.
class MemoryCharge {
 public:
  // Shared with the tenant: a charge may outlive everything else of the tenant.
  using Account = std::shared_ptr<MemoryAccount>;
  MemoryCharge() = default;
  MemoryCharge(MemoryBudget* budget, MemoryUse use, Account account = nullptr)
      : budget_(budget), use_(use), account_(std::move(account)) {}
  MemoryCharge(MemoryCharge&& other) noexcept { swap(other); }
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MemoryCharge() { clear(); }

  // Makes the charge this large. Returns false, and changes nothing, when it does not fit. A charge
  // that shrinks always fits.
  bool resize(size_t bytes);
  // The same for bytes that are held in any case.
  void force(size_t bytes);
  void clear() { force(0); }
  // The bytes belong to this account from now on, whether they fit its share or not.
  void move_to(const Account& account);
  size_t bytes() const { return bytes_; }
  // Whether the last refusal of resize() was because of the tenant's share.
  bool over_share() const { return over_share_; }

 private:
  void swap(MemoryCharge& other) noexcept;
  MemoryBudget* budget_ = nullptr;
  MemoryUse use_ = MemoryUse::bodies;
  bool over_share_ = false;
  size_t bytes_ = 0;
  Account account_;
};

// Makes an empty charge for a tenant, for those who do not know the accounts. When the function is
// unset, nothing is counted.
using ChargeFor = std::function<MemoryCharge(MemoryUse use, const std::string& tenant)>;
inline MemoryCharge charge_for(const ChargeFor& make, MemoryUse use, const std::string& tenant) {
  return make ? make(use, tenant) : MemoryCharge();
}

}  // namespace pawl
