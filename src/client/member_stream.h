#pragma once
// One stream of a compute member, from join to its end: calls come in, answers go out in the order
// they are ready. Answers of a stream that is over go nowhere, since the server has given up on
// them.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "pawl/client.h"

namespace grpc {
class Channel;
}

namespace pawl::client {

class MemberStream : public std::enable_shared_from_this<MemberStream> {
 public:
  struct Event {
    std::string type, text, tx_token;
  };
  // Gets each call, on the reader's thread, and says answer() once for it, from any.
  using OnCall = std::function<void(Event call, std::shared_ptr<MemberStream> from)>;

  // How it ended, and whether the server had greeted before that.
  struct End {
    Refusal why;
    bool joined = false, refused = false;
  };
  End run(const std::shared_ptr<grpc::Channel>& channel, const Token& token, bool fresh_token,
          const std::vector<std::string>& tags, const OnCall& on_call);
  void answer(Event event);
  // No call is outstanding at the time: the last answers are sent, then the stream ends.
  void leave_when_idle();

 private:
  void take(Event event, const OnCall& on_call);
  void send(Event event);
  bool next(std::stop_token stop, Event& out);  // false: nothing more will come

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Event> out_;
  int outstanding_ = 0;
  bool leaving_ = false, joined_ = false;
  std::string member_id_;
};

// One request outside the stream, such as EntityCreateRequest.
Reply<std::string> ask(const std::shared_ptr<grpc::Channel>& channel, const Token& token,
                       std::string_view type, std::string_view payload, std::string_view tx_token);

}  // namespace pawl::client
