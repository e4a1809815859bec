// WebSocket framing, server side.

#include "server/http/websocket.h"

#include <openssl/sha.h>

#include <algorithm>

#include "base/utf8.h"

namespace pawl::server {
namespace {

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool is_control(Opcode opcode) { return static_cast<uint8_t>(opcode) >= 8; }

// RFC 6455: 1005, 1006 and 1015 may not be sent; the rest of 1000-1014 and 3000-4999 may.
bool is_close_code(uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

}  // namespace

bool wants_websocket(const wire::Request& request) {
  return wire::lists_token(request.header("Connection"), "upgrade") &&
         wire::lists_token(request.header("Upgrade"), "websocket");
}

Result<std::string> websocket_accept(const wire::Request& request) {
  if (!wants_websocket(request)) {
    return fail(Code::invalid, "UPGRADE_REQUIRED",
                "this path speaks WebSocket; ask with 'Upgrade: websocket'");
  }
  if (request.method != "GET" || request.header("Sec-WebSocket-Version") != "13") {
    return fail(Code::invalid, "BAD_WEBSOCKET",
                "only GET with Sec-WebSocket-Version 13 is supported");
  }
  std::string key(request.header("Sec-WebSocket-Key"));
  auto raw = unbase64(key);
  if (!raw || raw->size() != 16) {
    return fail(Code::invalid, "BAD_WEBSOCKET", "Sec-WebSocket-Key must be 16 bytes in base64");
  }
  key += kGuid;
  uint8_t digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const uint8_t*>(key.data()), key.size(), digest);
  return base64({reinterpret_cast<const char*>(digest), sizeof digest});
}

void append_frame(Bytes& out, Opcode opcode, BytesView payload) {
  out.push_back(static_cast<char>(0x80 | static_cast<uint8_t>(opcode)));
  size_t size = payload.size();
  if (size < 126) {
    out.push_back(static_cast<char>(size));
  } else if (size < 65536) {
    out.push_back(126);
    out.push_back(static_cast<char>(size >> 8));
    out.push_back(static_cast<char>(size));
  } else {
    out.push_back(127);
    out += ordered64(size);
  }
  out += payload;
}

Bytes close_payload(uint16_t code, std::string_view reason) {
  Bytes out;
  out.push_back(static_cast<char>(code >> 8));
  out.push_back(static_cast<char>(code));
  out += reason.substr(0, 123);
  return out;
}

size_t FrameReader::wanted() const {
  if (held_.size() < 2) return 2;
  size_t length = held_[1] & 0x7f;
  if (length == 126) return 4;
  return length == 127 ? 10 : 2;
}

std::optional<FrameReader::Event> FrameReader::failed(uint16_t code, std::string reason) {
  return Event{Event::Kind::failed, {}, code, std::move(reason)};
}

std::optional<FrameReader::Event> FrameReader::next(std::string_view& in) {
  auto take_until = [&](size_t size) {
    size_t part = std::min(size - std::min(size, held_.size()), in.size());
    held_.append(in.substr(0, part));
    in.remove_prefix(part);
    return held_.size() >= size;
  };
  while (true) {
    if (!take_until(2) || !take_until(wanted())) return std::nullopt;
    auto first = static_cast<uint8_t>(held_[0]);
    auto opcode = static_cast<Opcode>(first & 0x0f);
    size_t head = wanted();
    uint64_t length = held_[1] & 0x7f;
    if (head == 4) length = static_cast<uint8_t>(held_[2]) * 256u + static_cast<uint8_t>(held_[3]);
    if (head == 10) length = read_ordered64(std::string_view(held_).substr(2));
    if (first & 0x70) return failed(kProtocolError, "reserved bits are set");
    if (!(held_[1] & 0x80)) return failed(kProtocolError, "client frames must be masked");
    if ((first & 0x0f) > 10 || ((first & 0x0f) > 2 && !is_control(opcode)))
      return failed(kProtocolError, "unknown opcode");
    if (is_control(opcode) && (length > 125 || !(first & 0x80)))
      return failed(kProtocolError, "control frames must be at most 125 bytes and not fragmented");
    if (length > limits::kWebSocketMessageBytes ||
        message_.size() + length > limits::kWebSocketMessageBytes) {
      return failed(kTooBig, "the message is over " +
                                 std::to_string(limits::kWebSocketMessageBytes) + " bytes");
    }
    if (!take_until(head + 4 + length)) return std::nullopt;
    for (uint64_t i = 0; i < length; ++i)
      held_[head + 4 + i] ^= held_[head + (i & 3)];
    Bytes payload = held_.substr(head + 4);
    held_.clear();
    auto event = is_control(opcode) ? control(opcode, std::move(payload))
                                    : data(opcode, first & 0x80, std::move(payload));
    if (event) return event;
  }
}

std::optional<FrameReader::Event> FrameReader::control(Opcode opcode, Bytes payload) {
  if (opcode == Opcode::ping) return Event{Event::Kind::ping, std::move(payload)};
  if (opcode == Opcode::pong) return std::nullopt;
  if (payload.empty()) return Event{Event::Kind::closed, {}, kNormalClosure};
  if (payload.size() == 1) return failed(kProtocolError, "a close frame has a code of two bytes");
  auto code = static_cast<uint16_t>(static_cast<uint8_t>(payload[0]) * 256 +
                                    static_cast<uint8_t>(payload[1]));
  if (!is_close_code(code)) return failed(kProtocolError, "unknown close code");
  if (!is_utf8(std::string_view(payload).substr(2)))
    return failed(kBadText, "the close reason is not UTF-8");
  return Event{Event::Kind::closed, {}, code};
}

std::optional<FrameReader::Event> FrameReader::data(Opcode opcode, bool last, Bytes payload) {
  bool continues = opcode == Opcode::continuation;
  bool under_way = opcode_ != Opcode::continuation;
  if (continues && !under_way)
    return failed(kProtocolError, "a continuation frame has no message to continue");
  if (!continues && under_way) return failed(kProtocolError, "a message began inside another");
  if (!continues) opcode_ = opcode;
  message_ += payload;
  if (!last) return std::nullopt;
  Bytes message = std::exchange(message_, {});
  bool text = std::exchange(opcode_, Opcode::continuation) == Opcode::text;
  if (text && !is_utf8(message)) return failed(kBadText, "a text message is not UTF-8");
  return Event{Event::Kind::message, std::move(message)};
}

}  // namespace pawl::server
