#pragma once
// A watch in this process. First what is there, page by page; then a queue that the hub fills and
// one reader empties. A reader that falls behind finds each instance once, with its newest state.

#include <condition_variable>
#include <list>

#include "faces/lifecycle/read/watch_hub.h"
#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

class LocalSubscription final : public subscription {
 public:
  LocalSubscription(std::shared_ptr<WatchHub> hub, Reads reads, std::string tenant,
                    WorkflowTypePtr type);
  ~LocalSubscription() override { close(); }
  // Without `after`: the snapshot first. With it: the journal from there.
  Result<void> begin(std::optional<Seq> after);
  std::optional<any_change> next(const call_options& options) override;
  void close() override;
  std::optional<error> failed() override;

 private:
  struct Waiting {
    InstanceChangePtr told;
    uint64_t skipped = 0;
    bool unheard = false;  // the reader has not been told of this instance: when it goes, there is
                           // nothing to tell
  };
  void take(const InstanceChangePtr& told);
  std::optional<any_change> next_early(const call_options& options);
  void merge(Waiting next);  // past the limit: one entry an instance
  void load_page();
  any_change to_change(const InstanceChange& told, uint64_t skipped) const;

  std::shared_ptr<WatchHub> hub_;
  Reads reads_;
  std::string tenant_;
  WorkflowTypePtr type_;
  uint64_t number_ = 0;
  Seq upto_ = 0;  // told by the snapshot or the journal; the queue goes on after it

  std::mutex reader_;  // one at a time takes from what was there
  std::deque<any_change> early_;
  std::optional<std::string> cursor_;  // of the snapshot's next page

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::list<Waiting> queue_;
  std::unordered_map<std::string, std::list<Waiting>::iterator>
      by_id_;  // only while over the limit
  bool closed_ = false;
  std::optional<error> failed_;
};

}  // namespace pawl::lifecycle
