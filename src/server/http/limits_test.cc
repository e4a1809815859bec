// The limits of one tenant and of one address over HTTP, with two tenants and strangers.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/log.h"
#include "server/http/front.h"
#include "server/http/test_client.h"

namespace pawl::server {
namespace {

using testing::Client;
using testing::Got;

class LimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log_level(Level::off);
    auto hello = [](wire::Request request, wire::Respond respond) {
      respond(wire::text_response(200, request.caller.tenant));
    };
    auto stream = [this](wire::Request, wire::Respond respond) {
      wire::Response response;
      response.headers.emplace_back("Content-Type", "text/event-stream");
      response.stream = [this](std::shared_ptr<wire::Stream> out) {
        out->write("begun");
        std::lock_guard lock(mutex_);
        streams_.push_back(std::move(out));
      };
      respond(std::move(response));
    };
    auto wait = [this](wire::Request, wire::Respond respond) {
      std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(respond));
    };
    auto slow = [](wire::Request, wire::Respond respond) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // keeps its I/O thread busy
      respond(wire::text_response(200, "slow"));
    };
    wire::Dialect dialect{"/v1/", [](const wire::Request&, const Error& error, std::string_view) {
                            return wire::text_response(wire::code_status(error.code).http,
                                                       error.reason);
                          }};
    router_.add({{"GET", "/v1/hello", hello, "", false},
                 {"POST", "/v1/hello", hello, "", false},
                 {"GET", "/v1/open", hello, "", true},
                 {"POST", "/v1/jobs/poll", hello, "", false},
                 {"GET", "/v1/slow", slow, "", true},
                 {"POST", "/v1/wait", wait, "", false},
                 {"GET", "/v1/stream", stream, "", false}},
                dialect);
  }
  void TearDown() override {
    streams_.clear();
    if (server_) server_->stop(500);
    waiting_.clear();
    log_level(Level::info);
  }
  void start(TenantLimits limits, FrontOptions front = {}) {
    AuthOptions auth;
    auth.mode = AuthMode::jwt;
    auth.signing_key = RsaKey::generate().private_pem();
    auth.limits = limits;
    auth.memory = &memory_;
    auth.expiry_seconds = 100;
    authenticator_ = *Authenticator::make(std::move(auth), [this] { return now_.load(); });
    front.browsers = {.allowed_hosts = {"*"}};
    front_ = std::make_unique<HttpFront>(router_, *authenticator_, metrics_, std::move(front));
    HttpOptions options;
    options.address = {"127.0.0.1", 0};
    options.refuse = front_->refuser();
    options.judge_head = front_->judge();
    options.tenants = &authenticator_->tenants();
    options.count_strangers = true;
    options.memory = &memory_;
    options.threads = threads_;
    options.times.probation_ms = probation_ms_;
    server_ = *HttpServer::start(options, front_->handler());
    for (const char* tenant : {"a", "b"})
      headers_[tenant] =
          "Authorization: Bearer " +
          *authenticator_->issue(json::object({{"caas_org_id", tenant}, {"sub", "ann"}})) + "\r\n";
  }
  std::unique_ptr<Client> client() { return std::make_unique<Client>(server_->address().port); }
  std::string post(const std::string& path, const std::string& headers, const std::string& body) {
    return "POST " + path + " HTTP/1.1\r\nHost: t\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  // Waits until the condition holds; false when it does not within five seconds.
  template <class Condition>
  static bool soon(Condition condition) {
    for (int i = 0; i < 500 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  }

  int threads_ = 2;
  int64_t probation_ms_ = 2000;
  MemoryBudget memory_{64 << 20};
  std::atomic<Time> now_{Time{1'800'000'000} * kSecond};
  std::mutex mutex_;
  std::vector<std::shared_ptr<wire::Stream>> streams_;
  std::vector<wire::Respond> waiting_;
  wire::Router router_;
  Metrics metrics_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<HttpServer> server_;
  std::map<std::string, std::string> headers_;
};

TEST_F(LimitsTest, connections_of_one_tenant) {
  start({.connections = 2});
  auto first = client(), second = client(), third = client();
  EXPECT_EQ(first->get("/v1/hello", headers_["a"]).body, "a");
  EXPECT_EQ(second->get("/v1/hello", headers_["a"]).status, 200);
  EXPECT_EQ(first->get("/v1/hello", headers_["a"]).status, 200);
  Got refused = third->get("/v1/hello", headers_["a"]);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "TENANT_CONNECTIONS");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.header("Connection"), "close");
  EXPECT_EQ(client()->get("/v1/hello", headers_["b"]).status, 200);
  // A connection counts for the tenant of its last request.
  EXPECT_EQ(second->get("/v1/hello", headers_["b"]).status, 200);
  EXPECT_EQ(client()->get("/v1/hello", headers_["a"]).status, 200);
  first->close();
  second->close();
  EXPECT_TRUE(soon([&] { return authenticator_->tenants().use("a")->connections() == 0; }));
  EXPECT_TRUE(soon([&] { return authenticator_->tenants().use("b")->connections() == 0; }));
}

TEST_F(LimitsTest, streams_of_one_tenant) {
  start({.streams = 1});
  auto reader = client();
  reader->send("GET /v1/stream HTTP/1.1\r\nHost: t\r\n" + headers_["a"] + "\r\n");
  ASSERT_TRUE(soon([&] { return authenticator_->tenants().use("a")->streams() == 1; }));
  Got refused = client()->get("/v1/stream", headers_["a"]);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "TENANT_STREAMS");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(client()->get("/v1/hello", headers_["a"]).status, 200);
  reader->close();
  EXPECT_TRUE(soon([&] { return authenticator_->tenants().use("a")->streams() == 0; }));
}

