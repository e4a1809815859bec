#pragma once
// Requests and responses as values, shared by faces and server. This header knows no socket.

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

bool same_name(std::string_view a, std::string_view b);  // ignores ASCII case
// Returns the first header of that name, ignoring case; null when absent.
const std::string* find_header(const Headers& headers, std::string_view name);
// True when a comma-separated header value contains the token: "keep-alive, Upgrade" contains
// "upgrade".
bool lists_token(std::string_view list, std::string_view token);

// The sender of a request, for handlers that answer late. Valid only while the handler runs.
class Peer {
 public:
  // Sets a function that an I/O thread calls if the peer disconnects before its answer.
  virtual void on_leave(std::function<void()> left) = 0;
  virtual std::string address() const = 0;  // its IP address without the port; empty: unknown

 protected:
  ~Peer() = default;
};

struct Request {
  std::string method;
  std::string path;   // as sent, without the query; the router decodes its segments into `params`
  std::string query;  // raw, without the question mark
  Headers headers;
  Bytes body;
  Caller caller;
  std::vector<std::string> params{};  // values of the route's parameters, in order, decoded
  Peer* peer = nullptr;               // null in tests without a connection

  std::string_view header(std::string_view name) const;  // case ignored; empty when absent
  bool has_header(std::string_view name) const;
  // Returns the first query parameter of that name, decoded; nothing when absent.
  std::optional<std::string> query_param(std::string_view name) const;
  // Returns every value of that name, in order.
  std::vector<std::string> query_params(std::string_view name) const;
  // The same for a body of the type application/x-www-form-urlencoded.
  std::optional<std::string> form_param(std::string_view name) const;
};

// A response body that is written piece by piece: NDJSON or Server-Sent Events. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  // Returns false when the peer has disconnected or its buffer is full: stop writing and drop the
  // stream.
  virtual bool write(BytesView piece) = 0;
  virtual void end() = 0;
  // Ends a body that is not complete: the reader sees a broken answer and not a short one.
  virtual void cut() { end(); }
  virtual size_t buffered() const = 0;  // bytes not yet sent; 0 once the peer has disconnected
  // Sets a function that an I/O thread calls once when the stream is over, on either side.
  virtual void on_close(std::function<void()> closed) = 0;
};

// A WebSocket after its handshake. Thread-safe.
class Socket : public Stream {
 public:
  // Sets the receiver of whole messages, text or binary, called on an I/O thread. Set it before
  // `Response::socket` returns: messages that arrive without a receiver are dropped.
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
// Answers one request. It is called once, on any thread, also after the handler has returned.
using Respond = std::move_only_function<void(Response)>;

// Responses with a Content-Type; the body is sent as it is.
Response json_response(int status, std::string body);
Response text_response(int status, std::string text);
std::string_view reason_phrase(int status);

// Decodes %41 to A, and '+' to a space in queries only. Invalid escapes are kept as they are.
std::string percent_decode(std::string_view text, bool plus_is_space);
// Encodes everything but letters, digits and "-._~", so the result is safe as one segment of a path
// or as a value of a query.
std::string percent_encode(std::string_view text);

// Splits "host:port", "host" or "[::1]:port". Brackets are removed.
struct HostPort {
  std::string host, port;
};
// The port is not checked: it may be empty or no number.
HostPort host_and_port(std::string_view authority, std::string_view usual_port);

}  // namespace pawl::wire
