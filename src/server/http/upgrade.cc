// Connections that carry a stream: streamed bodies and WebSockets.

#include "base/log.h"
#include "server/http/connection.h"

namespace pawl::server {

static constexpr std::string_view kEventComment = ":\n";

void HttpConnection::start_stream(Slot& slot, bool keep) {
  auto kind = slot.http10 ? HttpStream::Kind::plain : HttpStream::Kind::chunked;
  keep = keep && !slot.http10;
  Bytes head;
  append_head(head, slot.response,
              {slot.http10 ? Framing::close : Framing::chunked, keep, slot.http10, loop_.date()});
  put_owned(std::move(head));
  mode_ = Mode::streaming;
  stream_keeps_alive_ = keep;
  stream_ = std::make_shared<HttpStream>(kind, Ticket{fd_, id_, first_request_ - 1},
                                         loop_.mailbox(), slot.account);
  keepalive_.clear();
  // A comment line, which readers of Server-Sent Events ignore.
  const std::string* type = wire::find_header(slot.response.headers, "Content-Type");
  if (type && type->starts_with("text/event-stream")) {
    if (slot.http10)
      keepalive_ = kEventComment;
    else
      append_chunk(keepalive_, kEventComment);
  }
  if (!slot.response.body.empty()) stream_->write(slot.response.body);
  slot.response.stream(stream_);
  // Pieces that were written at once are sent with the head.
  pump_stream();
}

void HttpConnection::start_websocket(Slot& slot) {
  if (slot.accept.empty()) {
    slot.response = wire::json_response(
        426,
        R"({"error":"UPGRADE_REQUIRED","message":"this path speaks WebSocket, version 13; ask with GET and 'Upgrade: websocket'"})");
    slot.response.headers.emplace_back("Upgrade", "websocket");
    slot.response.headers.emplace_back("Sec-WebSocket-Version", "13");
    return write_answer(slot);
  }
  auto socket = std::move(slot.response.socket);
  wire::Response handshake;
  handshake.status = 101;
  handshake.headers = std::move(slot.response.headers);
  handshake.headers.emplace_back("Upgrade", "websocket");
  handshake.headers.emplace_back("Connection", "Upgrade");
  handshake.headers.emplace_back("Sec-WebSocket-Accept", slot.accept);
  Bytes head;
  append_head(head, handshake, {Framing::none, true, false, loop_.date()});
  put_owned(std::move(head));
  mode_ = Mode::websocket;
  stream_ = std::make_shared<HttpStream>(HttpStream::Kind::websocket,
                                         Ticket{fd_, id_, first_request_ - 1}, loop_.mailbox(),
                                         slot.account);
  keepalive_.clear();
  append_frame(keepalive_, Opcode::ping, {});
  socket(stream_);
  pump_stream();
  if (loop_.stopping()) close_websocket(kGoingAway, "the server stops");
}

void HttpConnection::pump_stream() {
  if (!stream_ || dead_) return;
  HttpStream::Taken taken = stream_->take();
  if (taken.overrun) {
    log(Level::info, "a stream was cut because its reader does not keep up",
        {{"unread_bytes", out_bytes_ + taken.bytes.size()}});
    return die();
  }
  put_owned(std::move(taken.bytes));
  if (taken.ended) end_stream(stream_keeps_alive_ && !taken.cut);
}

void HttpConnection::end_stream(bool keep) {
  auto stream = std::exchange(stream_, nullptr);
  if (mode_ == Mode::websocket || !keep) closing_ = true;
  linger_ = linger_ || mode_ == Mode::websocket;
  mode_ = Mode::http;
  stream->over();
}

void HttpConnection::consume_frames(std::string_view in) {
  using Kind = FrameReader::Event::Kind;
  while (mode_ == Mode::websocket && !dead_) {
    auto event = frames_.next(in);
    if (!event) {
      // The rest of a large message is still to come.
      if (!body_charge_.resize(frames_.held_bytes()))
        close_websocket(kTryAgainLater, "the server is out of memory for messages");
      return;
    }
    body_charge_.clear();
    switch (event->kind) {
      case Kind::message: stream_->message(std::move(event->payload)); break;
      case Kind::ping: {
        // A peer that pings but does not read the pongs is treated as a slow reader.
        if (out_bytes_ > limits::kUnsentBytes) return die();
        Bytes pong;
        append_frame(pong, Opcode::pong, event->payload);
        put_owned(std::move(pong));
        break;
      }
      case Kind::closed:
      case Kind::failed: return close_websocket(event->code, event->reason);
    }
  }
}

void HttpConnection::close_websocket(uint16_t code, std::string_view reason) {
  if (mode_ != Mode::websocket) return;
  Bytes frame = stream_->take().bytes;
  append_frame(frame, Opcode::close, close_payload(code, reason));
  put_owned(std::move(frame));
  end_stream(false);
  loop_.mark(*this);
}

}  // namespace pawl::server
