#include "net/fetch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/limits.h"
#include "server/http/server.h"

namespace pawl::net {

// A server that echoes the request, so that a test sees what was sent.
struct Peer {
  std::unique_ptr<server::HttpServer> http;
  Peer() {
    server::HttpOptions options;
    options.address = *server::parse_address("127.0.0.1:0");
    http = *server::HttpServer::start(options, [](wire::Request request, wire::Respond respond) {
      if (request.path == "/stream") {
        wire::Response r;
        r.stream = [](std::shared_ptr<wire::Stream> s) {
          s->write("one ");
          s->write("two");
          s->end();
        };
        return respond(std::move(r));
      }
      respond(wire::json_response(request.path == "/teapot" ? 418 : 200,
                                  request.method + " " + request.path + " " +
                                      std::string(request.header("X-Who")) + " " + request.body));
    });
  }
  std::string url(const std::string& path) { return "http://" + http->address().text() + path; }
};

TEST(fetch, a_request_goes_out_and_its_answer_comes_back) {
  Peer peer;
  Fetcher fetcher(2, 5);
  std::promise<Result<wire::Response>> got;
  fetcher.send({"POST", peer.url("/a?b=c"), {{"X-Who", "me"}}, "body", true},
               [&](Result<wire::Response> r) { got.set_value(std::move(r)); });
  auto answer = got.get_future().get();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "POST /a me body");
  EXPECT_EQ(fetch_now({"GET", peer.url("/teapot"), {}, "", true}, 5)->status, 418);
  EXPECT_EQ(fetch_now({"GET", peer.url("/stream"), {}, "", true}, 5)->body, "one two");
}

TEST(fetch, requests_that_wait_are_limited_by_number_and_by_bytes) {
  // A listener that accepts nothing: the first request waits for its answer until the time is over.
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(silent, 8), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&at), &size), 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/";
  std::atomic<int> full{0};
  {
    Fetcher fetcher(1, 2, 3, 100);
    auto send = [&](size_t bytes) {
      fetcher.send({"POST", url, {}, Bytes(bytes, 'x'), true}, [&](Result<wire::Response> r) {
        if (!r && r.error().reason == "FETCH_QUEUE_FULL") ++full;
      });
    };
    send(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it is under way
    send(40);
    send(40);
    EXPECT_EQ(full, 0);
    send(40);  // too many bytes
    EXPECT_EQ(full, 1);
    send(1);
    EXPECT_EQ(full, 1);
    send(1);  // three wait already
    EXPECT_EQ(full, 2);
  }
  ::close(silent);
}

TEST(fetch, a_private_address_is_refused_unless_allowed) {
  Peer peer;
  auto refused = fetch_now({"GET", peer.url("/"), {}, "", false}, 5);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("private"), std::string::npos);
  EXPECT_FALSE(fetch_now({"GET", "http://[::1]:1/", {}, "", false}, 5));
  // Loopback and private addresses in disguise: IPv4 inside IPv6, and numbers that the resolver
  // reads as addresses.
  for (const char* host :
       {"[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::a00:1]", "[2002:7f00:1::]", "[fec0::1]",
        "[fe80::1]", "[fd00::1]", "2130706433", "0x7f.1", "0177.1", "0"}) {
    auto hidden = fetch_now({"GET", "http://" + std::string(host) + ":1/", {}, "", false}, 5);
    ASSERT_FALSE(hidden);
    EXPECT_NE(hidden.error().message.find("private"), std::string::npos) << hidden.error().message;
  }
}

TEST(fetch, the_fragment_of_a_url_is_not_sent) {
  Peer peer;
  EXPECT_EQ(fetch_now({"GET", peer.url("/a#b"), {}, "", true}, 5)->body, "GET /a  ");
  EXPECT_EQ(fetch_now({"GET", peer.url("#b"), {}, "", true}, 5)->body, "GET /  ");
}

