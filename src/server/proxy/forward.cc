#include "server/proxy/forward.h"

#include <mutex>

namespace pawl::server {

namespace {

enum class Form : uint8_t { whole = 1, stream = 2, socket = 3 };

void write_headers(Writer& w, const wire::Headers& headers) {
  w.uint(headers.size());
  for (const auto& [name, value] : headers) {
    w.str(name);
    w.str(value);
  }
}

wire::Headers read_headers(Reader& r) {
  wire::Headers out;
  const size_t count = r.count();
  out.reserve(count);
  for (size_t i = 0; i < count && r.ok(); ++i) {
    std::string name(r.str());
    out.emplace_back(std::move(name), r.str());
  }
  return out;
}

Bytes encode_head(Form form, const wire::Response& response) {
  Bytes out;
  Writer w(out);
  w.u8(static_cast<uint8_t>(form));
  w.uint(static_cast<uint64_t>(response.status));
  write_headers(w, response.headers);
  w.str(response.body);
  return out;
}

struct Head {
  Form form;
  wire::Response response;
};

Result<Head> decode_head(BytesView bytes) {
  Reader r(bytes);
  Head out{static_cast<Form>(r.u8()), {}};
  out.response.status = static_cast<int>(r.uint());
  out.response.headers = read_headers(r);
  out.response.body = r.str();
  const bool known = out.form >= Form::whole && out.form <= Form::socket;
  if (r.done() && known && out.response.status >= 100 && out.response.status <= 599) return out;
  return fail(Code::internal, "BAD_FORWARDED_ANSWER",
              "the owner of the shard gave an answer that cannot be read");
}

// The door's side of one request. The link's thread brings pieces; the connection's thread brings
// the stream to write them to, after the head was sent.
class AtDoor : public std::enable_shared_from_this<AtDoor> {
 public:
  AtDoor(wire::Respond respond, Refuse refuse)
      : respond_(std::move(respond)), refuse_(std::move(refuse)) {}

  net::PeerReceiver receiver() {
    auto self = shared_from_this();
    return {.piece = [self](BytesView piece) { self->take(piece); },
            .ended = [self] { self->end({}); },
            .failed = [self](const Error& why) { self->end(why); }};
  }
  void set_call(std::shared_ptr<net::PeerCall> call) {
    std::unique_lock lock(mutex_);
    if (!left_ && !ended_) {
      call_ = std::move(call);
      return;
    }
    const bool ended = ended_;
    lock.unlock();
    if (ended)
      call->end();
    else
      call->cancel();
  }
  void leave() {
    std::unique_lock lock(mutex_);
    left_ = true;
    if (ended_ || !call_) return;
    auto call = std::exchange(call_, nullptr);
    lock.unlock();
    call->cancel();
  }

 private:
  void take(BytesView piece) {
    if (respond_) return answer(piece);
    std::unique_lock lock(mutex_);
    if (!stream_) {
      early_.emplace_back(piece);
      return;
    }
    auto stream = stream_;
    lock.unlock();
    if (!stream->write(piece)) leave();
  }
  void answer(BytesView piece) {
    wire::Respond respond = std::exchange(respond_, {});
    Result<Head> head = decode_head(piece);
    if (!head) {
      leave();
      return respond(refuse_(head.error()));
    }
    auto self = shared_from_this();
    if (head->form == Form::stream)
      head->response.stream = [self](std::shared_ptr<wire::Stream> stream) {
        self->begin(std::move(stream));
      };
    if (head->form == Form::socket)
      head->response.socket = [self](std::shared_ptr<wire::Socket> socket) {
        socket->on_message([self](std::string text) { self->send(text); });
        self->begin(std::move(socket));
      };
    respond(std::move(head->response));
  }
  void begin(std::shared_ptr<wire::Stream> stream) {
    // Weak: the stream keeps this function, and this object keeps the stream.
    stream->on_close([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->leave();
    });
    bool good = true;
    std::unique_lock lock(mutex_);
    while (good && !early_.empty()) {
      std::vector<Bytes> pieces = std::exchange(early_, {});
      lock.unlock();
      for (const Bytes& piece : pieces)
        good = good && stream->write(piece);
      lock.lock();
    }
    const bool over = ended_, failed = failed_;
    if (!over) stream_ = stream;
    lock.unlock();
    if (failed)
      stream->cut();
    else if (over)
      stream->end();
    if (!good) leave();
  }
  void send(const std::string& text) {
    std::shared_ptr<net::PeerCall> call;
    {
      std::lock_guard lock(mutex_);
      call = call_;
    }
    if (call && !call->send(text)) leave();
  }
  // The owner's answer is complete, or the call failed.
  void end(const std::optional<Error>& why) {
    std::shared_ptr<wire::Stream> stream;
    std::shared_ptr<net::PeerCall> call;
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return;
      failed_ = why.has_value();
      stream = std::exchange(stream_, nullptr);
      call.swap(call_);
    }
    if (call) call->end();  // a call is over when both sides have ended it
    if (respond_) {
      wire::Respond respond = std::exchange(respond_, {});
      respond(refuse_(
          why ? *why : Error{Code::internal, "NO_ANSWER", "the owner of the shard gave none"}));
    }
    if (stream && why)
      stream->cut();
    else if (stream)
      stream->end();
  }

