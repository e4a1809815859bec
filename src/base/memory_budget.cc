#include "base/memory_budget.h"

namespace pawl {

static constexpr MemoryUseRow kUses[kMemoryUses] = {
    {MemoryUse::heads, "heads", 1},
    {MemoryUse::bodies, "bodies", 4},
    {MemoryUse::answers, "answers", 4},
    {MemoryUse::streams, "streams", 4},
};

std::span<const MemoryUseRow> memory_uses() { return kUses; }

MemoryBudget::MemoryBudget(size_t bytes) : bytes_(bytes) {
  for (const MemoryUseRow& row : kUses)
    counter(row.use).share = bytes / 8 * row.eighths;
}

bool MemoryBudget::take(MemoryUse use, size_t bytes) {
  Counter& c = counter(use);
  // Counted first and checked then: two threads that take at the same time may both be refused,
  // but never both exceed the budget.
  size_t now = c.used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now <= c.share && used() <= bytes_) return true;
  c.used.fetch_sub(bytes, std::memory_order_relaxed);
  c.refused.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void MemoryBudget::force(MemoryUse use, size_t bytes) {
  counter(use).used.fetch_add(bytes, std::memory_order_relaxed);
}

void MemoryBudget::give_back(MemoryUse use, size_t bytes) {
  counter(use).used.fetch_sub(bytes, std::memory_order_relaxed);
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

}  // namespace pawl
