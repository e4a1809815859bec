#include "server/http/websocket.h"

#include <gtest/gtest.h>

#include "server/http/server.h"
#include "server/http/test_client.h"

namespace pawl::server {
namespace {

using testing::Client;
using testing::Got;

std::string client_frame(int first, std::string_view payload, bool masked = true) {
  std::string out(1, static_cast<char>(first));
  char mask_bit = masked ? static_cast<char>(0x80) : 0;
  if (payload.size() < 126) {
    out.push_back(static_cast<char>(mask_bit | static_cast<char>(payload.size())));
  } else if (payload.size() < 65536) {
    out.push_back(static_cast<char>(mask_bit | 126));
    out.push_back(static_cast<char>(payload.size() >> 8));
    out.push_back(static_cast<char>(payload.size()));
  } else {
    out.push_back(static_cast<char>(mask_bit | 127));
    out += ordered64(payload.size());
  }
  if (!masked) return out + std::string(payload);
  const char mask[] = {0x11, 0x22, 0x33, 0x44};
  out.append(mask, 4);
  for (size_t i = 0; i < payload.size(); ++i)
    out.push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  return out;
}

class SocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HttpOptions options;
    options.address = {"127.0.0.1", 0};
    auto started = HttpServer::start(options, [this](wire::Request, wire::Respond respond) {
      wire::Response response;
      response.socket = [this](std::shared_ptr<wire::Socket> socket) {
        std::weak_ptr<wire::Socket> weak = socket;
        socket->on_message([weak](std::string text) {
          auto socket = weak.lock();
          if (!socket) return;
          if (text == "bye") return socket->end();
          socket->write("echo " + text);
        });
        socket->on_close([this] { ++closed_; });
        sockets_.push_back(socket);
        socket->write("hello");
      };
      respond(std::move(response));
    });
    ASSERT_TRUE(started);
    server_ = std::move(*started);
  }
  void TearDown() override { server_->stop(500); }

  static constexpr std::string_view kAsk =
      "GET /ws HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  std::unique_ptr<Client> open() {
    auto client = std::make_unique<Client>(server_->address().port);
    Got got = client->ask(kAsk);
    EXPECT_EQ(got.status, 101);
    EXPECT_EQ(got.header("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    EXPECT_EQ(next(*client), "hello");
    return client;
  }
  // The payload of the next server frame; a close frame gives "close CODE".
  static std::string next(Client& client) {
    if (!client.fill(2)) return "nothing";
    int opcode = client.buffer[0] & 15;
    size_t size = static_cast<unsigned char>(client.buffer[1]), head = 2;
    if (size == 126) {
      if (!client.fill(4)) return "nothing";
      size = static_cast<unsigned char>(client.buffer[2]) * 256u +
             static_cast<unsigned char>(client.buffer[3]);
      head = 4;
    } else if (size == 127) {
      if (!client.fill(10)) return "nothing";
      size = read_ordered64(std::string_view(client.buffer).substr(2));
      head = 10;
    }
    if (!client.fill(head + size)) return "nothing";
    client.take(head);
    std::string payload = client.take(size);
    if (opcode == 8)
      return "close " + std::to_string(static_cast<unsigned char>(payload[0]) * 256 +
                                       static_cast<unsigned char>(payload[1]));
    return (opcode == 10 ? "pong " : "") + payload;
  }

  std::atomic<int> closed_ = 0;
  std::vector<std::shared_ptr<wire::Socket>> sockets_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(SocketTest, messages_go_both_ways) {
  auto client = open();
  client->send(client_frame(0x81, "one") + client_frame(0x82, std::string(300, 'x')));
  EXPECT_EQ(next(*client), "echo one");
  EXPECT_EQ(next(*client), "echo " + std::string(300, 'x'));
  client->send(client_frame(0x81, std::string(100'000, 'y')));
  EXPECT_EQ(next(*client).size(), 100'005u);
}

TEST_F(SocketTest, fragments_join_and_pings_may_stand_between) {
  auto client = open();
  client->send(client_frame(0x01, "a") + client_frame(0x89, "p") + client_frame(0x00, "b") +
               client_frame(0x80, "c"));
  EXPECT_EQ(next(*client), "pong p");
  EXPECT_EQ(next(*client), "echo abc");
}

TEST_F(SocketTest, a_close_is_answered_and_reported) {
  auto client = open();
  client->send(client_frame(0x88, close_payload(1000, "done")));
  EXPECT_EQ(next(*client), "close 1000");
  client->until_end();
  for (int i = 0; i < 200 && closed_ == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(closed_, 1);
  EXPECT_FALSE(sockets_.front()->write("late"));
}

TEST_F(SocketTest, the_server_can_end_it) {
  auto client = open();
  client->send(client_frame(0x81, "bye"));
  EXPECT_EQ(next(*client), "close 1000");
}

TEST_F(SocketTest, bad_frames_are_closed_with_the_right_code) {
  struct Case {
    std::string bytes;
    std::string answer;
  };
  const Case table[] = {
      {client_frame(0x81, "x", false), "close 1002"},             // not masked
      {client_frame(0xC1, "x"), "close 1002"},                    // reserved bit
      {client_frame(0x83, "x"), "close 1002"},                    // unknown opcode
      {client_frame(0x8B, "x"), "close 1002"},                    // unknown control opcode
      {client_frame(0x09, "x"), "close 1002"},                    // fragmented ping
      {client_frame(0x89, std::string(126, 'x')), "close 1002"},  // long ping
      {client_frame(0x80, "x"), "close 1002"},                    // continuation of nothing
      {client_frame(0x01, "x") + client_frame(0x81, "y"),
       "close 1002"},                                               // message inside a message
      {client_frame(0x88, "x"), "close 1002"},                      // half a close code
      {client_frame(0x88, close_payload(1005, "")), "close 1002"},  // code that may not travel
      {client_frame(0x81, "\xff\xfe"), "close 1007"},               // not UTF-8
      {client_frame(0x81, "\xed\xa0\x80"), "close 1007"},           // surrogate
      {client_frame(0x82, std::string(limits::kWebSocketMessageBytes + 1, 'x')), "close 1009"},
      {std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 10),
       "close 1009"},  // a length of 2^63
  };
  for (const Case& c : table) {
    auto client = open();
    client->send(c.bytes);
    EXPECT_EQ(next(*client), c.answer);
  }
}

TEST_F(SocketTest, a_plain_request_gets_426) {
  Client client(server_->address().port);
  Got got = client.get("/ws");
  EXPECT_EQ(got.status, 426);
  EXPECT_EQ(got.header("Sec-WebSocket-Version"), "13");
  EXPECT_EQ(
      client.get("/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n")
          .status,
      426);
}

TEST_F(SocketTest, stop_closes_with_going_away) {
  auto client = open();
  std::thread stopper([&] { server_->stop(3000); });
  EXPECT_EQ(next(*client), "close 1001");
  client->close();
  stopper.join();
  EXPECT_EQ(closed_, 1);
}

}  // namespace
}  // namespace pawl::server
