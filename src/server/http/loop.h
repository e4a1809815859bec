#pragma once
// A loop is one I/O thread. It owns its connections and waits for their sockets and for its
// mailbox.

#include <memory>
#include <thread>
#include <vector>

#include "server/http/mailbox.h"
#include "server/http/parties.h"
#include "server/http/server.h"

namespace pawl::server {

class HttpConnection;

class HttpLoop {
 public:
  // One loop accepts: it has the listener and gives the sockets to the others, which have -1. It
  // runs no request, because a thread that runs a request may run turns for seconds. It only
  // answers connections over the limit with a refusal.
  HttpLoop(HttpServer& server, int listener);
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  void start();
  void join();
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  // Delivers an answer that is given on the loop's own thread, without the mailbox.
  static HttpLoop* current();
  void deliver(Letter letter);

  // Called by its connections.
  const HttpOptions& options() const { return server_.options_; }
  const wire::Handler& handler() const { return server_.handler_; }
  BackgroundPool& large_requests() { return *server_.large_requests_; }
  int64_t now_ms() const { return now_ms_; }
  std::string_view date() const { return date_; }
  bool stopping() const { return stopping_; }
  bool watch(int fd, uint64_t id, uint32_t events, bool added);  // false: the kernel refused it
  void mark(HttpConnection& connection);                         // flush it before the next wait
  // A turn of the loop begins a bounded number of requests, divided between the tenants and the
  // connections that are ready: who has sent many does not delay the others by all of them.
  Parties& parties() { return parties_; }
  char* scratch() { return scratch_.get(); }
  static constexpr size_t kScratchBytes = 64 * 1024;

 private:
  void run();
  void turn();
  void serve_ready();
  void handle_event(uint64_t key, uint32_t events);
  void accept_some();
  void adopt(int fd, bool refused);
  void flush_marked();
  void sweep();
  void begin_stop();
  bool finished() const;
  void tick();
  void close_listener();
  HttpConnection* find(int fd, uint64_t id) const;

  HttpServer& server_;
  // Shared with pending answers, which may outlive the loop.
  const std::shared_ptr<Mailbox> mailbox_;
  int epoll_ = -1;
  int listener_ = -1;
  bool accepting_ = false;
  Parties parties_;  // before the connections, which leave it
  std::vector<std::unique_ptr<HttpConnection>> connections_;  // by descriptor
  size_t open_ = 0;
  uint64_t next_id_ = 1;
  size_t next_peer_ = 0;
  std::vector<std::pair<int, uint64_t>> marked_;
  std::vector<Letter> letters_;
  std::unique_ptr<char[]> scratch_;
  int64_t now_ms_ = 0;
  int64_t swept_ms_ = 0;
  int64_t stop_since_ms_ = 0;
  int64_t date_second_ = 0;
  std::string date_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace pawl::server
