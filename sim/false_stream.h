#pragma once
// The reader's end of a streamed answer. Pieces reach the reader later and in their order. A slow
// reader lets them wait; a reader that has left too much unread is cut off, as by the real server.

#include <functional>
#include <memory>
#include <string>

#include "sim/schedule.h"
#include "wire/message.h"

namespace pawl::sim {

struct StreamReader {
  std::function<void(std::string)> piece;
  // Called once, unless the reader leaves first. `whole`: the server ended the stream.
  std::function<void(bool whole)> over;
  std::function<Time()> latency;  // of the next pieces
  size_t room = 0;                // unread bytes after which the reader is cut off
};

class FalseStream final : public wire::Stream, public std::enable_shared_from_this<FalseStream> {
 public:
  FalseStream(Schedule& schedule, StreamReader reader)
      : schedule_(schedule), reader_(std::move(reader)) {}

  bool write(BytesView piece) override;
  void end() override;
  size_t buffered() const override { return over_ ? 0 : waiting_.size(); }
  void on_close(std::function<void()> closed) override;

  void leave();  // the reader hangs up
  void cut();    // the process of the writer is dead: nobody is told
  bool overrun() const { return overrun_; }

 private:
  void deliver_later();
  void deliver();
  void tell_writer();

  Schedule& schedule_;
  StreamReader reader_;
  std::string waiting_;
  std::function<void()> closed_;
  bool delivers_ = false;  // a delivery is under way
  bool ended_ = false, over_ = false, overrun_ = false;
};

}  // namespace pawl::sim