  wire::Respond respond_;  // used by the link's thread alone; empty once it was called
  const Refuse refuse_;
  std::mutex mutex_;
  std::shared_ptr<net::PeerCall> call_;
  std::vector<Bytes> early_;              // came before the stream
  std::shared_ptr<wire::Stream> stream_;  // shared with the connection
  bool left_ = false, ended_ = false, failed_ = false;
};

// The owner's side of one request: the sender as the handler sees it, and the stream that the
// handler writes.
class AtOwner final : public wire::Peer, public wire::Socket {
 public:
  AtOwner(std::shared_ptr<net::PeerCall> call, std::string address)
      : call_(std::move(call)), address_(std::move(address)) {}
  void on_leave(std::function<void()> left) override { set(left_, std::move(left)); }
  std::string address() const override { return address_; }
  bool write(BytesView piece) override { return call_->send(piece); }
  void end() override {
    call_->end();
    close();
  }
  void cut() override {
    call_->cancel();
    close();
  }
  size_t buffered() const override { return call_->unread(); }
  void on_close(std::function<void()> closed) override { set(closed_, std::move(closed)); }
  void on_message(std::function<void(std::string)> text) override {
    std::lock_guard lock(mutex_);
    message_ = std::move(text);
  }
  // The client sent a message on its WebSocket.
  void take(BytesView text) {
    std::function<void(std::string)> message;
    {
      std::lock_guard lock(mutex_);
      message = message_;
    }
    if (message) message(std::string(text));
  }
  // The client left, or the link broke.
  void close() {
    std::function<void()> left, closed;
    {
      std::lock_guard lock(mutex_);
      gone_ = true;
      left.swap(left_);
      closed.swap(closed_);
      message_ = nullptr;
    }
    if (left) left();
    if (closed) closed();
  }

 private:
  void set(std::function<void()>& of, std::function<void()> to) {
    {
      std::lock_guard lock(mutex_);
      if (!gone_) {
        of = std::move(to);
        return;
      }
    }
    if (to) to();
  }
  const std::shared_ptr<net::PeerCall> call_;
  const std::string address_;
  std::mutex mutex_;
  bool gone_ = false;
  std::function<void()> left_, closed_;
  std::function<void(std::string)> message_;
};

void send_answer(const std::shared_ptr<AtOwner>& owner, net::PeerCall& call,
                 wire::Response response) {
  owner->on_leave({});  // a client that leaves from now on only closes its stream
  if (!response.stream && !response.socket) {
    call.send(encode_head(Form::whole, response));
    return call.end();
  }
  call.send(encode_head(response.socket ? Form::socket : Form::stream, response));
  if (response.socket) return response.socket(owner);
  response.stream(owner);
}

}  // namespace

Bytes encode(const Forwarded& forwarded) {
  const wire::Request& request = forwarded.request;
  Bytes out;
  Writer w(out);
  w.uint(forwarded.shard);
  w.str(forwarded.address);
  for (const std::string& text : {request.method, request.path, request.query,
                                  request.caller.tenant, request.caller.user, request.caller.roles})
    w.str(text);
  write_headers(w, request.headers);
  w.str(request.body);
  return out;
}

Result<Forwarded> decode_forwarded(BytesView bytes) {
  Reader r(bytes);
  Forwarded out;
  out.shard = static_cast<uint32_t>(r.uint());
  out.address = r.str();
  wire::Request& request = out.request;
  for (std::string* text : {&request.method, &request.path, &request.query, &request.caller.tenant,
                            &request.caller.user, &request.caller.roles})
    *text = r.str();
  request.headers = read_headers(r);
  request.body = r.str();
  if (r.done()) return out;
  return fail(Code::invalid, "BAD_FORWARDED_REQUEST", "a forwarded request cannot be read");
}

void forward(net::Peers& peers, const std::string& node, uint32_t shard, wire::Request request,
             wire::Respond respond, Refuse refuse) {
  auto door = std::make_shared<AtDoor>(std::move(respond), std::move(refuse));
  std::string address;
  if (request.peer) {
    address = request.peer->address();
    request.peer->on_leave([door] { door->leave(); });
    request.peer = nullptr;
  }
  door->set_call(peers.open(node, kForwardedHttp,
                            encode(Forwarded{shard, std::move(request), std::move(address)}),
                            door->receiver()));
}

net::PeerReceiver answer_forwarded(BytesView first, const std::shared_ptr<net::PeerCall>& call,
                                   const RunForwarded& run) {
  Result<Forwarded> forwarded = decode_forwarded(first);
  if (!forwarded) {
    call->cancel();
    return {};
  }
  auto owner = std::make_shared<AtOwner>(call, std::move(forwarded->address));
  forwarded->request.peer = owner.get();
  run(forwarded->shard, std::move(forwarded->request),
      [owner, call](wire::Response response) { send_answer(owner, *call, std::move(response)); });
  return {.piece = [owner](BytesView text) { owner->take(text); },
          .failed = [owner](const Error&) { owner->close(); }};
}

}  // namespace pawl::server
