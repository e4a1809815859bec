// Reads requests and writes answers. Streams and WebSockets are in upgrade.cc.

#include "server/http/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/thread.h"
#include "json/text.h"
#include "server/http/detached_peer.h"

namespace pawl::server {
namespace {

// Larger bodies are sent from where they are; smaller ones are copied behind their head.
constexpr size_t kCopyBytes = 16 * 1024;

// Smaller bodies and answers are not counted in the memory budget: the number of requests and of
// connections bounds them.
constexpr size_t kUncountedBytes = 1024;
// A body is counted this many times once it is complete: the bytes, the parsed document, the input
// and the frame are held at the same time.
constexpr size_t kBodyCopies = 4;
// A request with a body of this size or more is handled on another thread: reading it takes long,
// and every other connection of the I/O thread would wait for it.
constexpr size_t kLargeBody = 64 * 1024;
// The owner of their large requests. No tenant has this name.
constexpr std::string_view kStrangers = "~strangers";

wire::Response plain_refusal(const HttpFault& fault) {
  return wire::json_response(fault.status, "{\"error\":" + json::quote(fault.error.reason) +
                                               ",\"message\":" + json::quote(fault.error.message) +
                                               "}");
}

// The refusal of what does not fit the memory budget, or the tenant's share of it.
HttpFault out_of_memory(const MemoryCharge& charge, const char* message) {
  if (charge.over_share()) return {429, limit_error(Limit::memory, 0)};
  return {503, {Code::unavailable, "OVERLOADED", message}};
}

// Replaces an answer that does not fit.
wire::Response too_much_unread(wire::Response response, const MemoryCharge& charge) {
  wire::Response out =
      plain_refusal(out_of_memory(charge, "unread answers fill the server's memory; retry later"));
  for (auto& [name, value] : response.headers)
    if (!wire::same_name(name, "Content-Type"))
      out.headers.emplace_back(std::move(name), std::move(value));
  out.headers.emplace_back("Retry-After", "1");
  return out;
}

wire::Response unanswered() {
  return wire::json_response(500,
                             R"({"error":"NO_ANSWER","message":"the handler gave no answer"})");
}

// The right to answer one request. When it is dropped unused, the destructor answers 500, so that
// no client hangs.
class Answer {
 public:
  Answer(std::shared_ptr<Mailbox> mailbox, Ticket ticket, MemoryCharge::Account account)
      : mailbox_(std::move(mailbox)), ticket_(ticket), account_(std::move(account)) {}
  Answer(Answer&& other) noexcept
      : mailbox_(std::move(other.mailbox_)),
        ticket_(other.ticket_),
        account_(std::move(other.account_)) {}
  Answer& operator=(Answer&&) = delete;
  ~Answer() {
    if (mailbox_) give(unanswered());
  }
  void operator()(wire::Response response) {
    if (mailbox_) give(std::move(response));
  }

