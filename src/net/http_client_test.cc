#include "net/http_client.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "net/scripted_test.h"
#include "server/http/server.h"

namespace pawl::net {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// The client's reading of one answer: "STATUS body", or why it is refused.
struct Reading {
  std::string method = "GET";
  size_t step = 0;
  size_t max_answer_bytes = 100;
  bool allow_unknown_length = false;
};
std::string read(const std::string& answer, const Reading& how = {}) {
  ScriptedServer server({{answer}}, how.step);
  HttpClient client({.base_url = server.url(),
                     .timeout = 10s,
                     .max_answer_bytes = how.max_answer_bytes,
                     .allow_unknown_length = how.allow_unknown_length});
  auto got = client.send({how.method, "/"});
  return got ? std::to_string(got->status) + " " + got->body : got.error().message;
}

// Each answer is also sent one, two and seven bytes at a time, so that every border falls between
// two reads.
TEST(http_client, an_answer_is_read_however_its_bytes_arrive) {
  const std::pair<std::string, std::string> cases[] = {
      {kHello, "200 hello"},
      {"HTTP/1.1 200 OK\r\ncontent-length:5 \r\n\r\nhello", "200 hello"},
      {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 "},
      {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: "
       "chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
       "404 hello"},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;name=\"x\"\r\nhel\r\n02 "
       "\r\nlo\r\n0\r\nDigest: x\r\nOther: y\r\n\r\n",
       "200 hello"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 "
       "Created\r\nContent-Length: 2\r\n\r\nok",
       "201 ok"},
      {"HTTP/1.1 204 No Content\r\n\r\n", "204 "},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 "},
  };
  for (const auto& [text, expected] : cases)
    for (size_t step : {1u, 2u, 7u, 1000u})
      EXPECT_EQ(read(text, {.step = step}), expected) << text;
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", {.method = "HEAD"}), "200 ");
}

TEST(http_client, a_malformed_answer_is_refused_with_its_reason) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "the connection was closed without an answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "the answer was cut off"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "the answer was cut off"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n",
       "the answer was cut off"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello", "a length that is no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
       "a length that is no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", "the answer is too large"},
      {"HTTP/1.1 200 OK\r\n\r\nhello", "the answer does not say how long it is"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n",
       "the head of the answer is too long"},
  };
  for (const auto& [text, why] : cases)
    EXPECT_TRUE(read(text).starts_with(why)) << text.substr(0, 80) << " -> " << read(text);
  // libcurl refuses these in its own words.
  for (std::string text :
       {"garbage", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200 OK fine\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello", "HTTP/1.1 200 OK\r\nConte",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"}) {
    ScriptedServer server({{text}});
    HttpClient client({.base_url = server.url(), .timeout = 10s});
    auto got = client.send({"GET", "/"});
    ASSERT_FALSE(got) << text;
    EXPECT_TRUE(got.error().is(kBadAnswer)) << text << " -> " << got.error().reason;
  }
}

TEST(http_client, many_small_parts_of_an_answer_are_bounded_too) {
  std::string headers = "HTTP/1.1 200 OK\r\n", interim;
  std::string chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 10'000; ++i) {
    headers += "Name: value\r\n";
    chunks += "40\r\n" + std::string(64, 'x') + "\r\n";
    interim += "HTTP/1.1 103 Wait\r\n\r\n";
  }
  EXPECT_EQ(read(headers), "the head of the answer is too long");
  EXPECT_EQ(read(chunks), "the answer is too large");
  EXPECT_EQ(read(interim), "one interim answer after the other, and no answer");
  const std::string endless = "HTTP/1.1 200 OK\r\n\r\n" + std::string(101, 'x');
  EXPECT_EQ(read(endless, {.allow_unknown_length = true}), "the answer is too large");
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n\r\nhello", {.allow_unknown_length = true}), "200 hello");
}