TEST(fetch, a_certificate_may_name_an_address) {
  std::string folder = testing::TempDir() + "/pawl-fetch-tls-" + std::to_string(getpid());
  std::string made = "mkdir -p " + folder +
                     " && openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=nobody "
                     "-addext subjectAltName=IP:127.0.0.1 -keyout " +
                     folder + "/key.pem -out " + folder + "/certificate.pem 2> /dev/null";
  ASSERT_EQ(std::system(made.c_str()), 0);
  server::HttpOptions options;
  options.address = *server::parse_address("127.0.0.1:0");
  options.tls = {folder + "/certificate.pem", folder + "/key.pem"};
  auto http = *server::HttpServer::start(options, [](wire::Request, wire::Respond respond) {
    respond(wire::text_response(200, "safe"));
  });
  std::string port = http->address().text().substr(10);
  ::setenv("SSL_CERT_FILE", (folder + "/certificate.pem").c_str(), 1);
  auto by_address = fetch_now({"GET", "https://127.0.0.1:" + port + "/", {}, "", true}, 5);
  auto by_other_name = fetch_now({"GET", "https://localhost:" + port + "/", {}, "", true}, 5);
  ::unsetenv("SSL_CERT_FILE");
  auto unknown = fetch_now({"GET", "https://127.0.0.1:" + port + "/", {}, "", true}, 5);
  std::system(("rm -r " + folder).c_str());
  ASSERT_TRUE(by_address) << by_address.error().message;
  EXPECT_EQ(by_address->body, "safe");
  EXPECT_FALSE(by_other_name);
  EXPECT_FALSE(unknown);
}

// A slow peer: it accepts one connection and does a little with it every 50 ms.
struct SlowPeer {
  std::atomic<bool> over{false};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  std::string port;
  std::thread thread;
  explicit SlowPeer(std::function<ssize_t(int fd)> little) {
    int small = 4096;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    port = std::to_string(ntohs(address.sin_port));
    thread = std::thread([this, little = std::move(little)] {
      int fd = accept(listener, nullptr, nullptr);
      while (!over && little(fd) > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      close(fd);
    });
  }
  ~SlowPeer() {
    over = true;
    thread.join();
    close(listener);
  }
};

TEST(fetch, the_time_limit_holds_however_slowly_the_peer_works) {
  auto takes = [](int fd) {
    char some[2048];
    return recv(fd, some, sizeof some, 0);
  };
  auto gives = [](std::string lead) {
    return [lead, at = size_t{0}](int fd) mutable {
      char next = at < lead.size() ? lead[at] : 'x';
      ++at;
      return send(fd, &next, 1, MSG_NOSIGNAL);
    };
  };
  struct Case {
    const char* scheme;
    std::function<ssize_t(int)> little;
    std::string body;
  } cases[] = {
      {"http://", takes, Bytes(limits::kBodyBytes, 'x')},  // the request
      {"https://", gives(std::string("\x16\x03\x03\x40\x00\x02\x00\x3f\xf0\x03\x03", 11)),
       ""},                                              // the server's hello
      {"http://", gives("HTTP/1.1 200 OK\r\nX: "), ""},  // the answer
  };
  for (Case& c : cases) {
    auto begun = std::chrono::steady_clock::now();
    SlowPeer peer(c.little);
    auto answer =
        fetch_now({"PUT", c.scheme + ("127.0.0.1:" + peer.port) + "/", {}, c.body, true}, 1);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, "TIMEOUT") << answer.error().message;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10)) << c.scheme;
  }
}

TEST(fetch, bad_urls_and_headers_are_refused) {
  for (std::string url : {"", "ftp://x/", "http://", "http://u:p@127.0.0.1/", "http://127.0.0.1/ x",
                          "http://127.0.0.1/\r\nX: y"})
    EXPECT_FALSE(fetch_now({"GET", url, {}, "", true}, 1)) << url;
  Peer peer;
  EXPECT_FALSE(fetch_now({"GET", peer.url("/"), {{"A", "b\r\nC: d"}}, "", true}, 1));
}

}  // namespace pawl::net
