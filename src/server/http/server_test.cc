#include <gtest/gtest.h>

#include "server/http/server.h"
#include "server/http/test_client.h"

namespace pawl::server {
namespace {

using testing::Client;
using testing::Got;

// Answers on another thread after the milliseconds that the path names: "/after/20".
class Later {
 public:
  ~Later() {
    for (auto& thread : threads_)
      thread.join();
  }
  void answer(int ms, wire::Respond respond, std::string text) {
    threads_.emplace_back([ms, respond = std::move(respond), text]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      respond(wire::text_response(200, text));
    });
  }

 private:
  std::vector<std::thread> threads_;
};

class HttpTest : public ::testing::Test {
 protected:
  void start(HttpOptions options = {}) {
    options.address = {"127.0.0.1", 0};
    auto started = HttpServer::start(options, [this](wire::Request request, wire::Respond respond) {
      handle(std::move(request), std::move(respond));
    });
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  void TearDown() override {
    if (server_) server_->stop(2000);
  }
  uint16_t port() const { return server_->address().port; }

  void handle(wire::Request request, wire::Respond respond) {
    ++handled_;
    if (request.path.starts_with("/after/")) {
      std::lock_guard lock(mutex_);
      return later_.answer(std::stoi(request.path.substr(7)), std::move(respond), request.path);
    }
    if (request.path == "/large")
      return respond(wire::text_response(200, std::string(3'000'000, 'x')));
    if (request.path == "/drop") return;
    if (request.path == "/empty") return respond({204});
    if (request.path == "/inject") {
      wire::Response response = wire::text_response(200, "x");
      response.headers.emplace_back("X-Bad", "a\r\nSet-Cookie: b");
      return respond(std::move(response));
    }
    if (request.path == "/stream") {
      wire::Response response = wire::text_response(200, "");
      if (request.query == "events") response.headers = {{"Content-Type", "text/event-stream"}};
      response.stream = [this](std::shared_ptr<wire::Stream> stream) {
        std::lock_guard lock(mutex_);
        stream->on_close([this] { ++closed_; });
        stream_ = stream;
      };
      return respond(std::move(response));
    }
    if (request.path == "/socket") {
      wire::Response response;
      response.socket = [this](std::shared_ptr<wire::Socket> socket) {
        std::lock_guard lock(mutex_);
        stream_ = std::move(socket);
      };
      return respond(std::move(response));
    }
    respond(wire::text_response(
        200, request.method + " " + request.path + "?" + request.query + " " + request.body));
  }
  std::shared_ptr<wire::Stream> stream(bool forget = false) {
    for (int i = 0; i < 500; ++i) {
      {
        std::lock_guard lock(mutex_);
        if (stream_) return forget ? std::exchange(stream_, nullptr) : stream_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return nullptr;
  }
  template <class Condition>
  static bool soon(const Condition& condition) {
    for (int i = 0; i < 500 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  }

  std::mutex mutex_;
  std::shared_ptr<wire::Stream> stream_;
  std::atomic<int> closed_ = 0;
  std::atomic<int> handled_ = 0;
  Later later_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTest, a_request_is_answered_and_the_connection_kept) {
  start();
  Client client(port());
  Got got = client.ask("POST /a/b?x=1 HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "POST /a/b?x=1 abc");
  EXPECT_EQ(got.header("Server"), "pawl");
  EXPECT_TRUE(got.header("Date").ends_with(" GMT"));
  EXPECT_EQ(client.get("/again").body, "GET /again? ");
}

TEST_F(HttpTest, pipelined_requests_are_answered_in_order) {
  start();
  Client client(port());
  std::string bytes;
  for (int ms : {60, 5, 30, 0})
    bytes += "GET /after/" + std::to_string(ms) + " HTTP/1.1\r\nHost: t\r\n\r\n";
  client.send(bytes);
  for (int ms : {60, 5, 30, 0})
    EXPECT_EQ(client.answer().body, "/after/" + std::to_string(ms));
}

TEST_F(HttpTest, a_long_pipeline_is_answered_whole) {
  start();
  Client client(port());
  std::thread sender([&] {
    for (int i = 0; i < 5000; ++i)
      client.send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: t\r\n\r\n");
  });
  for (int i = 0; i < 5000; ++i)
    ASSERT_EQ(client.answer().body, "GET /" + std::to_string(i) + "? ");
  sender.join();
}

TEST_F(HttpTest, bytes_may_come_one_by_one) {
  start();
  Client client(port());
  for (char c : std::string_view("\r\nPOST /slow HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: "
                                 "chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n")) {
    client.send(std::string_view(&c, 1));
  }
  EXPECT_EQ(client.answer().body, "POST /slow? abcde");
  EXPECT_EQ(client.get("/x").status, 200);
}

TEST_F(HttpTest, a_client_that_expects_100_gets_it_before_the_body) {
  start();
  Client client(port());
  Got first = client.ask(
      "POST /e HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(first.status, 100);
  EXPECT_EQ(client.ask("ok").body, "POST /e? ok");
}

TEST_F(HttpTest, http_1_0_and_close_end_the_connection) {
  start();
  Client old(port());
  EXPECT_EQ(old.ask("GET /old HTTP/1.0\r\n\r\n").header("Connection"), "close");
  EXPECT_FALSE(old.receive());
  EXPECT_TRUE(old.ended());
  Client kept(port());
  EXPECT_EQ(kept.ask("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("Connection"),
            "keep-alive");
  EXPECT_EQ(
      kept.ask("GET /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").header("Connection"),
      "close");
  EXPECT_FALSE(kept.receive());
  EXPECT_TRUE(kept.ended());
}

TEST_F(HttpTest, a_half_closed_client_still_gets_its_answer) {
  start();
  Client client(port());
  client.send("GET /after/30 HTTP/1.1\r\nHost: t\r\n\r\n");
  client.end_sending();
  EXPECT_EQ(client.answer().body, "/after/30");
}

TEST_F(HttpTest, a_half_closed_pipeline_is_answered_whole) {
  start();
  Client client(port());
  // More requests than may be in flight, so that some are unparsed when the client half-closes.
  std::string bytes = "GET /after/100 HTTP/1.1\r\nHost: t\r\n\r\n";
  for (int i = 0; i < 600; ++i)
    bytes += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: t\r\n\r\n";
  client.send(bytes);
  client.end_sending();
  EXPECT_EQ(client.answer().body, "/after/100");
  for (int i = 0; i < 600; ++i)
    ASSERT_EQ(client.answer().body, "GET /" + std::to_string(i) + "? ");
  EXPECT_FALSE(client.receive());
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpTest, head_and_204_have_no_body) {
  start();
  Client client(port());
  Got head = client.ask("HEAD /h HTTP/1.1\r\nHost: t\r\n\r\n", true);
  EXPECT_EQ(head.header("Content-Length"), "9");
  Got empty = client.get("/empty");
  EXPECT_EQ(empty.status, 204);
  EXPECT_EQ(empty.header("Content-Length"), "");
  EXPECT_EQ(client.get("/next").status, 200);
}

TEST_F(HttpTest, large_answers_arrive_whole) {
  start();
  Client client(port(), 4096);
  EXPECT_EQ(client.get("/large").body.size(), 3'000'000u);
}

TEST_F(HttpTest, a_dropped_answer_is_a_500) {
  start();
  Client client(port());
  EXPECT_EQ(client.get("/drop").status, 500);
}

TEST_F(HttpTest, a_header_value_cannot_begin_another_header) {
  start();
  Client client(port());
  Got got = client.get("/inject");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.head.find("Set-Cookie"), std::string::npos);
}

TEST_F(HttpTest, a_connection_is_kept_after_a_chunked_stream) {
  start();
  Client client(port());
  client.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\nGET /after HTTP/1.1\r\nHost: t\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->write("one"));
  EXPECT_TRUE(out->write("two"));
  out->end();
  EXPECT_FALSE(out->write("late"));
  EXPECT_EQ(client.answer().body, "onetwo");
  EXPECT_EQ(client.answer().body, "GET /after? ");
  EXPECT_TRUE(soon([&] { return closed_ == 1; }));
}

TEST_F(HttpTest, a_stream_that_is_cut_does_not_look_whole) {
  start();
  Client client(port());
  client.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->write("half"));
  out->cut();
  const std::string all = client.until_end();
  EXPECT_TRUE(all.ends_with("4\r\nhalf\r\n")) << all;
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpTest, an_idle_stream_sends_keep_alives) {
  HttpOptions options;
  options.times.keepalive_ms = 500;
  start(options);
  Client events(port()), old(port()), plain(port()), socket(port());
  plain.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  ASSERT_TRUE(stream(true));
  old.send("GET /stream?events HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(stream(true));
  events.send("GET /stream?events HTTP/1.1\r\nHost: t\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  ASSERT_TRUE(events.fill(1));
  events.take(events.buffer.find("\r\n\r\n") + 4);
  EXPECT_EQ(events.chunk(), ":\n");
  EXPECT_EQ(events.chunk(), ":\n");
  out->write("data: x\n\n");
  std::string next = events.chunk();
  while (next == ":\n")
    next = events.chunk();
  EXPECT_EQ(next, "data: x\n\n");
  EXPECT_EQ(events.chunk(), ":\n");
  EXPECT_EQ(socket
                .ask("GET /socket HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: "
                     "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                     "dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
                .status,
            101);
  ASSERT_TRUE(socket.fill(4));
  EXPECT_EQ(socket.take(4), std::string("\x89\0\x89\0", 4));  // two pings
  while (old.receive(0)) {}
  EXPECT_NE(old.buffer.find("\r\n\r\n:\n:\n"), std::string::npos);
  while (plain.receive(0)) {}
  EXPECT_TRUE(plain.buffer.ends_with("\r\n\r\n")) << "what is no stream of events is left alone";
}

TEST_F(HttpTest, a_stream_to_http_1_0_ends_with_the_connection) {
  start();
  Client client(port());
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  out->write("one");
  out->end();
  EXPECT_TRUE(client.until_end().ends_with("\r\n\r\none"));
}

TEST_F(HttpTest, a_stream_notices_that_its_reader_left) {
  start();
  Client client(port());
  client.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  client.close();
  EXPECT_TRUE(soon([&] { return closed_ == 1; }));
  EXPECT_FALSE(out->write("x"));
}

TEST_F(HttpTest, a_reader_that_stops_reading_is_cut) {
  start();
  Client client(port(), 4096);
  client.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  std::string piece(64 * 1024, 'x');
  size_t written = 0;
  while (out->write(piece) && written < 100'000'000)
    written += piece.size();
  EXPECT_LT(written, 30'000'000u);
  EXPECT_LT(out->buffered(), limits::kStreamBytes + 2 * piece.size());
  EXPECT_TRUE(soon([&] { return closed_ == 1; }));
}

// A writer that waits for room must not wait for a reader that has left.
TEST_F(HttpTest, a_stream_with_a_backlog_has_nothing_buffered_once_its_reader_left) {
  start();
  Client client(port(), 4096);
  client.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  auto out = stream();
  ASSERT_TRUE(out);
  const std::string piece(64 * 1024, 'x');
  while (out->buffered() < limits::kStreamBytes / 2)
    ASSERT_TRUE(out->write(piece));
  client.close();
  EXPECT_TRUE(soon([&] { return closed_ == 1; }));
  EXPECT_EQ(out->buffered(), 0u);
  EXPECT_FALSE(out->write("x"));
}

TEST_F(HttpTest, stop_answers_accepted_requests) {
  start();
  Client busy(port()), idle(port());
  EXPECT_EQ(idle.get("/x").status, 200);
  busy.send("GET /after/300 HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(soon([&] { return handled_ == 2; }));
  std::thread stopper([&] { server_->stop(5000); });
  Got got = busy.answer();
  EXPECT_EQ(got.body, "/after/300");
  EXPECT_EQ(got.header("Connection"), "close");
  EXPECT_FALSE(idle.receive());
  EXPECT_TRUE(idle.ended());
  stopper.join();
  EXPECT_FALSE(Client(port()).connected());
}

TEST_F(HttpTest, stop_cuts_requests_after_the_deadline) {
  HttpOptions options;
  options.times.stop_stream_ms = 100;
  start(options);
  Client client(port()), half(port());
  client.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  half.send("POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\na");
  ASSERT_TRUE(stream());
  auto before = std::chrono::steady_clock::now();
  server_->stop(20'000);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  EXPECT_EQ(closed_, 1);
}

TEST_F(HttpTest, answers_from_many_threads_reach_their_requests) {
  start();
  std::vector<std::thread> clients;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      Client client(port());
      for (int k = 0; k < 20; ++k) {
        std::string path = "/after/" + std::to_string(k % 3) + "?" + std::to_string(i);
        if (client.get(path).body != path.substr(0, 8)) ++wrong;
      }
    });
  }
  for (auto& client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(HttpTest, an_answer_after_the_end_is_dropped) {
  start();
  Client client(port());
  client.send("GET /after/200 HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(soon([&] { return handled_ == 1; }));
  server_->stop(10);
  server_.reset();
}

TEST(address, addresses_are_parsed_and_bad_ones_explained) {
  EXPECT_EQ(parse_address("127.0.0.1:8080")->text(), "127.0.0.1:8080");
  EXPECT_EQ(parse_address(":8080")->text(), "0.0.0.0:8080");
  EXPECT_EQ(parse_address("[::1]:0")->text(), "[::1]:0");
  EXPECT_TRUE(parse_address("localhost:1")->is_loopback());
  EXPECT_TRUE(parse_address("[::1]:1")->is_loopback());
  EXPECT_FALSE(parse_address(":1")->is_loopback());
  for (const char* bad : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "::1:80",
                          "host.example:80", "1.2.3.4:8x"}) {
    auto address = parse_address(bad);
    ASSERT_FALSE(address) << bad;
    EXPECT_NE(address.error().message.find(bad), std::string::npos);
  }
}

TEST(address, ipv6_addresses_work) {
  HttpOptions options;
  options.address = *parse_address("[::1]:0");
  auto server =
      HttpServer::start(options, [](wire::Request, wire::Respond respond) { respond({}); });
  // A machine without IPv6 refuses, and the error says so.
  if (server) {
    EXPECT_NE((*server)->address().port, 0);
  } else {
    EXPECT_NE(server.error().message.find("[::1]:0"), std::string::npos);
  }
}

TEST(address, a_taken_port_is_named) {
  auto first = listen_on(*parse_address("127.0.0.1:0"));
  ASSERT_TRUE(first);
  auto second = listen_on(first->address);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(first->address.text()), std::string::npos);
  ::close(first->fd);
}

}  // namespace
}  // namespace pawl::server