TEST(http_client, a_connection_is_reused_until_the_server_closes_it) {
  const std::string closing =
      "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 5\r\n\r\nhello";
  ScriptedServer server({{kHello, kHello, closing, kHello}, {kHello}});
  HttpClient client({.base_url = server.url(), .timeout = 10s});
  for (int i = 0; i < 4; ++i) {
    auto got = client.send({"POST", "/", {}, "body"});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "hello");
    EXPECT_EQ(server.connections(), i < 3 ? 1 : 2);
  }
}

TEST(http_client, a_request_that_may_have_been_carried_out_is_not_sent_again) {
  // libcurl opens a second connection for a repetition; nothing may be sent on it.
  ScriptedServer server({{kHello, ""}, {}, {kHello}});
  HttpClient client({.base_url = server.url(), .timeout = 10s});
  ASSERT_TRUE(client.send({"POST", "/"}));
  auto lost = client.send({"POST", "/", {}, "pay"});
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().is(kBadAnswer)) << lost.error().message;
  EXPECT_EQ(server.requests(), 2);
  EXPECT_TRUE(client.send({"POST", "/"}));
}

TEST(http_client, a_read_on_a_closed_connection_is_sent_again) {
  ScriptedServer server({{kHello, ""}, {kHello}});
  HttpClient client({.base_url = server.url(), .timeout = 10s});
  ASSERT_TRUE(client.send({"GET", "/"}));
  auto again = client.send({"GET", "/"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->body, "hello");
  EXPECT_EQ(server.connections(), 2);
}

TEST(http_client, only_the_headers_that_were_asked_for_are_sent) {
  ScriptedServer server({{kHello, kHello}});
  HttpClient client({.base_url = server.url(),
                     .headers = {{"Authorization", "Bearer t"}, {"X-Who", "client"}},
                     .media_type = "application/json",
                     .timeout = 10s});
  ASSERT_TRUE(client.send({"PUT", "/a/../b?c=%20", {{"x-who", "me"}, {"X-Empty", ""}}, "{}"}));
  EXPECT_EQ(server.last_request(), "PUT /a/../b?c=%20 HTTP/1.1\r\nHost: " + server.address() +
                                       "\r\nx-who: me\r\nX-Empty:\r\nAuthorization: Bearer "
                                       "t\r\nContent-Type: application/json\r\nContent-Length: "
                                       "2\r\n\r\n{}");
  ASSERT_TRUE(client.send({"DELETE", "/"}));
  EXPECT_NE(server.last_request().find("Content-Length: 0\r\n"), std::string::npos);
  EXPECT_EQ(server.last_request().find("Content-Type"), std::string::npos);
}

TEST(http_client, a_malformed_request_is_refused_before_it_is_sent) {
  ScriptedServer server({{kHello}});
  HttpClient client({.base_url = server.url()});
  const std::string nul("a\0b", 3);
  const HttpRequest requests[] = {{"GE T", "/"},
                                  {"", "/"},
                                  {"GET", "/a b"},
                                  {"GET", "/a\r\nX: y"},
                                  {"GET", "nowhere"},
                                  {"GET", "http://127%2e0.0.1/"},
                                  {"GET", "/", {{"A", "b\r\nC: d"}}},
                                  {"GET", "/", {{"A", nul}}},
                                  {"GET", "/", {{"A: b\r\nC", "d"}}},
                                  {"GET", "/", {{"", "d"}}}};
  for (const HttpRequest& request : requests) {
    auto refused = client.send(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid) << refused.error().message;
  }
  EXPECT_EQ(server.connections(), 0);
}

TEST(http_client, a_silent_server_is_left_at_the_deadline) {
  ScriptedServer server({{std::nullopt}, {std::nullopt}});
  HttpClient client({.base_url = server.url(), .timeout = 50ms});
  auto begun = Clock::now();
  auto by_timeout = client.send({"GET", "/"});
  auto by_deadline = client.send({"GET", "/"}, {.deadline = Clock::now() + 50ms});
  ASSERT_FALSE(by_timeout || by_deadline);
  EXPECT_TRUE(by_timeout.error().is(kTimedOut)) << by_timeout.error().message;
  EXPECT_TRUE(by_deadline.error().is(kTimedOut)) << by_deadline.error().message;
  EXPECT_LT(Clock::now() - begun, 5s);
}

TEST(http_client, a_stop_ends_a_call_at_once) {
  ScriptedServer server({{std::nullopt}});
  HttpClient client({.base_url = server.url(), .timeout = 60s});
  std::stop_source stop;
  auto begun = Clock::now();
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  auto stopped = client.send({"GET", "/"}, {.stop = stop.get_token()});
  ASSERT_FALSE(stopped);
  EXPECT_TRUE(stopped.error().is(kStopped)) << stopped.error().message;
  EXPECT_LT(Clock::now() - begun, 5s);
}

const std::string kStreamHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(http_client, a_stream_arrives_in_pieces_until_the_reader_has_enough) {
  ScriptedServer server({{kStreamHead + "3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n"}});
  HttpClient client({.base_url = server.url(), .timeout = 10s});
  std::string said;
  auto answer = client.stream({"GET", "/"}, {}, 10s, [&](BytesView piece) {
    said.append(piece).append("|");
    return said.size() < 8;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(said, "one|two|");
  EXPECT_EQ(answer->body, "");
}

TEST(http_client, a_refused_stream_gives_the_body_of_the_refusal) {
  ScriptedServer server({{"HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nwhy"}});
  HttpClient client({.base_url = server.url(), .timeout = 10s});
  auto answer = client.stream({"GET", "/"}, {}, 10s, [](BytesView) -> bool {
    ADD_FAILURE() << "only a 200 is streamed";
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->body, "why");
}

// Streams `head` and then nothing more, for ever.
struct Endless {
  std::unique_ptr<server::HttpServer> http;
  std::mutex mutex;
  std::vector<std::shared_ptr<wire::Stream>> streams;
  Endless() {
    server::HttpOptions options;
    options.address = *server::parse_address("127.0.0.1:0");
    http = *server::HttpServer::start(options, [this](wire::Request, wire::Respond respond) {
      wire::Response response;
      response.stream = [this](std::shared_ptr<wire::Stream> stream) {
        stream->write("first");
        std::lock_guard lock(mutex);
        streams.push_back(std::move(stream));
      };
      respond(std::move(response));
    });
  }
};

TEST(http_client, a_stream_ends_at_once_when_stopped_and_in_time_when_silent) {
  Endless server;
  HttpClient client({.base_url = "http://" + server.http->address().text(), .timeout = 10s});
  auto begun = Clock::now();
  std::stop_source stop;
  auto stopped = client.stream({"GET", "/"}, {.stop = stop.get_token()}, 60s, [&](BytesView) {
    std::thread([&] { stop.request_stop(); }).detach();
    return true;
  });
  ASSERT_FALSE(stopped);
  EXPECT_TRUE(stopped.error().is(kStopped)) << stopped.error().message;
  auto silent = client.stream({"GET", "/"}, {}, 100ms, [](BytesView) { return true; });
  ASSERT_FALSE(silent);
  EXPECT_TRUE(silent.error().is(kTimedOut)) << silent.error().message;
  EXPECT_LT(Clock::now() - begun, 5s);
}

TEST(http_client, threads_share_a_client) {
  server::HttpOptions options;
  options.address = *server::parse_address("127.0.0.1:0");
  auto http = *server::HttpServer::start(options, [](wire::Request request, wire::Respond respond) {
    respond(wire::text_response(200, request.body));
  });
  HttpClient client({.base_url = "http://" + http->address().text(), .timeout = 10s});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&client, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string mine = std::to_string(t) + "/" + std::to_string(i);
        auto got = client.send({"POST", "/", {}, mine});
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(got->body, mine);
      }
    });
}

TEST(http_client, an_environment_proxy_is_not_used) {
  ScriptedServer server({{kHello}});
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  HttpClient client({.base_url = server.url(), .timeout = 10s});
  auto got = client.send({"GET", "/"});
  ::unsetenv("http_proxy");
  EXPECT_TRUE(got) << got.error().message;
}

struct tls_client : testing::Test {
  std::string folder = testing::TempDir() + "/pawl-http-client-" + std::to_string(getpid());
  std::string certificate = folder + "/certificate.pem";
  std::unique_ptr<server::HttpServer> http;
  std::string port;

  void serve(const std::string& subject) {
    std::string made = "mkdir -p " + folder +
                       " && openssl req -x509 -newkey rsa:2048 -nodes -days 1 -keyout " + folder +
                       "/key.pem -out " + certificate + " " + subject + " 2> /dev/null";
    ASSERT_EQ(std::system(made.c_str()), 0);
    server::HttpOptions options;
    options.address = *server::parse_address("127.0.0.1:0");
    options.tls = {certificate, folder + "/key.pem"};
    options.limits.body_bytes = 1 << 20;
    http = *server::HttpServer::start(options, [](wire::Request, wire::Respond respond) {
      respond(wire::text_response(200, "safe"));
    });
    port = http->address().text().substr(10);
  }
  void TearDown() override {
    http.reset();
    std::system(("rm -rf " + folder).c_str());
  }
  Result<HttpAnswer> get(const std::string& host, const std::string& ca_file) {
    HttpClient client({.timeout = 10s, .ca_file = ca_file});
    return client.send({"GET", "https://" + host + ":" + port + "/"});
  }
};

TEST_F(tls_client, a_server_must_prove_its_name_by_a_trusted_certificate) {
  serve("-subj /CN=localhost -addext subjectAltName=DNS:localhost");
  auto by_name = get("localhost", certificate);
  ASSERT_TRUE(by_name) << by_name.error().message;
  EXPECT_EQ(by_name->body, "safe");
  for (const auto& refused : {get("127.0.0.1", certificate), get("localhost", "")}) {
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(kBadCertificate)) << refused.error().message;
    EXPECT_EQ(refused.error().code, Code::denied);
  }
  auto no_file = get("localhost", folder + "/nothing.pem");
  ASSERT_FALSE(no_file);
  EXPECT_TRUE(no_file.error().is(kBadCaFile));
  EXPECT_NE(no_file.error().message.find("nothing.pem"), std::string::npos);
}

