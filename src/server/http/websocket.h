#pragma once
// The protocol of RFC 6455 without sockets: the handshake, outgoing frames, incoming frames.

#include <optional>

#include "base/limits.h"
#include "wire/message.h"

namespace pawl::server {

// Checks that the request asks for a WebSocket upgrade that we support. The error names the fault.
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
  kTryAgainLater = 1013,
};

void append_frame(Bytes& out, Opcode opcode, BytesView payload);
Bytes close_payload(uint16_t code, std::string_view reason);

// Joins client frames into messages. Control frames may come between the fragments of a message.
class FrameReader {
 public:
  struct Event {
    enum class Kind { message, ping, closed, failed } kind;
    Bytes payload;      // of a message or a ping
    uint16_t code = 0;  // of closed and failed: the close code to answer with
    std::string reason{};
  };
  // Consumes bytes and returns the next event, or nothing while it is incomplete. Nothing may
  // follow closed or failed.
  std::optional<Event> next(std::string_view& in);

  size_t held_bytes() const { return held_.size() + message_.size(); }

 private:
  std::optional<Event> control(Opcode opcode, Bytes payload);
  std::optional<Event> data(Opcode opcode, bool last, Bytes payload);
  std::optional<Event> failed(uint16_t code, std::string reason);
  size_t wanted() const;  // bytes that held_ needs before the next decision

  Bytes held_;                            // the incomplete frame
  Bytes message_;                         // the fragments so far
  Opcode opcode_ = Opcode::continuation;  // of the incomplete message
};

}  // namespace pawl::server
