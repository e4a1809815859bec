#include "server/http/front.h"

#include <gtest/gtest.h>

#include "base/dice.h"
#include "base/log.h"
#include "server/http/test_client.h"
#include "server/ops/admin.h"

namespace pawl::server {
namespace {

using testing::Client;
using testing::Got;

bool is_loopback_origin(std::string_view origin) { return origin.starts_with("http://localhost"); }

class FrontTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log_level(Level::off);
    auto hello = [](wire::Request request, wire::Respond respond) {
      respond(wire::text_response(200, request.caller.tenant + " " + request.params.at(0)));
    };
    auto broken = [](wire::Request, wire::Respond respond) {
      respond(wire::text_response(500, "oh"));
    };
    auto ticketed = [](wire::Request, wire::Respond respond) {
      wire::Response response = wire::text_response(503, "oh");
      response.headers.emplace_back("Pawl-Ticket", "mine");
      respond(std::move(response));
    };
    auto thrower = [](wire::Request, wire::Respond) { throw std::length_error("too long"); };
    wire::Dialect open{
        "/v1/", [](const wire::Request&, const Error& error, std::string_view allow) {
          return wire::text_response(allow.empty() ? wire::code_status(error.code).http : 405,
                                     "v1:" + error.reason);
        }};
    open.cors = [](std::string_view) {
      return wire::Cors{"*",  "GET, POST, OPTIONS", "Accept, Authorization, Content-Type", 300, 200,
                        false};
    };
    router_.add({{"GET", "/v1/hello/{name}", hello, ""},
                 wire::open({"GET", "/v1/open/{name}", hello, ""}),
                 wire::open({"GET", "/v1/broken", broken, ""}),
                 wire::open({"GET", "/v1/ticketed", ticketed, ""}),
                 wire::open({"GET", "/v1/thrower", thrower, ""})},
                open);
    wire::Dialect echoed{"/api/", {}};
    echoed.cors = [](std::string_view origin) {
      return wire::Cors{is_loopback_origin(origin) ? std::string(origin) : "",
                        "GET, POST, PUT, PATCH, DELETE, OPTIONS",
                        "Authorization, Content-Type, traceparent, tracestate",
                        86400,
                        204,
                        true};
    };
    router_.add({{"GET", "/api/hello/{name}", hello, ""}}, echoed);
    router_.add({wire::open({"GET", "/workflows/{name}", hello, ""})},
                wire::Dialect{"/workflows", {}});
  }
  void TearDown() override {
    if (server_) server_->stop(500);
    log_level(Level::info);
  }
  void start(AuthOptions auth = {}, HttpOptions options = {},
             BrowserRules browsers = {.allowed_origins = {"*"}, .allowed_hosts = {"*"}}) {
    auto made = Authenticator::make(std::move(auth), [] { return Time{1'800'000'000} * kSecond; });
    ASSERT_TRUE(made) << made.error().message;
    authenticator_ = std::move(*made);
    FrontOptions front;
    front.browsers = std::move(browsers);
    front_ = std::make_unique<HttpFront>(router_, *authenticator_, metrics_, std::move(front));
    options.address = {"127.0.0.1", 0};
    options.refuse = front_->refuser();
    options.judge_head = front_->judge();
    auto started = HttpServer::start(options, front_->handler());
    ASSERT_TRUE(started);
    server_ = std::move(*started);
  }
  Got get(std::string_view path, std::string_view headers = {}) {
    return Client(server_->address().port).get(path, headers);
  }
  Got options(std::string_view path, std::string_view origin) {
    return Client(server_->address().port)
        .ask("OPTIONS " + std::string(path) +
             " HTTP/1.1\r\nHost: t\r\nAccess-Control-Request-Method: POST\r\nOrigin: " +
             std::string(origin) + "\r\n\r\n");
  }

  wire::Router router_;
  Metrics metrics_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(FrontTest, in_mode_none_every_caller_is_the_configured_one) {
  start();
  EXPECT_EQ(get("/v1/hello/you").body, "mock-tenant you");
}

TEST_F(FrontTest, a_missing_token_is_401_in_the_dialect_of_the_route) {
  AuthOptions auth;
  auth.mode = AuthMode::jwt;
  RsaKey key = RsaKey::generate();
  auth.signing_key = key.private_pem();
  start(auth);
  Got refused = get("/v1/hello/you");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.body, "v1:UNAUTHORIZED");
  EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(get("/v1/open/you").status, 200);
  std::string token =
      *authenticator_->issue(json::object({{"caas_org_id", "acme"}, {"sub", "ann"}}));
  EXPECT_EQ(get("/v1/hello/you", "Authorization: Bearer " + token + "\r\n").body, "acme you");
}

TEST_F(FrontTest, each_dialect_has_its_own_cors) {
  start();
  Got plain = options("/v1/hello/you", "http://anywhere");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(plain.header("Access-Control-Allow-Methods"), "GET, POST, OPTIONS");
  EXPECT_EQ(plain.header("Access-Control-Max-Age"), "300");
  Got near = options("/api/hello/you", "http://localhost:5173");
  EXPECT_EQ(near.status, 204);
  EXPECT_EQ(near.header("Access-Control-Allow-Origin"), "http://localhost:5173");
  EXPECT_EQ(near.header("Access-Control-Max-Age"), "86400");
  EXPECT_EQ(near.header("Vary"), "Origin");
  Got far = options("/api/hello/you", "http://evil.example");
  EXPECT_EQ(far.header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(far.header("Access-Control-Allow-Methods"), "");
  EXPECT_EQ(get("/api/hello/you").header("Vary"), "Origin");
  EXPECT_EQ(get("/api/nothing").header("Vary"), "Origin");
  EXPECT_EQ(options("/workflows/x", "http://localhost").status, 405);
}

TEST_F(FrontTest, a_503_is_not_logged_as_a_failure) {
  start();
  log_level(Level::info);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(get("/v1/ticketed").status, 503);
  EXPECT_EQ(get("/v1/broken").status, 500);
  std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(lines.find("request put off"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("request failed"), lines.rfind("request failed"));
  EXPECT_EQ(lines.find("/v1/ticketed"), lines.rfind("/v1/ticketed"));
  EXPECT_LT(lines.find("/v1/ticketed"), lines.find("request failed"));
}

TEST_F(FrontTest, a_failure_carries_a_ticket) {
  start();
  EXPECT_TRUE(is_uuid(get("/v1/broken").header("Pawl-Ticket")));
  EXPECT_EQ(get("/v1/ticketed").header("Pawl-Ticket"), "mine");
  Got thrown = get("/v1/thrower");
  EXPECT_EQ(thrown.status, 500);
  EXPECT_TRUE(is_uuid(thrown.header("Pawl-Ticket")));
}

TEST_F(FrontTest, the_request_id_comes_back) {
  start();
  EXPECT_EQ(get("/v1/hello/x", "X-Request-Id: abc-1\r\n").header("X-Request-Id"), "abc-1");
}

TEST_F(FrontTest, a_body_over_the_limit_is_refused_in_the_dialect_of_its_path) {
  start();
  Client client(server_->address().port);
  Got got = client.ask("POST /v1/hello/x HTTP/1.1\r\nHost: t\r\nContent-Length: 20000000\r\n\r\n");
  EXPECT_EQ(got.status, 413);
  EXPECT_EQ(got.body, "v1:BODY_TOO_LARGE");
  EXPECT_EQ(got.header("Access-Control-Allow-Origin"), "*");
}

TEST_F(FrontTest, durations_are_counted_by_route_pattern) {
  start();
  get("/v1/hello/a");
  get("/v1/hello/b");
  get("/nowhere");
  std::string text = metrics_.text();
  EXPECT_NE(
      text.find(R"(pawl_http_request_seconds_count{method="GET",route="/v1/hello/{name}"} 2)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(pawl_http_responses_total{status="4xx"} 1)"), std::string::npos);
  EXPECT_NE(text.find("pawl_http_requests_in_flight 0"), std::string::npos);
}

TEST(metrics, buckets_cumulate_and_the_last_has_no_bound) {
  Metrics metrics;
  Histogram& commits = metrics.histogram("pawl_commit_seconds");
  commits.observe(100 * kMicrosecond);
  commits.observe(3 * kMillisecond);
  commits.observe(200 * kSecond);
  std::string text = metrics.text();
  EXPECT_NE(text.find("pawl_commit_seconds_bucket{le=\"0.0001\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("pawl_commit_seconds_bucket{le=\"0.002\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("pawl_commit_seconds_bucket{le=\"0.005\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("pawl_commit_seconds_bucket{le=\"100\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("pawl_commit_seconds_bucket{le=\"+Inf\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("pawl_commit_seconds_count 3\n"), std::string::npos);
  EXPECT_NE(text.find("# TYPE pawl_commit_seconds histogram\n"), std::string::npos);
}

TEST(metrics, no_addition_is_lost_between_threads) {
  Metrics metrics;
  Counter& frames = metrics.counter("pawl_frames_total");
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10'000; ++k)
        frames.add();
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(frames.value(), 100'000u);
}

TEST(metrics, labels_are_escaped_and_bounded) {
  Metrics metrics;
  metrics.gauge("pawl_build_info", {"a\"b\\c\nd"}).set(3);
  EXPECT_NE(metrics.text().find(R"(pawl_build_info{version="a\"b\\c\nd"} 3)"), std::string::npos);
  for (size_t i = 0; i < limits::kMetricSeries + 10; ++i)
    metrics.gauge("pawl_build_info", {std::to_string(i)}).add(1);
  EXPECT_NE(metrics.text().find(R"(pawl_build_info{version="other"} 11)"), std::string::npos);
}

std::string ask_admin(const wire::Router& router, std::string path, std::string query, int& status,
                      wire::Headers headers = {}) {
  wire::Request request;
  request.method = "GET";
  request.path = std::move(path);
  request.query = std::move(query);
  request.headers = std::move(headers);
  std::string body;
  router.dispatch(std::move(request), [&](wire::Response response) {
    status = response.status;
    body = response.body;
  });
  return body;
}

TEST(admin, the_server_is_ready_when_every_check_passes) {
  Metrics metrics;
  bool journal = false;
  AdminOptions options;
  options.ready = {{"http", [] { return Result<void>{}; }}, {"journal", [&]() -> Result<void> {
                                                               if (journal) return {};
                                                               return fail(Code::unavailable, "X",
                                                                           "the disk is full");
                                                             }}};
  options.metrics_bearer = "s3cret";
  wire::Router router;
  router.add(admin_routes(metrics, options), wire::Dialect{"/", {}});
  int status = 0;
  EXPECT_EQ(ask_admin(router, "/livez", "", status), "ok");
  EXPECT_EQ(ask_admin(router, "/readyz", "", status), "not ready");
  EXPECT_EQ(status, 503);
  EXPECT_EQ(ask_admin(router, "/readyz", "verbose", status),
            "[+] http ok\n[-] journal failed: the disk is full\nnot ready");
  journal = true;
  EXPECT_EQ(ask_admin(router, "/readyz", "", status), "ready");
  EXPECT_EQ(status, 200);
  EXPECT_EQ(ask_admin(router, "/startupz", "", status), "started");
  ask_admin(router, "/metrics", "", status);
  EXPECT_EQ(status, 401);
  ask_admin(router, "/metrics", "", status, {{"Authorization", "Bearer s3cret"}});
  EXPECT_EQ(status, 200);
}

}  // namespace
}  // namespace pawl::server
