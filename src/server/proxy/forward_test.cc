// Requests that go to another node over a link: their answers, streams and WebSockets, clients that
// leave, and nodes that go.

#include "server/proxy/forward.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// A connection of a client, as a handler sees it.
class Connection final : public wire::Peer {
 public:
  void on_leave(std::function<void()> left) override { left_ = std::move(left); }
  std::string address() const override { return "192.0.2.7"; }
  void leave() { left_(); }

 private:
  std::function<void()> left_;
};

// What a client of a stream or a WebSocket reads.
class Read final : public wire::Socket {
 public:
  bool write(BytesView piece) override {
    std::lock_guard lock(mutex_);
    text_ += piece;
    return !full_;
  }
  void end() override { how_ = "ended"; }
  void cut() override { how_ = "cut"; }
  size_t buffered() const override { return 0; }
  void on_close(std::function<void()> closed) override { closed_ = std::move(closed); }
  void on_message(std::function<void(std::string)> text) override { message_ = std::move(text); }

  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }
  std::string how() const { return how_.load(); }
  void leave() { closed_(); }
  void say(std::string text) { message_(std::move(text)); }
  std::atomic<bool> full_{false};

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::atomic<const char*> how_{"open"};
  std::function<void()> closed_;
  std::function<void(std::string)> message_;
};

class ForwardTest : public ::testing::Test {
 protected:
  void SetUp() override { listen(); }
  void listen() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    ASSERT_EQ(::listen(socket, 16), 0);
    socklen_t size = sizeof to;
    getsockname(socket, reinterpret_cast<sockaddr*>(&to), &size);
    owner_ = std::make_unique<net::PeerListener>(
        socket, net::PeerIdentity{"owner", "secret"}, nullptr,
        [this](const std::string&, std::string_view method, BytesView first,
               const std::shared_ptr<net::PeerCall>& call) {
          EXPECT_EQ(method, kForwardedHttp);
          return answer_forwarded(first, call, run_);
        });
    door_.set({{"owner", "127.0.0.1:" + std::to_string(ntohs(to.sin_port))}});
  }
  wire::Response ask(wire::Request request) {
    std::promise<wire::Response> answer;
    forward(
        door_, "owner", 3, std::move(request),
        [&](wire::Response response) { answer.set_value(std::move(response)); },
        [](const Error& why) { return wire::text_response(503, why.reason); });
    return answer.get_future().get();
  }

  RunForwarded run_;
  net::Peers door_{{"door", "secret"}, nullptr};
  std::unique_ptr<net::PeerListener> owner_;
};

TEST_F(ForwardTest, a_request_arrives_as_it_was_and_so_does_its_answer) {
  run_ = [](uint32_t shard, wire::Request r, wire::Respond respond) {
    wire::Response out = wire::text_response(
        418, fmt::format("{} {} {} {} {} {} {} {} {} {}", shard, r.method, r.path, r.query,
                         r.header("x-one"), r.body, r.caller.tenant, r.caller.user, r.caller.roles,
                         r.peer->address()));
    out.headers.emplace_back("X-Two", "2");
    respond(std::move(out));
  };
  Connection client;
  wire::Request request{.method = "POST",
                        .path = "/v1/x%2Fy",
                        .query = "a=1&b",
                        .headers = {{"X-One", "1"}},
                        .body = "body",
                        .caller = {"t", "u", "r1,r2"},
                        .peer = &client};
  wire::Response got = ask(std::move(request));
  EXPECT_EQ(got.status, 418);
  EXPECT_EQ(got.body, "3 POST /v1/x%2Fy a=1&b 1 body t u r1,r2 192.0.2.7");
  EXPECT_EQ(*wire::find_header(got.headers, "x-two"), "2");
}

