#pragma once
// One gRPC stream of a compute member, from join to end. Calls come in; answers go out in the order
// in which they are ready. Answers to calls of an ended stream are dropped, since the server has
// given up on those calls.

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
  // Receives each call on the reader's thread. answer() must be called once for each, from any
  // thread.
  using OnCall = std::function<void(Event call, std::shared_ptr<MemberStream> from)>;

  struct End {
    Error why;
    bool joined = false;   // the server had greeted this member
    bool refused = false;  // the server does not want this member
  };
  End run(const std::shared_ptr<grpc::Channel>& channel, const Token& token, bool fresh_token,
          const std::vector<std::string>& tags, const OnCall& on_call);
  void answer(Event event);
  // Ends the stream as soon as no call is outstanding and the last answers are sent.
  void leave_when_idle();

 private:
  void take(Event event, const OnCall& on_call);
  void send(Event event);
  bool next(std::stop_token stop, Event& out);  // false: nothing more is to be sent

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Event> out_;
  int outstanding_ = 0;
  bool leaving_ = false, joined_ = false;
  std::string member_id_;
};

// Sends one request outside the stream, such as EntityCreateRequest.
Result<std::string> ask(const std::shared_ptr<grpc::Channel>& channel, const Token& token,
                        std::string_view type, std::string_view payload, std::string_view tx_token);

}  // namespace pawl::client
