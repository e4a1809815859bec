#pragma once
// InstanceCounts knows how many instances there are by tenant, definition and status. It counts the
// status rows at start and then follows the frames, so that lists show totals without counting
// rows.

#include <map>
#include <mutex>

#include "faces/processes/state/instance.h"
#include "kernel/access.h"

namespace pawl::processes {

class InstanceCounts {
 public:
  // Reads all status rows. Construct it before the shard starts: a frame between the watch and the
  // scan would be counted twice.
  explicit InstanceCounts(KernelAccess& kernel);
  ~InstanceCounts();
  // An empty definition means all definitions; no status means every status.
  size_t total(std::string_view tenant, std::string_view definition_id,
               std::optional<Status> status) const;
  struct DefinitionCounts {
    std::string definition_id;
    // Indexed by Status, which begins at 1; element 0 is unused.
    std::array<size_t, 6> by_status{};
  };
  std::vector<DefinitionCounts> by_definition(std::string_view tenant) const;

 private:
  void watch(const Frame& frame);

  KernelAccess& kernel_;
  uint64_t watcher_ = 0;
  mutable std::mutex mutex_;
  // tenant, definition -> by status
  std::map<std::pair<std::string, std::string>, std::array<int64_t, 6>> counts_;
};

}  // namespace pawl::processes
