#pragma once
// Requests and responses as values: what faces and server share. No socket here.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/caller.h"
#include "wire/status.h"

namespace pawl::wire {

using Headers = std::vector<std::pair<std::string, std::string>>;

bool same_name(std::string_view a, std::string_view b);  // ASCII letters without case
// The first header of that name, case ignored; nothing when absent.
const std::string* find_header(const Headers& headers, std::string_view name);
// Whether a comma-separated header value names the token: "keep-alive, Upgrade" has "upgrade".
bool lists_token(std::string_view list, std::string_view token);

// Who sent a request, for handlers that answer late. Only while the handler runs.
class Peer {
 public:
  // Called from an I/O thread if the peer leaves before its answer.
  virtual void on_leave(std::function<void()> left) = 0;

 protected:
  ~Peer() = default;
};

struct Request {
  std::string method;
  std::string path;   // percent-decoded per segment by `segments`; raw here, without the query
  std::string query;  // raw, without the question mark
  Headers headers;
  Bytes body;
  Caller caller;
  std::vector<std::string> params{};  // of the route's pattern, in order, decoded
  Peer* peer = nullptr;               // absent in tests that have no connection

  std::string_view header(std::string_view name) const;  // case ignored; empty when absent
  bool has_header(std::string_view name) const;
  // The first query parameter of that name, decoded; nothing when absent.
  std::optional<std::string> query_param(std::string_view name) const;
  std::vector<std::string> query_params(std::string_view name) const;
};

// A body that is written piece by piece: NDJSON, Server-Sent Events. Safe from any thread.
class Stream {
 public:
  virtual ~Stream() = default;
  // False when the peer has gone or its buffer is over the limit: stop and forget the stream.
  virtual bool write(BytesView piece) = 0;
  virtual void end() = 0;
  virtual size_t buffered() const = 0;  // bytes accepted and not yet sent
  // Called once from an I/O thread when the stream is over, whoever ended it.
  virtual void on_close(std::function<void()> closed) = 0;
};

// A WebSocket after its handshake. Safe from any thread.
class Socket : public Stream {
 public:
  // Text or binary, whole, from an I/O thread. Set it before `Response::socket` returns: what comes
  // while nobody listens is dropped.
  virtual void on_message(std::function<void(std::string)> text) = 0;
};

struct Response {
  int status = 200;
  Headers headers{};
  Bytes body{};
  // When set, the body is streamed (chunked): called once, after the head is sent.
  std::function<void(std::shared_ptr<Stream>)> stream{};
  // When set and the request asked for an upgrade, the connection becomes a WebSocket.
  std::function<void(std::shared_ptr<Socket>)> socket{};
};
using Respond = std::move_only_function<void(Response)>;

Response json_response(int status, std::string body);
Response text_response(int status, std::string text);
std::string_view reason_phrase(int status);

// %41 -> A; '+' -> space only in queries. Bad escapes stay as they are.
std::string percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text);

// Of "host:port", "host" or "[::1]:port"; no brackets are left.
struct HostPort {
  std::string host, port;
};
HostPort host_and_port(std::string_view authority, std::string_view usual_port);

}  // namespace pawl::wire