 private:
  void give(wire::Response response) {
    auto mailbox = std::exchange(mailbox_, nullptr);
    // The answer is counted from here on: it may wait in the mailbox and behind other answers.
    MemoryCharge charge(mailbox->memory(), MemoryUse::answers, std::move(account_));
    if (response.body.size() > kUncountedBytes && !charge.resize(response.body.size()))
      response = too_much_unread(std::move(response), charge);
    Letter letter{Letter::Kind::answer, ticket_, std::move(response), std::move(charge)};
    // On the loop's own thread the answer needs no mailbox. The mailbox identifies the loop: this
    // object holds it, so its address cannot be reused.
    HttpLoop* here = HttpLoop::current();
    if (here && here->mailbox() == mailbox) return here->deliver(std::move(letter));
    mailbox->post(std::move(letter));
  }
  std::shared_ptr<Mailbox> mailbox_;
  Ticket ticket_;
  MemoryCharge::Account account_;
};

}  // namespace

HttpConnection::HttpConnection(HttpLoop& loop, int fd, uint64_t id,
                               std::unique_ptr<net::TlsSession> tls)
    : loop_(loop),
      fd_(fd),
      id_(id),
      tls_(std::move(tls)),
      seat_(loop.options().tenants),
      parser_(loop.options().limits),
      party_(&loop.parties().join_strangers()),
      head_charge_(loop.options().memory, MemoryUse::heads),
      body_charge_(loop.options().memory, MemoryUse::bodies),
      out_charge_(loop.options().memory, MemoryUse::answers) {
  active_ms_ = sent_ms_ = loop.now_ms();
  // The time limit of a request also covers the TLS handshake.
  if (tls_) request_since_ms_ = loop.now_ms();
  enter();
  set_interest();
}

void HttpConnection::enter() {
  if (!loop_.options().count_strangers) return;
  const Tenants::Entered entered = seat_.enter(network_of(address()));
  if (entered == Tenants::Entered::on_probation) probation_since_ms_ = loop_.now_ms();
  if (entered != Tenants::Entered::no) return;
  const HttpFault fault = too_many_strangers();
  // Before the handshake of TLS there is no way to tell the peer.
  if (tls_) return die();
  refuse(fault);
}

HttpFault HttpConnection::too_many_strangers() {
  probation_since_ms_ = 0;
  return {429, loop_.options().tenants->refuse(Limit::address_connections)};
}

HttpConnection::~HttpConnection() {
  tell_left();
  if (stream_) stream_->over();
  loop_.parties().leave(*party_);
  ::close(fd_);
}

void HttpConnection::die() {
  dead_ = true;
  loop_.mark(*this);
}

void HttpConnection::set_interest() {
  bool reading = !peer_ended_ && (mode_ == Mode::lingering || (!closing_ && held_.empty()));
  uint32_t events = 0;
  if (reading) events |= EPOLLIN;
  // A stream must notice that its reader has gone, although it reads nothing from it.
  if (!peer_ended_ && (reading || mode_ == Mode::streaming)) events |= EPOLLRDHUP;
  if (out_bytes_ > 0) events |= EPOLLOUT;
  if (watched_ && events == interest_) return;
  if (!loop_.watch(fd_, id_, events, watched_)) return die();
  watched_ = true;
  interest_ = events;
}

void HttpConnection::handle(uint32_t events) {
  if (events & (EPOLLHUP | EPOLLERR)) return die();
  if ((events & EPOLLRDHUP) && !(events & EPOLLIN) && mode_ == Mode::streaming) return die();
  if (events & EPOLLIN) {
    readable_ = true;
    ask_to_be_served();
  }
  loop_.mark(*this);
}

void HttpConnection::ask_to_be_served() {
  if (!std::exchange(asked_, true)) loop_.parties().add_ready(*party_, fd_, id_);
}

void HttpConnection::serve() {
  asked_ = false;
  begun_ = 0;
  loop_.mark(*this);
  if (held_.empty()) {
    if (std::exchange(readable_, false)) read();
  } else if (!closing_ && !blocked()) {
    std::string held = std::exchange(held_, {});
    consume(held);
  }
}

void HttpConnection::read() {
  ssize_t got = ::recv(fd_, loop_.scratch(), HttpLoop::kScratchBytes, 0);
  if (got > 0) return received({loop_.scratch(), static_cast<size_t>(got)});
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return die();
  peer_ended_ = true;
  tell_left();
  // A half-closed client still gets its answers; the reader of a stream that closed gets nothing
  // more.
  bool owed = mode_ == Mode::http && (!slots_.empty() || out_bytes_ > 0);
  if (!owed) die();
}

void HttpConnection::received(std::string_view bytes) {
  active_ms_ = loop_.now_ms();
  if (!tls_) return consume(bytes);
  Bytes plain, cipher;
  bool ok = tls_->receive(bytes, plain, cipher);
  if (!cipher.empty()) {
    out_bytes_ += cipher.size();
    out_.push_back(std::move(cipher));
  }
  // The handshake is over; from here on the connection may be idle.
  if (tls_->ready() && parser_.idle()) request_since_ms_ = 0;
  if (!plain.empty()) consume(plain);
  if (!ok) peer_ended_ = true;
}

bool HttpConnection::turn_is_over() const { return !loop_.parties().may_begin(*party_, begun_); }

bool HttpConnection::blocked() const {
  bool upgrading = !slots_.empty() && slots_.back().upgrade;
  return mode_ == Mode::streaming || upgrading || slots_.size() >= limits::kPipelinedRequests ||
         out_bytes_ > limits::kUnsentBytes;
}

void HttpConnection::consume(std::string_view in) {
  if (mode_ == Mode::lingering) {
    lingered_bytes_ += in.size();
    if (lingered_bytes_ > limits::kLingerBytes) die();
    return;
  }
  while (!in.empty() && !closing_ && !dead_) {
    if (mode_ == Mode::websocket) return consume_frames(in);
    if (blocked() || turn_is_over()) {
      held_.append(in);
      // Everything else that blocks a connection ends with an event or an answer.
      if (!blocked()) ask_to_be_served();
      return;
    }
    switch (parser_.feed(in)) {
      case HttpParser::State::more:
        if (request_since_ms_ == 0 && !parser_.idle()) request_since_ms_ = loop_.now_ms();
        if (parser_.idle()) request_since_ms_ = 0;
        return wait_for_rest();
      case HttpParser::State::failed: return refuse(parser_.fault());
      case HttpParser::State::done: complete(); break;
    }
  }
}

std::optional<Judged> HttpConnection::judge_head() {
  const auto& judge = loop_.options().judge_head;
  if (std::exchange(head_judged_, true) || !judge) return std::nullopt;
  wire::Request& request = parser_.request();
  request.peer = this;
  Judged judged = judge(request);
  Tenants* tenants = loop_.options().tenants;
  if (tenants && judged.tenant && !seat_.move_to(judged.tenant)) {
    return Judged{worded({429, tenants->refuse(Limit::connections)}), true};
  }
  if (probation_since_ms_ && !judged.tenant) return Judged{worded(too_many_strangers()), true};
  probation_since_ms_ = 0;
  // A connection that is listed stays in its party until it has been served.
  if (judged.tenant && !asked_) party_ = &loop_.parties().move(*party_, judged.tenant->tenant);
  if (judged.refusal) return judged;
  const MemoryCharge::Account account = judged.tenant ? judged.tenant->account : nullptr;
  body_charge_.move_to(account);
  if (out_charge_.bytes() == 0) out_charge_.move_to(account);
  judged_ = std::move(judged);
  return std::nullopt;
}

void HttpConnection::wait_for_rest() {
  if (parser_.in_body()) {
    // The sender of a body that takes memory must be known.
    if (auto judged = judge_head()) return refuse_with(*std::move(judged->refusal));
    head_charge_.clear();
    if (!body_charge_.resize(parser_.held_bytes())) return refuse_for_memory(body_charge_);
  } else if (parser_.held_bytes() > kUncountedBytes || head_charge_.bytes()) {
    if (!head_charge_.resize(parser_.held_bytes())) return refuse_for_memory(head_charge_);
  }
  owes_continue_ = owes_continue_ || parser_.take_continue();
}

void HttpConnection::complete() {
  ++begun_;
  request_since_ms_ = 0;
  owes_continue_ = false;
  head_charge_.clear();
  std::optional<Judged> refused = judge_head();
  if (refused && refused->close) return refuse_with(*std::move(refused->refusal));
  head_judged_ = false;
  const size_t body = parser_.held_bytes();
  if (!refused && body > kUncountedBytes && !body_charge_.resize(body * kBodyCopies))
    return refuse_for_memory(body_charge_);
  Slot slot;
  slot.keep_alive = parser_.keep_alive();
  slot.http10 = parser_.http10();
  if (judged_.tenant) slot.account = judged_.tenant->account;
  slot.body_charge = std::move(body_charge_);
  body_charge_ = MemoryCharge(loop_.options().memory, MemoryUse::bodies);
  closing_ = !slot.keep_alive;
  slots_.push_back(std::move(slot));
  if (!refused) {
    begin(parser_.take());
  } else {
    slots_.back().head_only = parser_.take().method == "HEAD";
    answer(first_request_ + slots_.size() - 1, *std::move(refused->refusal), {});
  }
  loop_.parties().began(*party_, begun_);
}

void HttpConnection::begin(wire::Request request) {
  Slot& slot = slots_.back();
  slot.head_only = request.method == "HEAD";
  if (wants_websocket(request)) {
    slot.upgrade = true;
    if (auto accept = websocket_accept(request)) slot.accept = *accept;
  }
  Ticket ticket{fd_, id_, first_request_ + slots_.size() - 1};
  Answer answer(loop_.mailbox(), ticket, slot.account);
  Judged judged = std::exchange(judged_, {});
  if (!judged.handle) judged.handle = loop_.handler();
  if (request.body.size() >= kLargeBody)
    return begin_elsewhere(std::move(judged.handle), std::move(request), std::move(answer));
  request.peer = this;
  judged.handle(std::move(request), std::move(answer));
}

void HttpConnection::begin_elsewhere(Judged::Handle handle, wire::Request request,
                                     wire::Respond answer) {
  // Shared by the task and by the refusal when the pool does not take the task.
  struct Held {
    Judged::Handle handle;
    wire::Request request;
    wire::Respond answer;
    DetachedPeer peer;
  };
  std::shared_ptr<Held> held(
      new Held{std::move(handle), std::move(request), std::move(answer), DetachedPeer(address())});
  slots_.back().left = [held] { held->peer.leave(); };
  BackgroundPool::Task task = [held] {
    // Smaller requests come first when there are more threads than processors.
    lower_thread_priority();
    held->request.peer = &held->peer;
    held->handle(std::move(held->request), std::move(held->answer));
  };
  // Strangers are one owner. Tasks without an owner could fill the pool.
  const std::string& owner = party_->tenant;
  if (loop_.large_requests().add(owner.empty() ? kStrangers : std::string_view(owner),
                                 std::move(task)))
    return;
  held->answer(worded({429,
                       {Code::exhausted, "TENANT_LARGE_REQUESTS",
                        "too many large requests of this tenant wait; retry later"}}));
}

std::string HttpConnection::address() const {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes =
      peer.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in6&>(peer).sin6_addr)
          : &reinterpret_cast<sockaddr_in&>(peer).sin_addr;
  return inet_ntop(peer.ss_family, bytes, text, sizeof text) ? text : std::string();
}