TEST_F(ForwardTest, a_stream_is_passed_on_until_its_end) {
  std::shared_ptr<wire::Stream> writer;
  run_ = [&](uint32_t, wire::Request, wire::Respond respond) {
    wire::Response out;
    out.stream = [&](std::shared_ptr<wire::Stream> stream) {
      stream->write("first ");
      writer = std::move(stream);
    };
    respond(std::move(out));
  };
  wire::Response got = ask({.method = "GET", .path = "/"});
  ASSERT_TRUE(got.stream);
  ASSERT_TRUE(soon([&] { return writer != nullptr; }));
  EXPECT_TRUE(writer->write("second "));
  auto reader = std::make_shared<Read>();
  got.stream(reader);
  EXPECT_TRUE(writer->write("third"));
  EXPECT_TRUE(soon([&] { return reader->text() == "first second third"; })) << reader->text();
  writer->end();
  EXPECT_TRUE(soon([&] { return reader->how() == "ended"; }));
}

TEST_F(ForwardTest, a_reader_that_leaves_ends_the_stream_of_the_owner) {
  std::shared_ptr<wire::Stream> writer;
  std::atomic<bool> closed{false};
  run_ = [&](uint32_t, wire::Request, wire::Respond respond) {
    wire::Response out;
    out.stream = [&](std::shared_ptr<wire::Stream> stream) {
      stream->on_close([&] { closed = true; });
      writer = std::move(stream);
    };
    respond(std::move(out));
  };
  wire::Response got = ask({.method = "GET", .path = "/"});
  auto reader = std::make_shared<Read>();
  got.stream(reader);
  reader->leave();
  EXPECT_TRUE(soon([&] { return closed.load(); }));
  EXPECT_FALSE(writer->write("x"));
}

TEST_F(ForwardTest, a_client_that_leaves_before_the_answer_is_noticed_by_the_handler) {
  std::atomic<bool> asked{false}, left{false};
  wire::Respond kept;
  run_ = [&](uint32_t, wire::Request request, wire::Respond respond) {
    request.peer->on_leave([&] { left = true; });
    kept = std::move(respond);
    asked = true;
  };
  Connection client;
  forward(
      door_, "owner", 0, {.method = "GET", .path = "/", .peer = &client}, [](wire::Response) {},
      [](const Error&) { return wire::Response(); });
  ASSERT_TRUE(soon([&] { return asked.load(); }));
  client.leave();
  EXPECT_TRUE(soon([&] { return left.load(); }));
  kept(wire::text_response(200, "late"));  // harms nobody
}

TEST_F(ForwardTest, a_websocket_goes_both_ways) {
  run_ = [](uint32_t, wire::Request, wire::Respond respond) {
    wire::Response out;
    out.socket = [](std::shared_ptr<wire::Socket> socket) {
      socket->on_message([weak = std::weak_ptr(socket)](std::string text) {
        if (auto back = weak.lock()) back->write("got " + text);
      });
    };
    respond(std::move(out));
  };
  wire::Response got = ask({.method = "GET", .path = "/"});
  ASSERT_TRUE(got.socket);
  auto client = std::make_shared<Read>();
  got.socket(client);
  client->say("hello");
  EXPECT_TRUE(soon([&] { return client->text() == "got hello"; }));
}

TEST_F(ForwardTest, an_owner_that_goes_cuts_its_streams_and_refuses_what_comes) {
  run_ = [&](uint32_t, wire::Request, wire::Respond respond) {
    wire::Response out;
    out.stream = [](std::shared_ptr<wire::Stream> stream) { stream->write("half"); };
    respond(std::move(out));
  };
  wire::Response got = ask({.method = "GET", .path = "/"});
  auto reader = std::make_shared<Read>();
  got.stream(reader);
  ASSERT_TRUE(soon([&] { return reader->text() == "half"; }));
  owner_.reset();
  EXPECT_TRUE(soon([&] { return reader->how() == "cut"; }));
  EXPECT_TRUE(
      soon([&] { return ask({.method = "GET", .path = "/"}).body == net::kPeerUnreachable.name; }));
}

}  // namespace
}  // namespace pawl::server
