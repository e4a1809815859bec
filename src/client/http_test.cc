#include "client/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "pawl/client.h"

namespace pawl::client {
namespace {

// A server that answers each connection's first request with the next of its texts, then closes.
class Scripted {
 public:
  explicit Scripted(std::vector<std::string> answers) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    CHECK(bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && listen(fd_, 16) == 0);
    CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers)
        serve(answer);
    });
  }
  ~Scripted() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  const std::string& address() const { return address_; }
  int requests() const { return requests_; }
  std::string last() {
    std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  void serve(const std::string& answer) {
    int peer = accept(fd_, nullptr, nullptr);
    if (peer < 0) return;
    char piece[4096];
    ssize_t n = recv(peer, piece, sizeof piece, 0);
    if (n > 0) {
      std::lock_guard lock(mutex_);
      last_.assign(piece, static_cast<size_t>(n));
      ++requests_;
    }
    [[maybe_unused]] ssize_t sent = send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(peer);
  }

  int fd_;
  std::string address_;
  std::mutex mutex_;
  std::string last_;
  std::atomic<int> requests_{0};
  std::thread thread_;
};

constexpr int kTimeoutMs = 2'000;

TEST(http, bodies_come_counted_and_in_chunks) {
  Scripted server(
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
       "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"});
  for (int i = 0; i < 2; ++i) {
    Http http(server.address(), kTimeoutMs);
    auto reply = http.send("GET", "/", {});
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->body, "hello");
  }
}

TEST(http, what_is_no_answer_is_an_error) {
  const std::vector<std::string> hostile = {
      "",
      "garbage",
      "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
      "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'a')};
  Scripted server(hostile);
  for (const std::string& text : hostile) {
    Http http(server.address(), kTimeoutMs);
    EXPECT_FALSE(http.send("GET", "/", {})) << text.substr(0, 80);
  }
}

TEST(client, repeats_under_one_key_until_the_server_is_well) {
  const std::string instance =
      R"({"id":"i1","definitionId":"d","definitionVersion":2,"status":"WAITING","currentStepIds":["a"],"variables":{"big":12345678901234567890}})";
  Scripted server({"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "",
                   "HTTP/1.1 201 Created\r\nContent-Length: " + std::to_string(instance.size()) +
                       "\r\n\r\n" + instance});
  Client client(server.address(), {.timeout_ms = kTimeoutMs});
  auto started = client.start({.definition = "d", .idempotency_key = "my-key"});
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(server.requests(), 3);
  EXPECT_NE(server.last().find("Idempotency-Key: my-key\r\n"), std::string::npos);
  EXPECT_EQ(started->version, 2);
  EXPECT_EQ(started->steps, std::vector<std::string>{"a"});
  EXPECT_EQ(started->variables, R"({"big":12345678901234567890})") << "no digit is lost";
  EXPECT_FALSE(started->finished());
}

TEST(client, a_refusal_is_not_repeated) {
  const std::string body = R"({"error":"not-found","reason":"no definition d"})";
  Scripted server({"HTTP/1.1 404 Not Found\r\nContent-Length: " + std::to_string(body.size()) +
                   "\r\n\r\n" + body});
  Client client(server.address(), {.timeout_ms = kTimeoutMs});
  auto started = client.start({.definition = "d"});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().status, 404);
  EXPECT_EQ(started.error().code, "not-found");
  EXPECT_EQ(started.error().message, "no definition d");
  EXPECT_FALSE(started.error().unavailable());
}

TEST(client, patience_ends) {
  Client client("127.0.0.1:1", {.patience_ms = 0});
  auto got = client.get("x");
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().unavailable());
  EXPECT_NE(got.error().message.find("pawl serve"), std::string::npos);
}

TEST(client, a_token_that_is_refused_is_asked_for_once_more) {
  Scripted server({"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n",
                   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"});
  int made = 0;
  Token token(
      [&](bool fresh) -> Reply<std::string> { return "token" + std::to_string(made += fresh); });
  Client client(server.address(),
                {.token = token, .timeout_ms = kTimeoutMs, .patience_ms = kTimeoutMs});
  EXPECT_TRUE(client.call("GET", "/"));
  EXPECT_NE(server.last().find("Bearer token1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace pawl::client
