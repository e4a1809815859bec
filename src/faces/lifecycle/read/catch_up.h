#pragma once
// CatchUp sends each new watcher what happened before it came: the instances that exist, or the
// changes since a revision. It works in the background, page by page and as fast as the watcher
// reads, so that no request waits for the long catch-up of another watcher.

#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "runtime/background.h"

namespace pawl::lifecycle {

class CatchUp {
 public:
  enum class Next {
    more,  // the task has more to send: call it again soon
    wait,  // the watcher has to read first: call it again later
    done,  // the task is finished
  };
  using Task = std::function<Next()>;

  explicit CatchUp(Background& background);
  // Calls the task page by page until it is done. Calls of one task never overlap.
  void add(Task task);

 private:
  Time send_pages();

  Background& background_;
  std::mutex mutex_;
  std::list<Task> added_;
  std::list<Task> running_;               // used by the loop only
  std::unique_ptr<BackgroundLoop> loop_;  // last: its step uses everything above
};

}  // namespace pawl::lifecycle
