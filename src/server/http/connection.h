#pragma once
// One connection: it parses requests, calls the handler and sends the answers in order. Only its
// I/O thread touches it.

#include <deque>

#include "server/http/loop.h"
#include "server/http/stream.h"
#include "server/http/websocket.h"
#include "server/http/writer.h"

namespace pawl::server {

class HttpConnection final : public wire::Peer {
 public:
  HttpConnection(HttpLoop& loop, int fd, uint64_t id, std::unique_ptr<net::TlsSession> tls);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void handle(uint32_t events);
  void answer(uint64_t request, wire::Response response, MemoryCharge charge);
  void on_leave(std::function<void()> left) override;  // of the request that is being handled
  std::string address() const override;
  void serve();  // reads, or goes on with requests that were left for this turn of the loop
  void flush();  // sends every answer and stream piece that is ready
  void sweep();  // runs a few times a second: closes a connection whose peer is too slow
  void refuse(const HttpFault& fault);
  void begin_stop();
  void
  cut_if_unfinished();  // at stop, after the grace period: cuts streams and incomplete requests

  bool dead() const { return dead_; }
  bool marked = false;  // in the loop's list
  uint64_t id() const { return id_; }
  int fd() const { return fd_; }

 private:
  // A request in flight. Slots are in the order of the requests.
  struct Slot {
    bool ready = false;
    bool keep_alive = true;
    bool http10 = false;
    bool head_only = false;
    bool upgrade = false;  // the request asked for a WebSocket
    std::string accept{};  // the handshake's answer, when the request was valid
    wire::Response response{};
    std::function<void()> left{};
    MemoryCharge::Account account{};  // of the caller's tenant; null: not known
    MemoryCharge body_charge{};       // of the request, until its answer
    MemoryCharge answer_charge{};     // of the response, until it is written
  };
  enum class Mode {
    http,
    streaming,  // the body of the front slot is being sent
    websocket,
    lingering,  // refused: further bytes are dropped until the peer closes
  };

  void read();
  void received(std::string_view bytes);
  void consume(std::string_view in);
  void consume_frames(std::string_view in);
  // Takes a place among the connections of its address. A connection without one is refused.
  void enter();
  // Refuses a connection that is on probation and has not named its tenant.
  HttpFault too_many_strangers();
  // Asks once for each request what its head decides, and counts the connection and the body for
  // the tenant. Returns the refusal.
  std::optional<Judged> judge_head();
  void wait_for_rest();  // the request is not complete: judges its head and counts its bytes
  void complete();       // the request is complete: hands it to the handler
  void begin(wire::Request request);
  void begin_elsewhere(Judged::Handle handle, wire::Request request, wire::Respond answer);
  wire::Response worded(const HttpFault& fault) const;
  void refuse_with(wire::Response response);
  void refuse_for_memory(const MemoryCharge& charge);
  void tell_left();
  bool turn_is_over() const;  // this connection has begun its requests of this turn
  void ask_to_be_served();    // in a turn of the loop
  bool blocked() const;       // no further request is parsed for now
  bool advance();             // writes the front slot if it is ready; false when it is not
  void write_answer(Slot& slot);
  void start_stream(Slot& slot, bool keep);
  void start_websocket(Slot& slot);
  void pump_stream();
  void end_stream(bool keep);
  void close_websocket(uint16_t code, std::string_view reason);
  void put(BytesView bytes);
  void put_owned(Bytes bytes);
  void send();
  bool write_some();
  void finish();  // everything was sent and nothing more will be
  void die();
  void set_interest();

  HttpLoop& loop_;
  const int fd_;
  const uint64_t id_;
  std::unique_ptr<net::TlsSession> tls_;
  ConnectionSeat seat_;
  HttpParser parser_;
  FrameReader frames_;
  Mode mode_ = Mode::http;
  std::deque<Slot> slots_;
  uint64_t first_request_ = 0;              // the number of the front slot
  std::string held_;                        // bytes that were read while blocked
  Party* party_;                            // owned by the loop
  size_t begun_ = 0;                        // requests begun since the loop took it to be served
  bool asked_ = false;                      // it is among the ready connections of its party
  bool readable_ = false;                   // the socket has bytes, or its end, to read
  bool head_judged_ = false;                // of the request that is being read
  Judged judged_;                           // of the same request, once it is judged
  MemoryCharge head_charge_, body_charge_;  // of the request or message that is being read
  MemoryCharge out_charge_;                 // of out_, while no stream counts it
  std::deque<Bytes> out_;                   // bytes to send
  size_t out_offset_ = 0;                   // bytes of the front that were sent
  size_t out_bytes_ = 0;
  // Shared with the writers of the stream, which may outlive the connection.
  std::shared_ptr<HttpStream> stream_;
  Bytes keepalive_;  // the keep-alive message of the stream; empty: none
  bool stream_keeps_alive_ = false;
  bool owes_continue_ = false;
  bool peer_ended_ = false;  // no more bytes will come
  bool closing_ = false;     // no more requests are parsed; close when everything is sent
  bool linger_ = false;
  bool dead_ = false;
  uint32_t interest_ = 0;
  bool watched_ = false;
  int64_t request_since_ms_ = 0;  // when the first byte of the incomplete request came; 0: none
  int64_t active_ms_ = 0;
  int64_t sent_ms_ = 0;
  int64_t linger_since_ms_ = 0;
  int64_t probation_since_ms_ = 0;  // see Tenants::enter; 0: not on probation
  size_t lingered_bytes_ = 0;
};

}  // namespace pawl::server