void HttpConnection::on_leave(std::function<void()> left) {
  if (!slots_.empty() && !slots_.back().ready) slots_.back().left = std::move(left);
}

void HttpConnection::tell_left() {
  for (Slot& slot : slots_)
    if (auto left = std::exchange(slot.left, nullptr); left && !slot.ready) left();
}

void HttpConnection::refuse(const HttpFault& fault) {
  if (mode_ != Mode::http && mode_ != Mode::streaming) return die();
  refuse_with(worded(fault));
}

wire::Response HttpConnection::worded(const HttpFault& fault) const {
  const auto& refuse = loop_.options().refuse;
  wire::Response response = refuse ? refuse(parser_.request(), fault) : plain_refusal(fault);
  const bool retry = fault.status == 503 || fault.status == 429;
  if (retry && !wire::find_header(response.headers, "Retry-After"))
    response.headers.emplace_back("Retry-After", "1");
  return response;
}

void HttpConnection::refuse_for_memory(const MemoryCharge& charge) {
  refuse(out_of_memory(charge,
                       "requests fill the server's memory; retry later, or send less at once"));
}

// Answers the request that is being read and then closes: the rest of it is not read.
void HttpConnection::refuse_with(wire::Response response) {
  Slot slot;
  slot.ready = true;
  slot.keep_alive = false;
  slot.head_only = parser_.request().method == "HEAD";
  slot.response = std::move(response);
  slots_.push_back(std::move(slot));
  parser_.drop_body();
  head_charge_.clear();
  body_charge_.clear();
  request_since_ms_ = 0;
  owes_continue_ = false;
  closing_ = linger_ = true;
  held_.clear();
  loop_.mark(*this);
}

