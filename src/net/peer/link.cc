#include "net/peer/link.h"

#include "base/log.h"

namespace pawl::net {

namespace {

constexpr size_t kHeadBytes = 13;
constexpr size_t kTakeBytes = 128 * 1024;  // taken bytes are reported in steps of this size
constexpr std::chrono::seconds kPingEvery{1};
constexpr int kPollMs = 500;
constexpr std::chrono::seconds kSilence{6};  // a link that is silent for longer is broken

Error lost() {
  return {Code::unavailable, std::string(kPeerLost.name),
          "the connection to the other node broke; ask again"};
}

}  // namespace

// Guarded by the mutex of its link.
class Link::Call final : public PeerCall {
 public:
  Call(std::shared_ptr<Link> link, uint64_t id) : link_(std::move(link)), id_(id) {}
  bool send(BytesView piece) override {
    std::unique_lock lock(link_->mutex_);
    if (over_ || we_ended_ || link_->broken_ || unread_ > kWindow ||
        link_->unsent_.size() > kMaxUnsent || piece.size() > kMaxPayload)
      return false;
    unread_ += piece.size();
    link_->append(Kind::piece, id_, piece);
    link_->flush(lock);
    return true;
  }
  void end() override {
    PeerReceiver dropped;
    std::unique_lock lock(link_->mutex_);
    if (over_ || we_ended_) return;
    we_ended_ = true;
    link_->append(Kind::end, id_, {});
    if (they_ended_) dropped = close();
    link_->flush(lock);
    lock.unlock();
  }
  void cancel() override {
    PeerReceiver dropped;
    std::unique_lock lock(link_->mutex_);
    if (over_) return;
    dropped = close();
    link_->append(Kind::cancel, id_, {});
    link_->flush(lock);
    lock.unlock();
  }
  size_t unread() const override {
    std::lock_guard lock(link_->mutex_);
    return unread_;
  }

  // For the link; these need the lock. The call is over, and its receiver is returned: it may own
  // this call or others, so it goes without the lock. While the reading thread calls the receiver,
  // `running_` is set, and that thread drops it.
  PeerReceiver close() {
    over_ = true;
    link_->calls_.erase(id_);
    if (running_) return {};
    return std::exchange(receiver, {});
  }
  PeerReceiver receiver;
  bool over_ = false, we_ended_ = false, they_ended_ = false, running_ = false;
  size_t unread_ = 0, taken_ = 0;

