#include "net/peer/peers.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/peer/peer_tls.h"

namespace pawl::net {

namespace {

// Connections that others may hold, and how long a failed connection waits before the next try.
constexpr size_t kMaxGuests = 1024;
constexpr std::chrono::milliseconds kFirstWait{50}, kLongestWait{2000};
// Calls that wait for a connection.
constexpr size_t kMaxWaiting = 10'000;

Error unreachable(const std::string& node) {
  return {Code::unavailable, std::string(kPeerUnreachable.name),
          "node '" + node + "' cannot be reached now; ask again"};
}

}  // namespace

struct PeerListener::Guest {
  std::thread thread{};
  std::mutex mutex{};
  int socket = -1;  // while the handshake runs
  std::shared_ptr<Link> link{};
  std::atomic<bool> left{false};
};

PeerListener::PeerListener(int socket, PeerIdentity identity, std::shared_ptr<const PeerTls> tls,
                           OnPeerCall on_call)
    : socket_(socket),
      identity_(std::move(identity)),
      tls_(std::move(tls)),
      on_call_(std::move(on_call)),
      accepter_([this] { accept_loop(); }) {}

PeerListener::~PeerListener() {
  ending_ = true;
  accepter_.join();
  ::close(socket_);
  std::lock_guard lock(mutex_);
  for (Guest& guest : guests_) {
    std::lock_guard own(guest.mutex);
    if (guest.link)
      guest.link->close();
    else if (guest.socket >= 0)
      ::shutdown(guest.socket, SHUT_RDWR);
  }
  for (Guest& guest : guests_)
    guest.thread.join();
}

void PeerListener::sweep() {
  for (auto it = guests_.begin(); it != guests_.end();) {
    if (!it->left) {
      ++it;
      continue;
    }
    it->thread.join();
    it = guests_.erase(it);
  }
}

void PeerListener::accept_loop() {
  while (!ending_) {
    pollfd one{socket_, POLLIN, 0};
    if (poll(&one, 1, 200) <= 0) continue;
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    std::lock_guard lock(mutex_);
    sweep();
    if (guests_.size() >= kMaxGuests) {
      ::close(socket);
      continue;
    }
    Guest& guest = guests_.emplace_back();
    guest.socket = socket;
    guest.thread = std::thread([this, &guest, socket] { serve(guest, socket); });
  }
}

void PeerListener::serve(Guest& guest, int socket) {
  auto pipe = accept_from(socket, identity_, tls_.get());
  if (!pipe) {
    log(Level::warn, "a connection of another node was refused", {{"why", pipe.error().message}});
  } else {
    const std::string node = (*pipe)->peer();
    auto link = Link::make(*std::move(pipe), false,
                           [this, node](std::string_view method, BytesView first,
                                        const std::shared_ptr<PeerCall>& call) {
                             return on_call_(node, method, first, call);
                           });
    {
      std::lock_guard lock(guest.mutex);
      guest.link = link;
    }
    if (ending_) link->close();
    link->read_all();
    std::lock_guard lock(guest.mutex);
    guest.link.reset();
    guest.socket = -1;
  }
  guest.left = true;
}

// A call that may have to wait for its connection.
class Peers::LateCall final : public PeerCall {
 public:
  bool send(BytesView piece) override {
    std::lock_guard lock(mutex_);
    if (real_) return real_->send(piece);
    if (over_ || early_bytes_ > kWindow) return false;
    early_bytes_ += piece.size();
    early_.emplace_back(piece);
    return true;
  }
  void end() override {
    std::lock_guard lock(mutex_);
    if (real_) return real_->end();
    ended_ = true;
  }
  void cancel() override {
    std::shared_ptr<PeerCall> real;
    {
      std::lock_guard lock(mutex_);
      over_ = true;
      real = std::exchange(real_, nullptr);
    }
    if (real) real->cancel();
  }
  size_t unread() const override {
    std::lock_guard lock(mutex_);
    return real_ ? real_->unread() : early_bytes_;
  }
  // Opens it on the link. False: the link is broken, and the call may be opened on another one.
  bool open_on(Link& link, std::string_view method, BytesView first, PeerReceiver& receiver) {
    std::lock_guard lock(mutex_);
    if (over_) return true;
    if (link.broken()) return false;
    real_ = link.open(method, first, receiver);
    if (!real_) return false;
    for (const Bytes& piece : early_)
      real_->send(piece);
    early_.clear();
    if (ended_) real_->end();
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<PeerCall> real_;
  std::vector<Bytes> early_;
  size_t early_bytes_ = 0;
  bool over_ = false, ended_ = false;
};

struct Peers::Peer {
  struct Waiting {
    std::shared_ptr<LateCall> call;
    std::string method;
    Bytes first;
    PeerReceiver receiver;
  };
  std::string node, address;
  std::mutex mutex{};
  std::condition_variable wake{};
  std::vector<Waiting> waiting{};
  std::shared_ptr<Link> link{};  // null while there is no connection
  bool failing = false;          // the last attempt failed
  bool ending = false;
  std::thread thread{};
};

Peers::Peers(PeerIdentity identity, std::shared_ptr<const PeerTls> tls)
    : identity_(std::move(identity)), tls_(std::move(tls)) {}

Peers::~Peers() { set({}); }

void Peers::end(const PeerPtr& peer) {
  {
    std::lock_guard lock(peer->mutex);
    peer->ending = true;
    if (peer->link) peer->link->close();
    peer->wake.notify_all();
  }
  peer->thread.join();
}

void Peers::set(const std::map<std::string, std::string>& addresses) {
  std::vector<PeerPtr> gone;
  {
    std::lock_guard lock(mutex_);
    for (auto it = peers_.begin(); it != peers_.end();) {
      auto known = addresses.find(it->first);
      if (known != addresses.end() && known->second == it->second->address) {
        ++it;
        continue;
      }
      gone.push_back(std::move(it->second));
      it = peers_.erase(it);
    }
    for (const auto& [node, address] : addresses) {
      PeerPtr& peer = peers_[node];
      if (peer) continue;
      peer = std::make_shared<Peer>();
      peer->node = node;
      peer->address = address;
      peer->thread = std::thread([this, peer = peer] { keep(peer); });
    }
  }
  for (const PeerPtr& peer : gone)
    end(peer);
}

void Peers::refuse_waiting(Peer& peer, const Error& why) {
  std::vector<Peer::Waiting> waiting;
  {
    std::lock_guard lock(peer.mutex);
    waiting.swap(peer.waiting);
    peer.failing = true;
  }
  for (Peer::Waiting& one : waiting)
    if (one.receiver.failed) one.receiver.failed(why);
}

// Opens the calls that waited, in their order. What does not go out any more waits for the next
// connection. Needs the lock.
void Peers::attach(Peer& peer) {
  peer.failing = false;
  std::erase_if(peer.waiting, [&](Peer::Waiting& one) {
    return one.call->open_on(*peer.link, one.method, one.first, one.receiver);
  });
}

// The thread of one peer: connects, reads until the connection breaks, and begins again.
void Peers::keep(const PeerPtr& peer) {
  auto wait = kFirstWait;
  while (true) {
    {
      std::lock_guard lock(peer->mutex);
      if (peer->ending) break;
    }
    auto pipe = connect_to(peer->address, identity_, tls_.get());
    if (pipe) {
      auto link = Link::make(*std::move(pipe), true, {});
      {
        std::lock_guard lock(peer->mutex);
        peer->link = link;
        if (peer->ending) link->close();
        attach(*peer);
      }
      link->read_all();
      std::lock_guard lock(peer->mutex);
      peer->link.reset();
      wait = kFirstWait;
      continue;
    }
    refuse_waiting(*peer, pipe.error());
    std::unique_lock lock(peer->mutex);
    peer->wake.wait_for(lock, wait, [&] { return peer->ending; });
    wait = std::min(wait * 2, kLongestWait);
  }
  refuse_waiting(*peer, unreachable(peer->node));
}

std::shared_ptr<PeerCall> Peers::open(const std::string& node, std::string_view method, Bytes first,
                                      PeerReceiver receiver) {
  PeerPtr peer;
  {
    std::lock_guard lock(mutex_);
    if (auto it = peers_.find(node); it != peers_.end()) peer = it->second;
  }
  auto call = std::make_shared<LateCall>();
  auto refuse = [&] {
    if (receiver.failed) receiver.failed(unreachable(node));
    return call;
  };
  if (!peer) return refuse();
  std::unique_lock lock(peer->mutex);
  if (peer->link && call->open_on(*peer->link, method, first, receiver)) return call;
  // A peer that did not answer a moment ago is not waited for.
  if (peer->failing || peer->ending || peer->waiting.size() >= kMaxWaiting) {
    lock.unlock();
    return refuse();
  }
  peer->waiting.push_back({call, std::string(method), std::move(first), std::move(receiver)});
  return call;
}

void Peers::ask(const std::string& node, std::string_view method, Bytes message, Done done) {
  struct Asked {
    Bytes answer;
    Done done;
  };
  auto asked = std::make_shared<Asked>(Asked{{}, std::move(done)});
  auto call = open(node, method, std::move(message),
                   {.piece = [asked](BytesView piece) { asked->answer.append(piece); },
                    .ended = [asked] { asked->done(std::move(asked->answer)); },
                    .failed = [asked](const Error& why) { asked->done(fail(why)); }});
  call->end();
}

bool Peers::is_connected(const std::string& node) const {
  std::lock_guard lock(mutex_);
  auto it = peers_.find(node);
  if (it == peers_.end()) return false;
  std::lock_guard own(it->second->mutex);
  return it->second->link && !it->second->link->broken();
}

}  // namespace pawl::net
