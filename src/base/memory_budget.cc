#include "base/memory_budget.h"

namespace pawl {

static constexpr MemoryUseRow kUses[kMemoryUses] = {
    {MemoryUse::heads, "heads", 1},     {MemoryUse::bodies, "bodies", 4},
    {MemoryUse::answers, "answers", 4}, {MemoryUse::streams, "streams", 4},
    {MemoryUse::polls, "polls", 2},     {MemoryUse::searches, "searches", 4},
    {MemoryUse::modules, "modules", 4},
};

std::span<const MemoryUseRow> memory_uses() { return kUses; }

MemoryBudget::MemoryBudget(size_t bytes) : bytes_(bytes) {
  for (const MemoryUseRow& row : kUses)
    counter(row.use).share = bytes / 8 * row.eighths;
}

static size_t place(MemoryUse use) { return static_cast<size_t>(use); }

// Whether what is counted now is within all limits.
MemoryBudget::Taken MemoryBudget::check(MemoryUse use, const MemoryAccount* account) const {
  const Counter& c = counter(use);
  const size_t of_use = c.used.load(std::memory_order_relaxed);
  const size_t of_all = used();
  if (of_use > c.share || of_all > bytes_) return Taken::budget_full;
  if (!account || accounts_.load(std::memory_order_relaxed) < 2) return Taken::yes;
  const bool fits = account->used(use) <= c.share - of_use && account->used() <= bytes_ - of_all;
  return fits ? Taken::yes : Taken::share_full;
}

MemoryBudget::Taken MemoryBudget::take(MemoryUse use, size_t bytes, MemoryAccount* account) {
  // Counted first and checked then: two threads that take at the same time may both be refused,
  // but never both exceed the budget.
  force(use, bytes, account);
  const Taken taken = check(use, account);
  if (taken == Taken::yes) return taken;
  give_back(use, bytes, account);
  counter(use).refused.fetch_add(1, std::memory_order_relaxed);
  if (taken == Taken::share_full) refused_by_share_.fetch_add(1, std::memory_order_relaxed);
  return taken;
}

void MemoryBudget::force(MemoryUse use, size_t bytes, MemoryAccount* account) {
  counter(use).used.fetch_add(bytes, std::memory_order_relaxed);
  if (account) account->used_[place(use)].fetch_add(bytes, std::memory_order_relaxed);
}

void MemoryBudget::give_back(MemoryUse use, size_t bytes, MemoryAccount* account) {
  counter(use).used.fetch_sub(bytes, std::memory_order_relaxed);
  if (account) account->used_[place(use)].fetch_sub(bytes, std::memory_order_relaxed);
}

size_t MemoryBudget::used(MemoryUse use) const {
  return counter(use).used.load(std::memory_order_relaxed);
}

size_t MemoryBudget::used() const {
  size_t sum = 0;
  for (const Counter& c : counters_)
    sum += c.used.load(std::memory_order_relaxed);
  return sum;
}

uint64_t MemoryBudget::refused(MemoryUse use) const {
  return counter(use).refused.load(std::memory_order_relaxed);
}

uint64_t MemoryBudget::refused_by_share() const {
  return refused_by_share_.load(std::memory_order_relaxed);
}

MemoryAccount::MemoryAccount(MemoryBudget& budget) : budget_(budget) { ++budget_.accounts_; }
MemoryAccount::~MemoryAccount() { --budget_.accounts_; }

size_t MemoryAccount::used(MemoryUse use) const {
  return used_[place(use)].load(std::memory_order_relaxed);
}

size_t MemoryAccount::used() const {
  size_t sum = 0;
  for (const std::atomic<size_t>& one : used_)
    sum += one.load(std::memory_order_relaxed);
  return sum;
}

bool MemoryCharge::resize(size_t bytes) {
  if (bytes <= bytes_ || !budget_) {
    force(bytes);
    return true;
  }
  const auto taken = budget_->take(use_, bytes - bytes_, account_.get());
  over_share_ = taken == MemoryBudget::Taken::share_full;
  if (taken != MemoryBudget::Taken::yes) return false;
  bytes_ = bytes;
  return true;
}

void MemoryCharge::force(size_t bytes) {
  if (!budget_ || bytes == bytes_) return;
  if (bytes < bytes_)
    budget_->give_back(use_, bytes_ - bytes, account_.get());
  else
    budget_->force(use_, bytes - bytes_, account_.get());
  bytes_ = bytes;
}

void MemoryCharge::move_to(const Account& account) {
  if (account == account_) return;
  const size_t bytes = bytes_;
  clear();
  account_ = account;
  force(bytes);
}

void MemoryCharge::swap(MemoryCharge& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(use_, other.use_);
  std::swap(over_share_, other.over_share_);
  std::swap(bytes_, other.bytes_);
  account_.swap(other.account_);
}

}  // namespace pawl
