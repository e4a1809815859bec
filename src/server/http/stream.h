#pragma once
// The writer's end of a streamed answer or a WebSocket. Writers add pieces from any thread; the I/O
// thread of the connection takes them out.

#include "server/http/mailbox.h"

namespace pawl::server {

class HttpStream final : public wire::Socket {
 public:
  enum class Kind { chunked, plain, websocket };
  HttpStream(Kind kind, Ticket ticket, std::shared_ptr<Mailbox> mailbox,
             MemoryCharge::Account account = nullptr);

  // A write fails, and the connection is cut, when the reader has left too much unread: more than
  // kStreamBytes, or anything that the memory budget has no room for.

  bool write(BytesView piece) override;
  void end() override { finish(false); }
  void cut() override { finish(true); }
  size_t buffered() const override;
  void on_close(std::function<void()> closed) override;
  void on_message(std::function<void(std::string)> text) override;

  // The rest is called by the connection.
  struct Taken {
    Bytes bytes;           // framed
    bool ended = false;    // nothing follows
    bool cut = false;      // the body is not complete: close the connection behind it
    bool overrun = false;  // the reader is too slow: cut the connection
  };
  Taken take();
  void set_unsent(size_t bytes);
  void message(std::string text);
  void over();  // called when the connection is done: runs the on_close callback, once

 private:
  void finish(bool cut);
  void frame(BytesView piece);
  void notify();
  bool make_room(size_t piece);  // needs mutex_

  const Kind kind_;
  const Ticket ticket_;
  const std::shared_ptr<Mailbox> mailbox_;
  mutable std::mutex mutex_;
  size_t unsent_ = 0;    // bytes taken and not yet sent
  MemoryCharge charge_;  // of pending_ and unsent_
  Bytes pending_;
  bool noticed_ = false;  // the loop was told about pending_
  bool ended_ = false, cut_ = false;
  bool overrun_ = false;
  bool over_ = false;
  std::function<void()> closed_;
  std::function<void(std::string)> text_;
};

}  // namespace pawl::server
