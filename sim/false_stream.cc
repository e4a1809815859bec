#include "sim/false_stream.h"

namespace pawl::sim {

bool FalseStream::write(BytesView piece) {
  if (over_ || ended_) return false;
  // Only the backlog counts: one large piece does not make a slow reader.
  if (waiting_.size() > reader_.room) {
    over_ = overrun_ = true;
    tell_writer();
    schedule_.after(0, [self = shared_from_this()] {
      const StreamReader reader = std::exchange(self->reader_, {});
      if (reader.over) reader.over(false);
    });
    return false;
  }
  waiting_ += piece;
  deliver_later();
  return true;
}

void FalseStream::end() {
  if (over_ || std::exchange(ended_, true)) return;
  deliver_later();
}

void FalseStream::on_close(std::function<void()> closed) {
  closed_ = std::move(closed);
  if (over_) tell_writer();
}

void FalseStream::deliver_later() {
  if (std::exchange(delivers_, true)) return;
  schedule_.after(reader_.latency(), [self = shared_from_this()] { self->deliver(); });
}

void FalseStream::deliver() {
  delivers_ = false;
  if (over_) return;
  if (!waiting_.empty()) reader_.piece(std::exchange(waiting_, {}));
  if (!ended_ || over_) return;
  over_ = true;
  tell_writer();
  // The reader holds this stream: taking it out ends the circle.
  const StreamReader reader = std::exchange(reader_, {});
  reader.over(true);
}

// A step of its own: an I/O thread tells the writer, not the thread that writes.
void FalseStream::tell_writer() {
  schedule_.after(0, [self = shared_from_this()] {
    if (auto closed = std::exchange(self->closed_, nullptr)) closed();
  });
}

void FalseStream::leave() {
  if (std::exchange(over_, true)) return;
  reader_ = {};
  tell_writer();
}

void FalseStream::cut() {
  over_ = true;
  closed_ = nullptr;
  reader_ = {};
}

}  // namespace pawl::sim
