// Hostile and broken clients. The server refuses them with a status where it can, and stays up.

#include <gtest/gtest.h>

#include <random>

#include "server/http/server.h"
#include "server/http/test_client.h"

namespace pawl::server {
namespace {

using testing::Client;
using testing::Got;

class HostileTest : public ::testing::Test {
 protected:
  void start(HttpOptions options = {}) {
    options.address = {"127.0.0.1", 0};
    auto started = HttpServer::start(options, [this](wire::Request request, wire::Respond respond) {
      ++handled_;
      if (request.path == "/large")
        return respond(wire::text_response(200, std::string(4'000'000, 'x')));
      respond(wire::text_response(200, request.body));
    });
    ASSERT_TRUE(started);
    server_ = std::move(*started);
  }
  void TearDown() override {
    if (server_) server_->stop(1000);
  }
  uint16_t port() const { return server_->address().port; }
  // Sends the bytes. Returns the status of the answer; the connection must end after it.
  int refused(std::string_view bytes) {
    Client client(port());
    client.send(bytes);
    int status = client.answer().status;
    client.until_end();
    EXPECT_TRUE(client.ended()) << bytes.substr(0, 200);
    return status;
  }
  void still_serves() { EXPECT_EQ(Client(port()).get("/").status, 200); }

  std::atomic<int> handled_ = 0;
  std::unique_ptr<HttpServer> server_;
};

struct Bad {
  const char* name;
  std::string bytes;
  int status;
};

TEST_F(HostileTest, a_head_that_could_smuggle_a_request_is_refused) {
  start();
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\n";
  const Bad table[] = {
      {"both lengths", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"both lengths, other order",
       head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
      {"differing lengths", head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
      {"differing lengths in a list", head + "Content-Length: 3, 4\r\n\r\nabcd", 400},
      {"signed length", head + "Content-Length: +3\r\n\r\nabc", 400},
      {"negative length", head + "Content-Length: -3\r\n\r\nabc", 400},
      {"huge length", head + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"empty length", head + "Content-Length:\r\n\r\n", 400},
      {"hexadecimal length", head + "Content-Length: 0x3\r\n\r\nabc", 400},
      {"unknown coding", head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
      {"coding list", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"coding twice",
       head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
      {"coding with HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"folded line", head + "X-A: b\r\n c\r\n\r\n", 400},
      {"space before the colon", head + "Content-Length : 3\r\n\r\nabc", 400},
      {"no colon", head + "Nonsense\r\n\r\n", 400},
      {"bad name", head + "X(A): b\r\n\r\n", 400},
      {"empty name", head + ": b\r\n\r\n", 400},
      {"NUL in a value", head + std::string("X: a\0b\r\n\r\n", 10), 400},
      {"NUL in the path", std::string("GET /\0 HTTP/1.1\r\nHost: t\r\n\r\n", 29), 400},
      {"bare CR", head + "X: a\rContent-Length: 3\r\n\r\n", 400},
      {"bare LF", head + "X: a\nContent-Length: 3\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"no version", "GET /\r\n\r\n", 400},
      {"other version", "GET / HTTP/2.0\r\nHost: t\r\n\r\n", 505},
      {"not HTTP", "hello\r\n\r\n", 400},
      {"relative path", "GET x HTTP/1.1\r\nHost: t\r\n\r\n", 400},
      {"TLS to a plain port",
       std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15), 400},
  };
  for (const Bad& bad : table)
    EXPECT_EQ(refused(bad.bytes), bad.status) << bad.name;
  EXPECT_EQ(handled_, 0);
  still_serves();
}

static std::string repeated(std::string_view line, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += line;
  return out;
}

TEST_F(HostileTest, a_body_that_is_broken_or_too_large_is_refused) {
  start();
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\n";
  const Bad table[] = {
      {"chunk size is no number", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"chunk size is empty", head + "Transfer-Encoding: chunked\r\n\r\n\r\n", 400},
      {"chunk size overflows", head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
       400},
      {"chunk size is signed", head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
      {"chunk is too large", head + "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413},
      {"chunk is longer than said", head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400},
      {"chunk line without CR", head + "Transfer-Encoding: chunked\r\n\r\n1\na\r\n", 400},
      {"chunk extension without end",
       head + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(5000, 'x'), 400},
      {"trailers without end",
       head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" +
           repeated("X-Trailer: aaaaaaaaaaaaaaaa\r\n", 200),
       400},
      {"body over the limit", head + "Content-Length: 10485761\r\n\r\n", 413},
      {"100,000 bytes of headers", head + "X: " + std::string(100'000, 'x') + "\r\n\r\n", 431},
      {"many headers", head + repeated("X-H: y\r\n", 400) + "\r\n", 431},
  };
  for (const Bad& bad : table)
    EXPECT_EQ(refused(bad.bytes), bad.status) << bad.name;
  EXPECT_EQ(handled_, 0);
  still_serves();
}

TEST_F(HostileTest, a_refusal_follows_the_earlier_answers) {
  start();
  Client client(port());
  client.send(
      "GET /1 HTTP/1.1\r\nHost: t\r\n\r\nGET /2 HTTP/1.1\r\nbad line\r\n\r\nGET /3 "
      "HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(client.answer().status, 400);
  client.until_end();
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(handled_, 1);
}

TEST_F(HostileTest, a_large_upload_gets_its_refusal_while_sending) {
  start();
  Client client(port());
  client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 20000000\r\n\r\n");
  client.send(std::string(8'000'000, 'x'));
  EXPECT_EQ(client.answer().status, 413);
}

TEST_F(HostileTest, a_body_at_the_limit_is_accepted) {
  start();
  Client client(port());
  std::string body(limits::kBodyBytes, 'x');
  client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  EXPECT_EQ(client.answer().body.size(), body.size());
}

TEST_F(HostileTest, a_slow_request_gets_408) {
  HttpOptions options;
  options.times.request_ms = 300;
  start(options);
  for (std::string_view start :
       {"GET / HT", "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nab"}) {
    Client client(port());
    client.send(start);
    // A byte now and then does not extend the time limit.
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      client.send("x");
    }
    EXPECT_EQ(client.answer().status, 408);
  }
  still_serves();
}

TEST_F(HostileTest, an_idle_connection_is_closed) {
  HttpOptions options;
  options.times.idle_ms = 200;
  start(options);
  Client silent(port()), used(port());
  used.get("/");
  EXPECT_FALSE(silent.receive());
  EXPECT_TRUE(silent.ended());
  EXPECT_FALSE(used.receive());
  EXPECT_TRUE(used.ended());
}

TEST_F(HostileTest, a_client_that_does_not_read_its_answers_is_closed) {
  HttpOptions options;
  options.times.stalled_ms = 300;
  start(options);
  Client client(port(), 4096);
  client.send("GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
  // Requests that arrive together are begun together, so the others come after the first answer.
  for (int i = 0; i < 300 && handled_ == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 1; i < 20; ++i)
    client.send("GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
  for (int i = 0; i < 300 && server_->connections() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server_->connections(), 0u);
  // The server did not read ahead either: most requests were never handled.
  EXPECT_LT(handled_, 20);
}

TEST_F(HostileTest, connections_over_the_limit_get_503) {
  HttpOptions options;
  options.connections = 3;
  start(options);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    EXPECT_EQ(clients.back()->get("/").status, 200);
  }
  Client extra(port());
  Got got = extra.get("/");
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.header("Retry-After"), "1");
  clients.clear();
  for (int i = 0; i < 100 && server_->connections() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  still_serves();
}

TEST_F(HostileTest, half_requests_and_hang_ups_leak_nothing) {
  start();
  for (int i = 0; i < 200; ++i) {
    Client client(port());
    client.send(std::string_view("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc")
                    .substr(0, static_cast<size_t>(i % 50)));
  }
  for (int i = 0; i < 300 && server_->connections() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server_->connections(), 0u);
  still_serves();
}

// Well-formed pieces in a random order, cut and mixed with noise: deep enough to reach every state.
std::string garbage(std::mt19937& dice) {
  static const std::string kPieces[] = {
      "GET ",
      "POST ",
      "/",
      "/a?b=c",
      " HTTP/1.1",
      " HTTP/1.0",
      "\r\n",
      "\r\n\r\n",
      "\r",
      "\n",
      "Host: t",
      "Content-Length: 5",
      "Content-Length: 0",
      "Transfer-Encoding: chunked",
      "5\r\nabcde\r\n",
      "0\r\n\r\n",
      "fffffff\r\n",
      "Connection: close",
      "Upgrade: websocket",
      "Connection: upgrade",
      "Expect: 100-continue",
      ": ",
      "GET / HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"};
  std::string out;
  size_t count = dice() % 20;
  for (size_t i = 0; i < count; ++i) {
    if (dice() % 5 == 0) {
      for (size_t k = dice() % 30; k > 0; --k)
        out.push_back(static_cast<char>(dice()));
    } else {
      out += kPieces[dice() % std::size(kPieces)];
    }
  }
  return out;
}

TEST_F(HostileTest, random_bytes_do_no_harm) {
  start();
  std::mt19937 dice(20261115);
  for (int i = 0; i < 3000; ++i) {
    Client client(port());
    std::string bytes = garbage(dice);
    size_t cut = bytes.empty() ? 0 : dice() % bytes.size();
    client.send(std::string_view(bytes).substr(0, cut));
    client.send(std::string_view(bytes).substr(cut));
    if (dice() % 3 == 0) client.receive(1);
  }
  still_serves();
}

TEST_F(HostileTest, stop_under_load_ends_in_time) {
  start();
  std::atomic<bool> going = true;
  std::atomic<int> broken = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      while (going) {
        Client client(port());
        if (!client.connected()) break;
        while (going) {
          Got got = client.get("/");
          if (got.status == 0) break;  // closed between two requests
          if (got.status != 200) ++broken;
        }
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  auto before = std::chrono::steady_clock::now();
  server_->stop(5000);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4));
  going = false;
  for (auto& client : clients)
    client.join();
  EXPECT_EQ(broken, 0);
  EXPECT_GT(handled_, 100);
}

}  // namespace
}  // namespace pawl::server
