// The memory budget of the HTTP server: callers that send without a token, upload at the same time
// or do not read are refused or cut, and what they held is given back.

#include <gtest/gtest.h>

#include <thread>

#include "server/http/server.h"
#include "server/http/test_client.h"

namespace pawl::server {
namespace {

using testing::Client;
using testing::Got;

constexpr size_t kMiB = 1024 * 1024;

class MemoryTest : public ::testing::Test {
 protected:
  void start(size_t budget) {
    memory_ = std::make_unique<MemoryBudget>(budget);
    HttpOptions options;
    options.address = {"127.0.0.1", 0};
    options.memory = memory_.get();
    options.judge_head = [](wire::Request& head) -> Judged {
      if (head.method == "GET" || head.header("Authorization") == "yes") return {};
      return {wire::text_response(401, "no token")};
    };
    auto started = HttpServer::start(options, [this](wire::Request request, wire::Respond respond) {
      if (request.path == "/large")
        return respond(wire::text_response(200, std::string(kMiB, 'x')));
      if (request.path == "/wait") {
        // Requests with large bodies are handled on threads of their own.
        std::lock_guard lock(mutex_);
        return waiting_.push_back(std::move(respond));
      }
      if (request.path == "/stream") {
        wire::Response response;
        response.stream = [this](std::shared_ptr<wire::Stream> stream) {
          std::lock_guard lock(mutex_);
          streams_.push_back(std::move(stream));
        };
        return respond(std::move(response));
      }
      respond(wire::text_response(200, std::to_string(request.body.size())));
    });
    ASSERT_TRUE(started);
    server_ = std::move(*started);
  }
  void TearDown() override {
    waiting_.clear();
    if (server_) server_->stop(1000);
    server_.reset();
    streams_.clear();
    EXPECT_EQ(memory_->used(), 0u);
  }
  uint16_t port() const { return server_->address().port; }
  static std::string head(std::string_view path, size_t length, bool token = true) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" +
           (token ? "Authorization: yes\r\n" : "") + "Content-Length: " + std::to_string(length) +
           "\r\n\r\n";
  }
  bool becomes(const std::function<bool()>& held) {
    for (int i = 0; i < 500 && !held(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return held();
  }

  std::unique_ptr<MemoryBudget> memory_;
  std::unique_ptr<HttpServer> server_;
  std::vector<wire::Respond> waiting_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<wire::Stream>> streams_;
};

TEST_F(MemoryTest, a_caller_without_a_token_is_refused_before_its_body) {
  start(64 * kMiB);
  Client client(port());
  client.send(head("/", 8 * kMiB, false) + "first bytes");
  EXPECT_EQ(client.answer().status, 401);
  EXPECT_EQ(memory_->used(), 0u);
}

TEST_F(MemoryTest, bodies_that_do_not_fit_are_refused_with_retry_after) {
  start(16 * kMiB);  // half of it for bodies
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->send(head("/", 4 * kMiB) + std::string(3 * kMiB, 'x'));
  }
  ASSERT_TRUE(becomes([&] { return memory_->used(MemoryUse::bodies) == 6 * kMiB; }));
  Client late(port());
  late.send(head("/", 4 * kMiB) + std::string(3 * kMiB, 'x'));
  Got got = late.answer();
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.header("Retry-After"), "1");
  // A small request is served all the same.
  EXPECT_EQ(Client(port()).get("/").status, 200);
  clients.clear();
  ASSERT_TRUE(becomes([&] { return memory_->used() == 0; }));
  Client again(port());
  again.send(head("/", 2 * kMiB) + std::string(2 * kMiB, 'x'));
  EXPECT_EQ(again.answer().body, std::to_string(2 * kMiB));
}

TEST_F(MemoryTest, a_body_is_counted_until_its_answer) {
  start(64 * kMiB);
  Client client(port());
  client.send(head("/wait", kMiB) + std::string(kMiB, 'x'));
  ASSERT_TRUE(becomes([&] {
    std::lock_guard lock(mutex_);
    return waiting_.size() == 1;
  }));
  EXPECT_EQ(memory_->used(MemoryUse::bodies), 4 * kMiB);
  waiting_.front()(wire::text_response(200, "ok"));
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(memory_->used(MemoryUse::bodies), 0u);
}

TEST_F(MemoryTest, answers_that_nobody_reads_are_refused_before_they_fill_the_memory) {
  start(32 * kMiB);
  Client client(port(), 4096);
  std::string requests;
  for (int i = 0; i < 200; ++i)
    requests += "GET /large HTTP/1.1\r\nHost: t\r\n\r\n";
  client.send(requests);  // in one piece: they are handled before the first answer is sent
  ASSERT_TRUE(becomes([&] { return memory_->refused(MemoryUse::answers) > 5; }));
  EXPECT_LE(memory_->used(), 16 * kMiB + 2 * kMiB);
  int served = 0, refused = 0;
  for (int i = 0; i < 200; ++i) {
    int status = client.answer().status;
    served += status == 200;
    refused += status == 503;
  }
  EXPECT_GE(served, 10);
  EXPECT_EQ(served + refused, 200);
}

TEST_F(MemoryTest, streams_that_nobody_reads_are_cut_when_the_budget_is_full) {
  start(16 * kMiB);
  std::vector<std::unique_ptr<Client>> readers;
  for (size_t i = 0; i < 20; ++i) {
    readers.push_back(std::make_unique<Client>(port(), 4096));
    readers.back()->send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
    ASSERT_TRUE(becomes([&] {
      std::lock_guard lock(mutex_);
      return streams_.size() == i + 1;
    }));
  }
  // A part goes into the sockets' own buffers; of the rest, the streams together hold at most half
  // of the budget.
  size_t cut = 0;
  for (int piece = 0; piece < 12; ++piece)
    for (auto& stream : streams_)
      cut += !stream->write(std::string(kMiB, 'x'));
  EXPECT_GT(cut, 0u);
  EXPECT_LE(memory_->used(MemoryUse::streams), 9 * kMiB);
  // A reader that keeps up is served although the others have used up the budget.
  Client good(port());
  good.send("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n");
  ASSERT_TRUE(becomes([&] {
    std::lock_guard lock(mutex_);
    return streams_.size() == 21;
  }));
  EXPECT_TRUE(streams_.back()->write("event"));
}

}  // namespace
}  // namespace pawl::server