void HttpConnection::answer(uint64_t request, wire::Response response, MemoryCharge charge) {
  if (request < first_request_ || request - first_request_ >= slots_.size()) return;
  Slot& slot = slots_[request - first_request_];
  if (slot.ready) return;
  slot.ready = true;
  slot.response = std::move(response);
  slot.body_charge.clear();
  slot.answer_charge = std::move(charge);
  loop_.mark(*this);
}

bool HttpConnection::advance() {
  if (mode_ != Mode::http || slots_.empty() || !slots_.front().ready) return false;
  Slot slot = std::move(slots_.front());
  slots_.pop_front();
  ++first_request_;
  active_ms_ = loop_.now_ms();
  write_answer(slot);
  return true;
}

void HttpConnection::write_answer(Slot& slot) {
  wire::Response& response = slot.response;
  if (response.socket) return start_websocket(slot);
  bool keep = slot.keep_alive && !loop_.stopping();
  if (response.stream && !slot.head_only) return start_stream(slot, keep);
  HeadOptions options{slot.head_only ? Framing::none : Framing::length, keep, slot.http10,
                      loop_.date()};
  bool body = !slot.head_only && response.status != 204 && response.status != 304;
  Bytes head;
  bool direct = !tls_ && !out_.empty() && out_.back().size() < kCopyBytes;
  // Plain answers are gathered, so that one send writes them all.
  Bytes& into = direct ? out_.back() : head;
  size_t had = into.size();
  append_head(into, response, options);
  bool copied = body && response.body.size() <= kCopyBytes;
  if (copied) into += response.body;
  if (direct) out_bytes_ += into.size() - had;
  if (!direct) put_owned(std::move(head));
  if (body && !copied) put_owned(std::move(response.body));
  if (!keep) closing_ = true;
}

void HttpConnection::put(BytesView bytes) { put_owned(Bytes(bytes)); }

void HttpConnection::put_owned(Bytes bytes) {
  if (bytes.empty() || dead_) return;
  if (tls_) {
    Bytes cipher;
    if (!tls_->send(bytes, cipher)) return die();
    bytes = std::move(cipher);
  }
  if (out_bytes_ == 0) sent_ms_ = loop_.now_ms();
  out_bytes_ += bytes.size();
  out_.push_back(std::move(bytes));
}

