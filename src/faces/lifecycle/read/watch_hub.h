#pragma once
// WatchHub sends every durable change of an instance to the watchers of its type. Each frame is
// decoded once for all watchers. Sinks run on the committer's thread: they copy what they need and
// return.

#include <mutex>

#include "faces/lifecycle/read/reads.h"
#include "kernel/frame.h"

namespace pawl::lifecycle {

// One change of one instance, shared by all watchers of its type.
struct InstanceChange {
  std::string id;
  Seq version = 0;
  StoredPtr value;        // null: the instance was removed
  StoredInstance stored;  // points into `value`; empty unless `readable`
  bool readable = false;
  bool created = false;  // no instance had this id before
};
using InstanceChangePtr = std::shared_ptr<const InstanceChange>;
using ChangeSink = std::function<void(const InstanceChangePtr&)>;

class WatchHub {
 public:
  explicit WatchHub(KernelAccess& kernel);
  ~WatchHub();
  // Returns the number that remove() takes.
  uint64_t add(std::string_view tenant, std::string_view type, ChangeSink sink);
  // When remove() returns, the sink is not running and will not be called again.
  void remove(uint64_t id);
  // Drops all sinks and stops watching the kernel, which may be destroyed afterwards.
  void detach();
  size_t watchers();

 private:
  struct Watcher {
    uint64_t id;
    Bytes prefix;  // of the instance cells of the type
    ChangeSink sink;
  };
  void notify(const Frame& frame);

  KernelAccess& kernel_;
  std::mutex mutex_;
  std::vector<Watcher> watchers_;
  uint64_t next_id_ = 1;
  uint64_t kernel_watch_ = 0;  // the kernel's number of this watch
};

// The changes of one type in one frame, for a watch that replays the journal.
std::vector<InstanceChangePtr> changes_of(const Frame& frame, BytesView instance_prefix_bytes);

}  // namespace pawl::lifecycle