TEST_F(LimitsTest, a_stream_ends_when_its_token_expires) {
  start({});
  auto reader = client();
  reader->send("GET /v1/stream HTTP/1.1\r\nHost: t\r\n" + headers_["a"] + "\r\n");
  ASSERT_TRUE(soon([&] { return authenticator_->streams().size() == 1; }));
  authenticator_->end_expired_streams();
  EXPECT_EQ(authenticator_->streams().size(), 1u);
  now_ = now_.load() + 200 * kSecond;
  authenticator_->end_expired_streams();
  Got got = reader->answer();
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "begun");
  EXPECT_EQ(client()->get("/v1/stream", headers_["a"]).status, 401);
}

TEST_F(LimitsTest, requests_in_a_second) {
  start({.requests_per_second = 3});
  auto one = client();
  int refused = 0;
  for (int i = 0; i < 6; ++i) {
    Got got = one->get("/v1/hello", headers_["a"]);
    if (got.status == 200) continue;
    EXPECT_EQ(got.status, 429);
    EXPECT_EQ(got.body, "TENANT_REQUESTS");
    EXPECT_EQ(got.header("Retry-After"), "1");
    ++refused;
  }
  EXPECT_GE(refused, 2);
  EXPECT_EQ(client()->get("/v1/hello", headers_["b"]).status, 200);
}

TEST_F(LimitsTest, polls_are_asked_first) {
  FrontOptions front;
  front.before_poll = [](const Caller& caller) -> Result<void> {
    if (caller.tenant == "b") return {};
    return fail(Code::exhausted, "TENANT_JOBS", "too many");
  };
  start({}, std::move(front));
  auto one = client();
  EXPECT_EQ(one->ask(post("/v1/jobs/poll", headers_["a"], "{}")).body, "TENANT_JOBS");
  EXPECT_EQ(one->ask(post("/v1/jobs/poll", headers_["b"], "{}")).body, "b");
  EXPECT_EQ(one->get("/v1/hello", headers_["a"]).status, 200);
  EXPECT_EQ(authenticator_->tenants().refused(Limit::jobs), 1u);
}

TEST_F(LimitsTest, strangers_of_one_address) {
  start({.address_connections = 2, .address_requests_per_second = 1});
  auto first = client(), second = client();
  EXPECT_EQ(first->get("/v1/hello").status, 401);
  EXPECT_EQ(second->get("/v1/open").status, 200);
  Got refused = client()->get("/v1/open");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "ADDRESS_CONNECTIONS");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(client()->answer().status, 429) << "a stranger that says nothing is refused, too";
  // With a token a connection is the tenant's, and there is room for another stranger.
  EXPECT_EQ(second->get("/v1/hello", headers_["a"]).status, 200);
  auto third = client();
  int unauthorized = 0;
  Got last;
  while (unauthorized < 100 && (last = third->get("/v1/hello")).status == 401)
    ++unauthorized;
  EXPECT_GE(unauthorized, 5);
  EXPECT_LE(unauthorized, 20);
  EXPECT_EQ(last.status, 429);
  EXPECT_EQ(last.body, "ADDRESS_REQUESTS");
  EXPECT_EQ(last.header("Connection"), "close");
  // Strangers do not keep tenants out.
  EXPECT_EQ(second->get("/v1/hello", headers_["a"]).status, 200);
  EXPECT_EQ(client()->get("/v1/hello", headers_["b"]).status, 200);
}

