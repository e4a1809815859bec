#pragma once
// A watch of a server's instances: a thread reads Server-Sent Events and comes back with the last
// revision it saw when the connection breaks.

#include <condition_variable>
#include <deque>
#include <thread>

#include "embed/remote_store.h"

namespace pawl::lifecycle {

class RemoteSubscription final : public subscription {
 public:
  RemoteSubscription(std::shared_ptr<HttpClient> client, WorkflowTypePtr type,
                     std::optional<revision> after);
  ~RemoteSubscription() override { close(); }
  std::optional<any_change> next(const call_options& options) override;
  void close() override;
  std::optional<error> failed() override;

 private:
  void read(std::stop_token stop);
  void take(std::string_view event, const std::stop_token& stop);
  void end_with(error why);

  std::shared_ptr<HttpClient> client_;
  WorkflowTypePtr type_;
  const revision asked_;  // nothing up to this one is told, though a server begins now where that
                          // is still to come
  std::optional<revision> last_;
  std::string buffer_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<any_change> queue_;
  bool over_ = false;
  std::optional<error> failed_;  // the server cannot go on from there, or will not
  std::jthread thread_;          // last: it is joined before the rest goes
};

}  // namespace pawl::lifecycle
