#pragma once
// A watch of a server's instances. A thread reads Server-Sent Events; when the connection breaks,
// it connects again and asks for the changes after the last revision it saw.

#include <condition_variable>
#include <deque>
#include <thread>

#include "embed/remote_store.h"

namespace pawl::lifecycle {

class RemoteSubscription final : public subscription {
 public:
  RemoteSubscription(std::shared_ptr<net::HttpClient> http, WorkflowTypePtr type,
                     std::optional<revision> after);
  ~RemoteSubscription() override { close(); }
  std::optional<any_change> next(const call_options& options) override;
  void close() override;
  std::optional<error> failed() override;

 private:
  // These run on thread_ only, so buffer_ and last_ need no lock.
  void read(std::stop_token stop);
  void read_once(const std::stop_token& stop);
  bool take_piece(std::string_view piece, const std::stop_token& stop);
  void take(std::string_view event, const std::stop_token& stop);
  void end_with(error why);

  std::shared_ptr<net::HttpClient> http_;
  WorkflowTypePtr type_;
  // The revision that the caller asked to begin after. A server that has not reached this revision
  // yet sends earlier ones; they are dropped.
  const revision asked_;
  std::optional<revision> last_;
  std::string buffer_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<any_change> queue_;
  bool over_ = false;
  std::optional<error> failed_;  // why the server refused the watch or ended it for good
  std::jthread thread_;          // declared last, so that it is joined before the rest is destroyed
};

}  // namespace pawl::lifecycle
