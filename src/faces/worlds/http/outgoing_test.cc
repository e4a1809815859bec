// Requests that worlds send out, and modules that wait for memory.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using Http = Served;

struct Canned final : HttpClient {
  void send(HttpCall call, std::move_only_function<void(Result<HttpReply>)> done) override {
    calls.push_back(call);
    done(HttpReply{200, {{"X", "y"}, {"Latin", "caf\xe9"}}, "the body"});
  }
  std::vector<HttpCall> calls;
};

TEST_F(Http, http_requests_go_only_to_allowed_hosts) {
  Canned client;
  stage.face = std::make_unique<Face>(stage, stage, stage.program->worlds, stage.background,
                                      FaceOptions{.http_allow = {"example.com"}}, &client);
  make();
  auto request = [](const char* url) {
    return EmittedEffect{"sys/http.request@1",
                         cbor::encode(cbor::Map{
                             {"method", "GET"}, {"url", url}, {"headers", cbor::Map{{"A", "b"}}}}),
                         {},
                         {}};
  };
  event_with("a", output({"s"}, {request("https://example.com/x"), request("http://127.0.0.1/")}));
  auto open = stage.open;
  for (const auto& [id, effect] : open)
    stage.face->executors().opened(effect);
  ASSERT_EQ(client.calls.size(), 1u);
  EXPECT_FALSE(client.calls[0].allow_private);
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")),
            (std::vector<std::string>{"s", "Receipt", "Receipt"}));
  EXPECT_EQ(stage.head("w").receipts_ok, 1u);
  EXPECT_EQ(stage.head("w").receipts_error, 1u);
  EXPECT_NE(stage.http("GET", "/v1/worlds/w/journal").body.find("\"latin\":\"caf\xef\xbf\xbd\""),
            std::string::npos);
  EXPECT_TRUE(stage.read(blob_key("t", view(sha256("the body"))))->exists());
}

// Has no room for the first requests.
struct Crowded final : HttpClient {
  void send(HttpCall, std::move_only_function<void(Result<HttpReply>)> done) override {
    if (++tries <= 2) return done(fail(Code::unavailable, kQueueFull, "full"));
    done(HttpReply{200, {}, ""});
    sent = true;
  }
  std::atomic<int> tries{0};
  std::atomic<bool> sent{false};
};

TEST_F(Http, a_request_that_the_client_has_no_room_for_is_sent_later) {
  Crowded client;
  stage.face = std::make_unique<Face>(stage, stage, stage.program->worlds, stage.background,
                                      FaceOptions{.http_allow = {"example.com"}}, &client);
  make();
  event_with("a", output({"s"}, {{"sys/http.request@1",
                                  cbor::encode(cbor::Map{{"method", "GET"},
                                                         {"url", "https://example.com/"},
                                                         {"headers", cbor::Map{}}}),
                                  {},
                                  {}}}));
  auto open = stage.open;
  ASSERT_EQ(open.size(), 1u);
  stage.face->executors().opened(open.begin()->second);
  // From here on only the loop of the executors uses the stage.
  for (int i = 0; i < 500 && !client.sent; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(client.sent);
  EXPECT_EQ(client.tries, 3);
  EXPECT_EQ(stage.head("w").receipts_ok, 1u);
}

TEST_F(Http, a_module_that_does_not_fit_the_memory_for_modules_is_put_off) {
  MemoryBudget budget(1000);
  stage.face = std::make_unique<Face>(stage, stage, stage.program->worlds, stage.background,
                                      FaceOptions{.charge = [&](MemoryUse use, const std::string&) {
                                        return MemoryCharge(&budget, use);
                                      }});
  std::optional<Error> error;
  const std::string empty_module("\0asm\1\0\0\0", 8);
  const std::string large = empty_module + std::string("\0\xfc\x01\1x", 5) + std::string(250, 'y');
  stage.face->service().put_blob({"t", "u", ""}, large,
                                 [&](Result<Answer> put) { error = put.error(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Code::exhausted) << error->message;
  EXPECT_NE(error->message.find("--memory-budget"), std::string::npos) << error->message;
  EXPECT_EQ(budget.used(), 0u);
}

TEST(allowlist, allows_hosts_ports_subdomains_and_listed_private_addresses) {
  const std::vector<std::string> list{"example.com", "*.pay.io", "127.0.0.1:8080", "Api.X:99"};
  EXPECT_TRUE(permission_for("https://example.com/a?b", list).yes);
  EXPECT_TRUE(permission_for("HTTPS://x", list).yes == false);
  EXPECT_TRUE(permission_for("https://eu.pay.io", list).yes);
  EXPECT_FALSE(permission_for("https://evilpay.io", list).yes);
  EXPECT_FALSE(permission_for("https://example.com.evil", list).yes);
  EXPECT_FALSE(permission_for("https://user@example.com/", list).yes);
  EXPECT_TRUE(permission_for("http://127.0.0.1:8080/", list).at_private);
  EXPECT_FALSE(permission_for("http://127.0.0.1:8081/", list).yes);
  EXPECT_FALSE(permission_for("http://localhost/", list).yes);
  EXPECT_TRUE(permission_for("http://api.x:99/", list).yes);
  EXPECT_FALSE(permission_for("http://api.x/", list).yes);
  EXPECT_FALSE(permission_for("file:///etc/passwd", list).yes);
}

}  // namespace
}  // namespace pawl::worlds
