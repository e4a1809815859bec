#include "pawl/client.h"

#include <gtest/gtest.h>

#include "net/scripted_test.h"

namespace pawl::client {
namespace {

using net::ScriptedServer;

constexpr int kTimeoutMs = 2'000;

// The first answer is 503, the second connection closes without an answer, the third succeeds.
TEST(client, a_request_is_repeated_under_one_key_until_it_succeeds) {
  const std::string instance =
      R"({"id":"i1","definitionId":"d","definitionVersion":2,"status":"WAITING","currentStepIds":["a"],"variables":{"big":12345678901234567890}})";
  ScriptedServer server({{"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"},
                         {""},
                         {"HTTP/1.1 201 Created\r\nContent-Length: " +
                          std::to_string(instance.size()) + "\r\n\r\n" + instance}});
  Client client(server.address(), {.timeout_ms = kTimeoutMs});
  auto started = client.start({.definition = "d", .idempotency_key = "my-key"});
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(server.requests(), 3);
  EXPECT_NE(server.last_request().find("Idempotency-Key: my-key\r\n"), std::string::npos);
  EXPECT_EQ(started->version, 2);
  EXPECT_EQ(started->steps, std::vector<std::string>{"a"});
  EXPECT_EQ(started->variables, R"({"big":12345678901234567890})") << "no digit is lost";
  EXPECT_FALSE(started->finished());
}

TEST(client, a_refusal_is_not_repeated) {
  const std::string body = R"({"error":"not-found","reason":"no definition d"})";
  ScriptedServer server({{"HTTP/1.1 404 Not Found\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n" + body}});
  Client client(server.address(), {.timeout_ms = kTimeoutMs});
  auto started = client.start({.definition = "d"});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::not_found);
  EXPECT_EQ(started.error().reason, "not-found");
  EXPECT_EQ(started.error().message, "no definition d");
  EXPECT_FALSE(started.error().retryable);
}

TEST(client, a_call_gives_up_after_its_patience) {
  Client client("127.0.0.1:1", {.patience_ms = 0});
  auto got = client.get("x");
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().retryable);
  EXPECT_NE(got.error().message.find("pawl serve"), std::string::npos);
}

TEST(client, a_refused_token_is_renewed_once) {
  ScriptedServer server({{"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"},
                         {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"}});
  int made = 0;
  Token token(
      [&](bool fresh) -> Result<std::string> { return "token" + std::to_string(made += fresh); });
  Client client(server.address(),
                {.token = token, .timeout_ms = kTimeoutMs, .patience_ms = kTimeoutMs});
  EXPECT_TRUE(client.call("GET", "/"));
  EXPECT_NE(server.last_request().find("Bearer token1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace pawl::client