void HttpConnection::flush() {
  bool moved = true;
  while (moved && !dead_) {
    moved = false;
    if (mode_ == Mode::streaming || mode_ == Mode::websocket) pump_stream();
    while (!dead_ && out_bytes_ <= limits::kUnsentBytes && advance())
      moved = true;
    if (owes_continue_ && slots_.empty() && mode_ == Mode::http) {
      owes_continue_ = false;
      put("HTTP/1.1 100 Continue\r\n\r\n");
    }
    const bool was_full = out_bytes_ > limits::kUnsentBytes;
    if (!dead_) send();
    // Answers that are ready had no room before. When everything was sent no event would come.
    if (was_full && out_bytes_ <= limits::kUnsentBytes) moved = true;
  }
  if (dead_) return;
  // The answers that blocked it may have left.
  if (!held_.empty() && !closing_ && !blocked()) ask_to_be_served();
  if (stream_) {
    stream_->set_unsent(out_bytes_);
    out_charge_.clear();
  } else if (out_bytes_ > kUncountedBytes || out_charge_.bytes()) {
    out_charge_.force(out_bytes_);
  }
  bool done =
      slots_.empty() && mode_ != Mode::streaming && mode_ != Mode::websocket && out_bytes_ == 0;
  bool over = closing_ || (peer_ended_ && held_.empty());
  if (done && over && mode_ != Mode::lingering) finish();
  if (!dead_) set_interest();
}

void HttpConnection::send() {
  while (out_bytes_ > 0) {
    if (!write_some()) return;
  }
}

bool HttpConnection::write_some() {
  constexpr size_t kPieces = 64;
  iovec pieces[kPieces];
  size_t count = 0;
  for (Bytes& bytes : out_) {
    if (count == kPieces) break;
    size_t skip = count == 0 ? out_offset_ : 0;
    pieces[count++] = {bytes.data() + skip, bytes.size() - skip};
  }
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  // One piece is the common case, and send() is cheaper than sendmsg().
  ssize_t sent = count == 1 ? ::send(fd_, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL)
                            : ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) die();
    return false;
  }
  sent_ms_ = active_ms_ = loop_.now_ms();
  out_bytes_ -= static_cast<size_t>(sent);
  size_t left = static_cast<size_t>(sent) + out_offset_;
  while (!out_.empty() && left >= out_.front().size()) {
    left -= out_.front().size();
    out_.pop_front();
  }
  out_offset_ = left;
  return true;
}

void HttpConnection::finish() {
  if (tls_) {
    Bytes farewell;
    tls_->close(farewell);
    // Best effort: a peer whose buffer is full sees the end of the connection instead.
    if (::send(fd_, farewell.data(), farewell.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      return die();
  }
  if (!linger_ || peer_ended_) return die();
  ::shutdown(fd_, SHUT_WR);
  mode_ = Mode::lingering;
  linger_since_ms_ = loop_.now_ms();
}

void HttpConnection::sweep() {
  const HttpTimes& times = loop_.options().times;
  int64_t now = loop_.now_ms();
  if (mode_ == Mode::lingering) {
    if (now - linger_since_ms_ > times.linger_ms) die();
    return;
  }
  if (out_bytes_ > 0 && now - sent_ms_ > times.stalled_ms) return die();
  // What it has sent may wait for its turn: that is not its fault.
  const bool said_nothing = !asked_ && held_.empty();
  if (probation_since_ms_ && said_nothing && now - probation_since_ms_ > times.probation_ms)
    return refuse(too_many_strangers());
  if (stream_ && !keepalive_.empty() && out_bytes_ == 0 && now - sent_ms_ >= times.keepalive_ms) {
    put(keepalive_);
    loop_.mark(*this);
  }
  if (request_since_ms_ != 0 && held_.empty() && now - request_since_ms_ > times.request_ms) {
    return refuse({408,
                   {Code::unavailable, "REQUEST_TIMEOUT",
                    "the request did not arrive in time; send it faster"}});
  }
  bool idle = mode_ == Mode::http && slots_.empty() && out_bytes_ == 0 && request_since_ms_ == 0;
  if (idle && now - active_ms_ > times.idle_ms) die();
}

void HttpConnection::begin_stop() {
  if (mode_ == Mode::http && slots_.empty() && out_bytes_ == 0 && request_since_ms_ == 0)
    return die();
  if (mode_ == Mode::websocket) close_websocket(kGoingAway, "the server stops");
}

void HttpConnection::cut_if_unfinished() {
  if (mode_ != Mode::http || slots_.empty()) die();
}

}  // namespace pawl::server
