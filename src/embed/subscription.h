#pragma once
// A watch in this process. It first reports the instances that exist, page by page, then the
// changes from a queue that the hub fills. When the queue is full, changes of one instance are
// merged: a slow reader gets each instance once, with its newest state.

#include <condition_variable>
#include <deque>
#include <list>

#include "faces/lifecycle/read/watch_hub.h"
#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

class LocalSubscription final : public subscription {
 public:
  LocalSubscription(std::shared_ptr<WatchHub> hub, Reads reads, std::string tenant,
                    WorkflowTypePtr type);
  ~LocalSubscription() override { close(); }
  // Without `after`, the watch begins with a snapshot of all instances; with it, with the journal
  // after that entry.
  Result<void> begin(std::optional<Seq> after);
  std::optional<any_change> next(const call_options& options) override;
  void close() override;
  std::optional<error> failed() override;

 private:
  struct Waiting {
    InstanceChangePtr told;
    uint64_t skipped = 0;
    // The reader has not been told of this instance. If it is deleted, nothing is reported.
    bool unheard = false;
  };
  void take(const InstanceChangePtr& told);
  std::optional<any_change> next_early(const call_options& options);
  void merge(Waiting next);  // for a full queue, which holds one entry for each instance
  void load_page();
  any_change to_change(const InstanceChange& told, uint64_t skipped) const;

  std::shared_ptr<WatchHub> hub_;
  Reads reads_;
  std::string tenant_;
  WorkflowTypePtr type_;
  uint64_t number_ = 0;
  Seq upto_ = 0;  // the snapshot or the journal covers entries up to here; the queue, those after

  std::mutex reader_;  // guards the two below, for copies of one stream on several threads
  std::deque<any_change> early_;
  std::optional<std::string> cursor_;  // next page of the snapshot; empty when it is complete

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::list<Waiting> queue_;
  std::unordered_map<std::string, std::list<Waiting>::iterator>
      by_id_;  // filled only while the queue is full
  bool closed_ = false;
  std::optional<error> failed_;
};

}  // namespace pawl::lifecycle