 private:
  friend class Link;
  const std::shared_ptr<Link> link_;
  const uint64_t id_;
};

std::shared_ptr<Link> Link::make(std::unique_ptr<Pipe> pipe, bool connected, OnCall on_call) {
  return std::shared_ptr<Link>(new Link(std::move(pipe), connected, std::move(on_call)));
}

Link::Link(std::unique_ptr<Pipe> pipe, bool connected, OnCall on_call)
    : pipe_(std::move(pipe)),
      on_call_(std::move(on_call)),
      next_call_(connected ? 1 : 2),
      writer_([this] { write_loop(); }) {}

// Calls hold the link, so none is open here.
Link::~Link() {
  close();
  writer_.join();
}

void Link::close() {
  broken_ = true;
  pipe_->close();
  std::lock_guard lock(mutex_);
  wake_.notify_all();
}

void Link::append(Kind kind, uint64_t call, BytesView payload, BytesView more) {
  Writer w(unsent_);
  w.fixed32(static_cast<uint32_t>(payload.size() + more.size()));
  w.fixed64(call);
  w.u8(static_cast<uint8_t>(kind));
  unsent_.append(payload).append(more);
}

// The thread that has something to send sends it, unless another thread is sending: then that
// thread, or the writer, takes all that has gathered meanwhile. It never waits for the socket.
void Link::flush(std::unique_lock<std::mutex>& lock) {
  if (writing_ || unsent_.empty() || broken_) return;
  writing_ = true;
  Bytes out = std::exchange(unsent_, {});
  lock.unlock();
  const size_t sent = pipe_->write_now(out);
  lock.lock();
  writing_ = false;
  if (sent < out.size()) unsent_.insert(0, out, sent);
  if (!unsent_.empty()) wake_.notify_one();
}

void Link::write_loop() {
  std::unique_lock lock(mutex_);
  while (!broken_) {
    const bool woken = wake_.wait_for(lock, kPingEvery, [this] {
      return broken_ || (!writing_ && (!unsent_.empty() || pipe_->wants_to_write()));
    });
    if (broken_) return;
    if (!woken && writing_) continue;
    if (!woken) append(Kind::ping, 0, {});
    writing_ = true;
    Bytes out = std::exchange(unsent_, {});
    lock.unlock();
    const bool good = pipe_->write(out);
    lock.lock();
    writing_ = false;
    if (!good) pipe_->close();
  }
}

Link::CallPtr Link::find(uint64_t id) {
  auto it = calls_.find(id);
  return it == calls_.end() ? nullptr : it->second;
}

std::shared_ptr<PeerCall> Link::open(std::string_view method, BytesView first,
                                     PeerReceiver receiver) {
  Bytes name;
  Writer(name).str(method);
  if (name.size() + first.size() > kMaxPayload) return nullptr;
  std::unique_lock lock(mutex_);
  if (broken_ || unsent_.size() > kMaxUnsent) return nullptr;
  const uint64_t id = std::exchange(next_call_, next_call_ + 2);
  auto call = std::make_shared<Call>(shared_from_this(), id);
  call->receiver = std::move(receiver);
  calls_.emplace(id, call);
  append(Kind::open, id, name, first);
  flush(lock);
  return call;
}

void Link::read_all() {
  Bytes buffer;
  auto heard = std::chrono::steady_clock::now();
  while (!broken_) {
    const size_t had = buffer.size();
    if (!pipe_->read(buffer, kPollMs)) break;
    const auto now = std::chrono::steady_clock::now();
    if (buffer.size() != had) heard = now;
    if (now - heard > kSilence) break;
    if (pipe_->wants_to_write()) wake_.notify_one();
    if (!take_frames(buffer)) break;
  }
  break_off();
}

bool Link::take_frames(Bytes& buffer) {
  size_t at = 0;
  while (buffer.size() - at >= kHeadBytes) {
    Reader head(BytesView(buffer).substr(at, kHeadBytes));
    const size_t size = head.fixed32();
    const uint64_t call = head.fixed64();
    const Kind kind = static_cast<Kind>(head.u8());
    if (size > kMaxPayload) return false;
    if (buffer.size() - at - kHeadBytes < size) break;
    if (!take(kind, call, BytesView(buffer).substr(at + kHeadBytes, size))) return false;
    at += kHeadBytes + size;
  }
  buffer.erase(0, at);
  return true;
}

// False: the other side does not speak this protocol.
bool Link::take(Kind kind, uint64_t id, BytesView payload) {
  if (kind == Kind::open) return begin(id, payload);
  if (kind == Kind::ping) return true;
  std::unique_lock lock(mutex_);
  CallPtr call = find(id);
  // A call that this side has cancelled may still receive.
  if (!call) return kind >= Kind::piece && kind <= Kind::took;
  switch (kind) {
    case Kind::piece:
      if (call->they_ended_) return false;
      call->taken_ += payload.size();
      tell(call, lock, [&] {
        if (call->receiver.piece) call->receiver.piece(payload);
      });
      return true;
    case Kind::end:
      if (call->they_ended_) return false;
      call->they_ended_ = true;
      tell(call, lock, [&] {
        if (call->receiver.ended) call->receiver.ended();
      });
      return true;
    case Kind::cancel:
      call->over_ = true;
      calls_.erase(id);
      tell(call, lock, [&] {
        if (call->receiver.failed)
          call->receiver.failed(
              {Code::unavailable, std::string(kPeerLeft.name), "the other node gave the call up"});
      });
      return true;
    case Kind::took:
      call->unread_ -= std::min<size_t>(call->unread_, Reader(payload).uint());
      return true;
    default: return false;
  }
}

// Calls the receiver without the lock. Then reports what was taken, and drops the receiver when the
// call is over.
template <class Function>
void Link::tell(const CallPtr& call, std::unique_lock<std::mutex>& lock, const Function& function) {
  call->running_ = true;
  lock.unlock();
  function();
  PeerReceiver dropped;
  lock.lock();
  call->running_ = false;
  if (!call->over_ && call->we_ended_ && call->they_ended_) call->over_ = true;
  if (call->over_) {
    calls_.erase(call->id_);
    dropped = std::exchange(call->receiver, {});
  } else if (call->taken_ >= kTakeBytes) {
    Bytes taken;
    Writer(taken).uint(std::exchange(call->taken_, 0));
    append(Kind::took, call->id_, taken);
    flush(lock);
  }
  lock.unlock();
}

bool Link::begin(uint64_t id, BytesView payload) {
  Reader r(payload);
  const BytesView method = r.str();
  const bool theirs = id != 0 && id % 2 != next_call_ % 2;
  if (!r.ok() || !theirs || !on_call_) return false;
  auto call = std::make_shared<Call>(shared_from_this(), id);
  {
    std::lock_guard lock(mutex_);
    if (!calls_.emplace(id, call).second) return false;
    call->running_ = true;
  }
  PeerReceiver receiver = on_call_(method, r.rest(), call);
  std::unique_lock lock(mutex_);
  call->running_ = false;
  if (!call->over_) call->receiver = std::move(receiver);
  lock.unlock();  // before a receiver that is not needed goes
  return true;
}

void Link::break_off() {
  close();
  std::unordered_map<uint64_t, CallPtr> open;
  {
    std::lock_guard lock(mutex_);
    open.swap(calls_);
    for (auto& [id, call] : open)
      call->over_ = true;
  }
  for (auto& [id, call] : open) {
    if (call->receiver.failed) call->receiver.failed(lost());
    call->receiver = {};
  }
}

}  // namespace pawl::net
