#pragma once
// How many instances there are, by tenant, definition and status: a view in memory over the status
// rows, rebuilt at start and kept by watching frames. Lists show totals without counting rows.

#include <map>
#include <mutex>

#include "faces/processes/state/instance.h"
#include "kernel/access.h"

namespace pawl::processes {

class Counts {
 public:
  explicit Counts(KernelAccess& kernel);
  ~Counts();
  // Empty definition or absent status: all of them.
  size_t total(std::string_view tenant, std::string_view definition_id,
               std::optional<Status> status) const;
  struct Line {
    std::string definition_id;
    std::array<size_t, 6> by_status{};
  };
  std::vector<Line> lines(std::string_view tenant) const;

 private:
  void watch(const Frame& frame);

  KernelAccess& kernel_;
  uint64_t watcher_ = 0;
  mutable std::mutex mutex_;
  // tenant, definition -> by status
  std::map<std::pair<std::string, std::string>, std::array<int64_t, 6>> counts_;
};

}  // namespace pawl::processes