TEST_F(tls_client, an_address_in_the_common_name_proves_nothing) {
  serve("-subj /CN=127.0.0.1");
  auto refused = get("127.0.0.1", certificate);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(kBadCertificate)) << refused.error().message;
}

// A broken TLS connection must not end the process by SIGPIPE.
TEST_F(tls_client, a_peer_that_closes_during_an_upload_ends_only_the_call) {
  serve("-subj /CN=nobody -addext subjectAltName=IP:127.0.0.1");
  HttpClient client({.timeout = 10s, .ca_file = certificate});
  for (int i = 0; i < 3; ++i) {
    auto got =
        client.send({"POST", "https://127.0.0.1:" + port + "/", {}, std::string(32u << 20, 'x')});
    EXPECT_TRUE(!got || got->status == 413);
  }
}

TEST(server_url, adds_what_was_not_typed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "http://127.0.0.1:8080"},
      {"a.example", "http://a.example:8080"},
      {"a.example:81", "http://a.example:81"},
      {"http://a.example/", "http://a.example:8080"},
      {"https://a.example", "https://a.example:443"},
      {"[::1]", "http://[::1]:8080"},
      {"https://[::1]:81", "https://[::1]:81"},
  };
  for (auto [typed, url] : cases)
    EXPECT_EQ(server_url(typed), url) << typed;
}

}  // namespace
}  // namespace pawl::net
