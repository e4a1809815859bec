// Waits for events, accepts connections and closes slow ones.

#include "server/http/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "kernel/access.h"
#include "server/http/connection.h"

namespace pawl::server {
namespace {

// The epoll keys of the listener and the mailbox. The key of a connection is its id and descriptor.
constexpr uint64_t kMailboxKey = ~0ull;
constexpr uint64_t kListenerKey = ~0ull - 1;
constexpr int kDescriptorBits = 24;
constexpr uint64_t kDescriptorMask = (1ull << kDescriptorBits) - 1;
constexpr int kEvents = 256;
constexpr int64_t kSweepMs = 250;
// The number of refused connections that get an answer; further ones are only closed.
constexpr size_t kRefusedConnections = 100;

thread_local HttpLoop* t_loop = nullptr;

int64_t clock_ms(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

void tune(int fd) {
  int one = 1, idle = 60, interval = 10, count = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // TCP keep-alive finds readers that vanished without closing, so that their streams end.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

void add_to(int epoll, int fd, uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

}  // namespace

HttpLoop* HttpLoop::current() { return t_loop; }

HttpLoop::HttpLoop(HttpServer& server, int listener)
    : server_(server),
      mailbox_(std::make_shared<Mailbox>(server.options_.memory)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      listener_(listener),
      scratch_(std::make_unique<char[]>(kScratchBytes)) {
  CHECK(epoll_ >= 0);
  add_to(epoll_, mailbox_->wake_fd(), kMailboxKey);
  if (listener_ >= 0) {
    add_to(epoll_, listener_, kListenerKey);
    accepting_ = true;
  }
  tick();
}

HttpLoop::~HttpLoop() {
  join();
  close_listener();
  ::close(epoll_);
}

void HttpLoop::start() {
  thread_ = std::thread([this] { run(); });
}

void HttpLoop::join() {
  if (thread_.joinable()) thread_.join();
}

void HttpLoop::tick() {
  now_ms_ = clock_ms(CLOCK_MONOTONIC_COARSE);
  int64_t second = clock_ms(CLOCK_REALTIME_COARSE) / 1000;
  if (second == date_second_) return;
  date_second_ = second;
  date_ = http_date(second);
}

void HttpLoop::run() {
  t_loop = this;
  while (!finished())
    turn();
  for (const Letter& letter : mailbox_->close()) {
    if (letter.kind == Letter::Kind::adopt) ::close(letter.to.fd);
  }
  for (auto& connection : connections_) {
    if (!connection) continue;
    connection.reset();
    --server_.open_;
  }
  t_loop = nullptr;
}

void HttpLoop::turn() {
  mailbox_->take_or_sleep(letters_);
  epoll_event events[kEvents];
  int wait = letters_.empty() && !parties_.any_ready() ? static_cast<int>(kSweepMs) : 0;
  if (stopping_ && wait > 0) wait = 20;
  int count = epoll_wait(epoll_, events, kEvents, wait);
  if (letters_.empty()) mailbox_->awake(letters_);
  tick();
  {
    BatchScope run_batch;  // requests that arrived together run as one batch
    for (Letter& letter : letters_)
      deliver(std::move(letter));
    letters_.clear();
    for (int i = 0; i < count; ++i)
      handle_event(events[i].data.u64, events[i].events);
    serve_ready();
  }
  flush_marked();
  if (now_ms_ - swept_ms_ < (stopping_ ? 20 : kSweepMs)) return;
  swept_ms_ = now_ms_;
  sweep();
  flush_marked();
}

void HttpLoop::serve_ready() {
  parties_.begin_turn(now_ms_);
  std::pair<int, uint64_t> next;
  while (parties_.next(next))
    if (auto* connection = find(next.first, next.second)) connection->serve();
}

HttpConnection* HttpLoop::find(int fd, uint64_t id) const {
  if (fd < 0 || static_cast<size_t>(fd) >= connections_.size()) return nullptr;
  HttpConnection* connection = connections_[static_cast<size_t>(fd)].get();
  return connection && connection->id() == id && !connection->dead() ? connection : nullptr;
}

void HttpLoop::handle_event(uint64_t key, uint32_t events) {
  if (key == kListenerKey) return accept_some();
  if (key == kMailboxKey) {
    uint64_t count = 0;
    // The value read does not matter; the descriptor may already have been drained.
    [[maybe_unused]] ssize_t got = ::read(mailbox_->wake_fd(), &count, sizeof count);
    return;
  }
  if (auto* connection = find(static_cast<int>(key & kDescriptorMask), key >> kDescriptorBits))
    connection->handle(events);
}

bool HttpLoop::watch(int fd, uint64_t id, uint32_t events, bool added) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id << kDescriptorBits | static_cast<uint64_t>(fd);
  return epoll_ctl(epoll_, added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

void HttpLoop::deliver(Letter letter) {
  switch (letter.kind) {
    case Letter::Kind::adopt: return adopt(letter.to.fd, false);
    case Letter::Kind::stop: return begin_stop();
    case Letter::Kind::answer:
      if (auto* connection = find(letter.to.fd, letter.to.connection)) {
        connection->answer(letter.to.request, std::move(letter.response), std::move(letter.charge));
      }
      return;
    case Letter::Kind::stream:
      if (auto* connection = find(letter.to.fd, letter.to.connection)) mark(*connection);
      return;
  }
}

void HttpLoop::mark(HttpConnection& connection) {
  if (std::exchange(connection.marked, true)) return;
  // The list holds ids: by the time of the flush a pointer may belong to another connection.
  marked_.emplace_back(connection.fd(), connection.id());
}

void HttpLoop::flush_marked() {
  // Flushing runs callbacks that may mark further connections, so the list may grow during the
  // walk.
  for (size_t i = 0; i < marked_.size(); ++i) {
    auto& slot = connections_[static_cast<size_t>(marked_[i].first)];
    if (!slot || slot->id() != marked_[i].second) continue;
    slot->marked = false;
    if (!slot->dead()) slot->flush();
    if (!slot->dead()) continue;
    // It leaves the table before it is destroyed, because its destructor may call this loop again.
    auto gone = std::move(slot);
    gone.reset();
    --open_;
    --server_.open_;
  }
  marked_.clear();
}

void HttpLoop::accept_some() {
  for (int i = 0; i < 64; ++i) {
    int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      // Out of descriptors: stop accepting until the next sweep instead of spinning.
      if (full && epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr) == 0) accepting_ = false;
      return;
    }
    size_t open = server_.open_.fetch_add(1);
    if (open >= server_.options_.connections) {
      if (open < server_.options_.connections + kRefusedConnections) {
        adopt(fd, true);
      } else {
        ::close(fd);
        --server_.open_;
      }
      continue;
    }
    HttpLoop& peer = *server_.loops_[next_peer_++ % server_.loops_.size()];
    if (!peer.mailbox_->post({Letter::Kind::adopt, {fd}})) {
      ::close(fd);
      --server_.open_;
    }
  }
}

void HttpLoop::adopt(int fd, bool refused) {
  tune(fd);
  if (connections_.size() <= static_cast<size_t>(fd))
    connections_.resize(static_cast<size_t>(fd) + 64);
  auto session = server_.tls_ && !refused ? server_.tls_->accept() : nullptr;
  auto connection = std::make_unique<HttpConnection>(*this, fd, next_id_++, std::move(session));
  ++open_;
  HttpConnection& added = *connection;
  connections_[static_cast<size_t>(fd)] = std::move(connection);
  if (refused) {
    added.refuse({503,
                  {Code::unavailable, "TOO_MANY_CONNECTIONS",
                   "too many connections; try again in a second"}});
  }
}

void HttpLoop::sweep() {
  if (!accepting_ && listener_ >= 0 && !stopping_) {
    add_to(epoll_, listener_, kListenerKey);
    accepting_ = true;
  }
  int64_t grace = server_.options_.times.stop_stream_ms;
  bool cut = stopping_ && now_ms_ >= stop_since_ms_ + grace;
  for (auto& connection : connections_) {
    if (!connection || connection->dead()) continue;
    connection->sweep();
    if (stopping_) connection->begin_stop();
    if (cut) connection->cut_if_unfinished();
  }
}

void HttpLoop::close_listener() {
  if (listener_ >= 0) ::close(std::exchange(listener_, -1));
}

void HttpLoop::begin_stop() {
  if (std::exchange(stopping_, true)) return;
  stop_since_ms_ = now_ms_;
  close_listener();
  for (auto& connection : connections_) {
    if (connection && !connection->dead()) connection->begin_stop();
  }
}

bool HttpLoop::finished() const {
  return stopping_ && (open_ == 0 || now_ms_ >= server_.stop_deadline_ms_);
}

}  // namespace pawl::server
