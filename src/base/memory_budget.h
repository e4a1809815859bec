#pragma once
// The memory budget bounds what callers can make the server hold: bodies that arrive, answers that
// are not read yet, streams whose reader is slow. Each holder has a MemoryCharge. A charge that
// does not fit is refused, and the holder refuses its caller; memory is never taken without a
// charge. No use may take the whole budget, so a flood of one kind leaves room for the others.
//
// Memory that has a limit of its own (the cell cache, the cache of rows) is not counted here.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace pawl {

enum class MemoryUse : uint8_t {
  heads,    // heads of requests that are not complete yet: their sender is not known
  bodies,   // request bodies, from their first byte until the answer
  answers,  // answers that the caller has not read
  streams,  // events and jobs that the reader of a stream has not read
};
inline constexpr size_t kMemoryUses = 4;

// A row for each use: its name in metrics, and its share of the budget in eighths.
struct MemoryUseRow {
  MemoryUse use;
  std::string_view name;
  size_t eighths;
};
std::span<const MemoryUseRow> memory_uses();

// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t bytes);
  // Counts the bytes. Returns false, and counts nothing, when the use or the budget is full.
  bool take(MemoryUse use, size_t bytes);
  // Counts bytes that are held in any case.
  void force(MemoryUse use, size_t bytes);
  void give_back(MemoryUse use, size_t bytes);

  size_t bytes() const { return bytes_; }
  size_t used(MemoryUse use) const;
  size_t used() const;
  uint64_t refused(MemoryUse use) const;  // number of charges that did not fit, for metrics

 private:
  struct alignas(64) Counter {
    std::atomic<size_t> used{0};
    std::atomic<uint64_t> refused{0};
    size_t share = 0;
  };
  Counter& counter(MemoryUse use) { return counters_[static_cast<size_t>(use)]; }
  const Counter& counter(MemoryUse use) const { return counters_[static_cast<size_t>(use)]; }
  const size_t bytes_;
  std::array<Counter, kMemoryUses> counters_;
};

// Part of a budget, held by one owner and given back when it is destroyed. Without a budget nothing
// is counted and nothing is refused. Not thread-safe.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(MemoryBudget* budget, MemoryUse use) : budget_(budget), use_(use) {}
  MemoryCharge(MemoryCharge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        use_(other.use_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(use_, other.use_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() { clear(); }

  // Makes the charge this large. Returns false, and changes nothing, when it does not fit. A charge
  // that shrinks always fits.
  bool resize(size_t bytes) { return set(bytes, false); }
  // The same for bytes that are held in any case.
  void force(size_t bytes) { set(bytes, true); }
  void clear() { set(0, true); }
  size_t bytes() const { return bytes_; }

 private:
  bool set(size_t bytes, bool forced) {
    if (!budget_ || bytes == bytes_) return true;
    if (bytes < bytes_) {
      budget_->give_back(use_, bytes_ - bytes);
    } else if (forced) {
      budget_->force(use_, bytes - bytes_);
    } else if (!budget_->take(use_, bytes - bytes_)) {
      return false;
    }
    bytes_ = bytes;
    return true;
  }
  MemoryBudget* budget_ = nullptr;
  MemoryUse use_ = MemoryUse::bodies;
  size_t bytes_ = 0;
};

}  // namespace pawl
