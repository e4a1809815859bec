// Writers frame the pieces; the I/O thread only sends bytes.

#include "server/http/stream.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "server/http/websocket.h"
#include "server/http/writer.h"

namespace pawl::server {

HttpStream::HttpStream(Kind kind, Ticket ticket, std::shared_ptr<Mailbox> mailbox,
                       MemoryCharge::Account account)
    : kind_(kind),
      ticket_(ticket),
      mailbox_(std::move(mailbox)),
      charge_(mailbox_->memory(), MemoryUse::streams, std::move(account)) {}

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

// A reader that keeps up has almost nothing buffered, so a small buffer is allowed even when slower
// readers have used up the budget.
static constexpr size_t kSmallBuffer = 16 * 1024;

bool HttpStream::make_room(size_t piece) {
  const size_t backlog = pending_.size() + unsent_;
  // Only the backlog before this piece counts: one large piece does not make a slow reader.
  if (backlog > limits::kStreamBytes) return false;
  if (charge_.resize(backlog + piece)) return true;
  if (backlog + piece > kSmallBuffer) return false;
  charge_.force(backlog + piece);
  return true;
}

void HttpStream::set_unsent(size_t bytes) {
  std::lock_guard lock(mutex_);
  unsent_ = bytes;
  if (!over_) charge_.force(pending_.size() + unsent_);
}

bool HttpStream::write(BytesView piece) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || overrun_ || over_) return false;
    overrun_ = !make_room(piece.size());
    if (!overrun_) frame(piece);
    if (std::exchange(noticed_, true)) return !overrun_;
  }
  notify();
  std::lock_guard lock(mutex_);
  return !overrun_ && !over_;
}

void HttpStream::finish(bool cut) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true) || over_) return;
    cut_ = cut;
    if (kind_ == Kind::chunked && !cut) pending_ += kLastChunk;
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
  return {std::exchange(pending_, {}), ended_, cut_, overrun_};
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
    charge_.clear();
    closed = std::exchange(closed_, nullptr);
    text_ = nullptr;
  }
  if (closed) closed();
}

}  // namespace pawl::server
