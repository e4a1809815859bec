// Writers frame the pieces; the I/O thread only sends bytes.

#include "server/http/stream.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "server/http/websocket.h"
#include "server/http/writer.h"

namespace pawl::server {

HttpStream::HttpStream(Kind kind, Ticket ticket, std::shared_ptr<Mailbox> mailbox)
    : kind_(kind), ticket_(ticket), mailbox_(std::move(mailbox)) {}

void HttpStream::frame(BytesView piece) {
  switch (kind_) {
    case Kind::chunked: append_chunk(pending_, piece); return;
    case Kind::plain: pending_ += piece; return;
    case Kind::websocket:
      append_frame(pending_, is_utf8(piece) ? Opcode::text : Opcode::binary, piece);
      return;
  }
}

void HttpStream::notify() {
  if (mailbox_->post({Letter::Kind::stream, ticket_})) return;
  std::lock_guard lock(mutex_);
  over_ = true;
}

bool HttpStream::write(BytesView piece) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || overrun_ || over_) return false;
    // Only the backlog before this piece counts: one large piece does not make a slow reader.
    overrun_ = pending_.size() + unsent_ > limits::kStreamBytes;
    if (!overrun_) frame(piece);
    if (std::exchange(noticed_, true)) return !overrun_;
  }
  notify();
  std::lock_guard lock(mutex_);
  return !overrun_ && !over_;
}

void HttpStream::end() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true) || over_) return;
    if (kind_ == Kind::chunked) pending_ += kLastChunk;
    if (kind_ == Kind::websocket)
      append_frame(pending_, Opcode::close, close_payload(kNormalClosure, {}));
    if (std::exchange(noticed_, true)) return;
  }
  notify();
}

size_t HttpStream::buffered() const {
  std::lock_guard lock(mutex_);
  return over_ ? 0 : pending_.size() + unsent_;
}

void HttpStream::on_close(std::function<void()> closed) {
  {
    std::lock_guard lock(mutex_);
    if (!over_) {
      closed_ = std::move(closed);
      return;
    }
  }
  closed();
}

void HttpStream::on_message(std::function<void(std::string)> text) {
  std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

HttpStream::Taken HttpStream::take() {
  std::lock_guard lock(mutex_);
  noticed_ = false;
  unsent_ += pending_.size();
  return {std::exchange(pending_, {}), ended_, overrun_};
}

void HttpStream::message(std::string text) {
  std::function<void(std::string)> listener;
  {
    std::lock_guard lock(mutex_);
    listener = text_;
  }
  if (listener) listener(std::move(text));
}

void HttpStream::over() {
  std::function<void()> closed;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    pending_ = {};
    closed = std::exchange(closed_, nullptr);
    text_ = nullptr;
  }
  if (closed) closed();
}

}  // namespace pawl::server
