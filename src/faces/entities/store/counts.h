#pragma once
// Counts the entities of each model in each state. The counts live in memory: they are made from
// the cells at start and updated from every committed frame.

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "faces/entities/audit/audit.h"
#include "kernel/access.h"

namespace pawl::entities {

// The counts of one tenant at one moment.
class StateCounts {
 public:
  struct Row {
    std::string model;
    int32_t version;
    std::string state;
    int64_t count;
  };
  void add(std::string_view model, int32_t version, std::string_view state, int64_t by);
  void add(const StateChange& change);
  // Sorted by model, version and state; counts of zero are left out.
  std::vector<Row> rows() const;
  int64_t total(std::string_view model, int32_t version) const;

 private:
  using States = std::map<std::string, int64_t, std::less<>>;
  std::map<std::pair<std::string, int32_t>, States> models_;
};

// The counts of all tenants. Thread-safe.
class Counts {
 public:
  explicit Counts(KernelAccess& kernel) : kernel_(kernel) {}
  ~Counts() { stop(); }
  // Reads every entity once. Call it before requests are served.
  Result<void> start();
  void stop();

  // A copy, so that a reader inside a transaction can add that transaction's own changes.
  StateCounts of(std::string_view tenant) const;
  int64_t total(std::string_view tenant, std::string_view model, int32_t version) const;

 private:
  void take(const Frame& frame);

  KernelAccess& kernel_;
  mutable std::mutex mutex_;
  std::map<std::string, StateCounts, std::less<>> tenants_;
  Seq counted_ = 0;
  uint64_t watch_ = 0;
};

}  // namespace pawl::entities
