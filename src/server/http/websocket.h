#pragma once
// The bytes of RFC 6455: the handshake's answer, frames out, frames in. No socket here.

#include <optional>

#include "base/limits.h"
#include "wire/message.h"

namespace pawl::server {

// Whether the request asks for an upgrade that we can give; the error names what is wrong with it.
bool wants_websocket(const wire::Request& request);
Result<std::string> websocket_accept(
    const wire::Request& request);  // the Sec-WebSocket-Accept value

enum class Opcode : uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10
};
enum CloseCode : uint16_t {
  kNormalClosure = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kBadText = 1007,
  kTooBig = 1009,
};

void append_frame(Bytes& out, Opcode opcode, BytesView payload);
Bytes close_payload(uint16_t code, std::string_view reason);

// Client frames become messages. Control frames may stand between the fragments of a message.
class FrameReader {
 public:
  struct Event {
    enum class Kind { message, ping, closed, failed } kind;
    Bytes payload;      // of a message or ping
    uint16_t code = 0;  // of closed or failed: what to answer
    std::string reason{};
  };
  // Takes bytes; nothing when no whole event is there yet. After closed or failed, stop.
  std::optional<Event> next(std::string_view& in);

 private:
  std::optional<Event> control(Opcode opcode, Bytes payload);
  std::optional<Event> data(Opcode opcode, bool last, Bytes payload);
  std::optional<Event> failed(uint16_t code, std::string reason);
  size_t wanted() const;  // bytes that held_ needs before anything can be decided

  Bytes held_;                            // the frame under way
  Bytes message_;                         // fragments so far
  Opcode opcode_ = Opcode::continuation;  // of the message under way
};

}  // namespace pawl::server