// A caller shares its address with strangers that keep the server busy. Its token waits for its
// turn longer than a stranger may be silent.
TEST_F(LimitsTest, a_token_that_waits_for_its_turn_is_not_late) {
  threads_ = 1;
  probation_ms_ = 20;
  constexpr size_t kStrangers = 60;
  start({.address_connections = kStrangers});
  // Once two parties were about, the I/O thread serves one slow stranger in each of its turns.
  auto busy = client();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(busy->get("/v1/hello", headers_["b"]).status, 200);
    EXPECT_EQ(client()->get("/v1/open").status, 200);
  }
  ASSERT_TRUE(soon([&] { return server_->connections() == 1; }));
  std::vector<std::unique_ptr<Client>> strangers;
  for (size_t i = 0; i < kStrangers; ++i)
    strangers.push_back(client());
  ASSERT_TRUE(soon([&] { return server_->connections() == kStrangers + 1; }));
  for (auto& stranger : strangers)
    stranger->send("GET /v1/slow HTTP/1.1\r\nHost: t\r\n\r\n");
  auto honest = client();
  EXPECT_EQ(honest->get("/v1/hello", headers_["a"]).body, "a");
  for (auto& stranger : strangers)
    EXPECT_EQ(stranger->answer().body, "slow");
}

TEST_F(LimitsTest, a_tenant_that_stores_too_much_may_read_and_delete) {
  FrontOptions front;
  for (const wire::Route* route : router_.rows())
    front.permissions[route] = route->open ? Permission::open : Permission::signed_in;
  for (const wire::Route* route : router_.rows())
    if (route->pattern == "/v1/hello") front.permissions[route] = Permission::entities_write;
  start({.bytes = 1000}, std::move(front));
  const std::string writer =
      "Authorization: Bearer " +
      *authenticator_->issue(json::object(
          {{"caas_org_id", "a"}, {"sub", "ann"}, {"scopes", json::Array{"ROLE_ADMIN"}}})) +
      "\r\n";
  auto one = client();
  EXPECT_EQ(one->ask(post("/v1/hello", writer, "{}")).status, 200);
  authenticator_->tenants().use("a")->set_stored(1001);
  Got refused = one->ask(post("/v1/hello", writer, "{}"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "TENANT_BYTES");
  EXPECT_EQ(one->get("/v1/hello", writer).status, 200);
}

TEST_F(LimitsTest, a_body_in_several_pieces_is_authenticated_once) {
  start({.requests_per_second = 2});
  auto one = client();
  const std::string request = post("/v1/hello", headers_["a"], std::string(100'000, 'x'));
  const size_t head = request.find("\r\n\r\n") + 4;
  // Each authentication counts one request. With two for this one, the next would be refused.
  one->send(request.substr(0, head + 10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  one->send(request.substr(head + 10, 50'000));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  one->send(request.substr(head + 50'010));
  EXPECT_EQ(one->answer().body, "a");
  EXPECT_EQ(one->get("/v1/hello", headers_["a"]).status, 200);
}

TEST_F(LimitsTest, the_bodies_of_one_tenant_leave_room_for_the_others) {
  start({});
  // Bodies may use 32 MiB. Each of these counts 4 MiB while its answer is out.
  EXPECT_EQ(client()->get("/v1/hello", headers_["b"]).status, 200);
  std::vector<std::unique_ptr<Client>> loud;
  const std::string request = post("/v1/wait", headers_["a"], std::string(1 << 20, 'x'));
  for (int i = 0; i < 4; ++i) {
    loud.push_back(client());
    loud.back()->send(request);
  }
  ASSERT_TRUE(soon([&] {
    std::lock_guard lock(mutex_);
    return waiting_.size() == 4;
  }));
  auto more = client();
  more->send(request);
  Got refused = more->answer();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "TENANT_MEMORY");
  EXPECT_EQ(client()->ask(post("/v1/hello", headers_["b"], std::string(1 << 20, 'x'))).body, "b");
  EXPECT_GE(authenticator_->tenants().refused(Limit::memory), 1u);
}

}  // namespace
}  // namespace pawl::server
