#pragma once
// The hub tells watchers of a type what has become durable. One look at each frame serves all of
// them. Sinks run on the committer's thread: they take what they need and return.

#include <atomic>
#include <mutex>

#include "faces/lifecycle/read/reads.h"
#include "kernel/frame.h"

namespace pawl::lifecycle {

// One change of one instance, shared by all who watch its type.
struct Told {
  std::string id;
  Seq version = 0;
  StoredPtr stored;  // null: removed
  Held held;         // when it can be read
  bool readable = false;
  bool created = false;  // there was no instance of that id before
};
using ToldPtr = std::shared_ptr<const Told>;
using Sink = std::function<void(const ToldPtr&)>;

class Hub {
 public:
  explicit Hub(KernelAccess& kernel);
  ~Hub();
  uint64_t add(std::string_view tenant, std::string_view type, Sink sink);
  void detach();             // no more frames and no more sinks: the door is about to go
  void remove(uint64_t id);  // the sink is not running any more when this returns
  size_t watchers();

 private:
  struct Watching {
    uint64_t id;
    Bytes prefix;  // of the instance cells
    Sink sink;
  };
  void tell(const Frame& frame);

  KernelAccess& kernel_;
  std::mutex mutex_;
  std::vector<Watching> all_;
  uint64_t next_ = 1;
  uint64_t watch_ = 0;  // the door's number for us
};

// The changes of one type in one frame, for those who replay the journal.
std::vector<ToldPtr> changes_of(const Frame& frame, BytesView instance_prefix_bytes);

}  // namespace pawl::lifecycle
