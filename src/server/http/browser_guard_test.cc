#include "server/http/browser_guard.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

struct browsers : testing::Test {
  BrowserRules rules{};
  int status(wire::Headers headers, std::string method = "POST") {
    if (!wire::find_header(headers, "Host")) headers.emplace_back("Host", "127.0.0.1:8080");
    wire::Request request;
    request.method = std::move(method);
    request.path = "/v1/instances";
    request.headers = std::move(headers);
    auto fault = BrowserGuard(rules).check(request);
    return fault ? fault->status : 200;
  }
};

TEST_F(browsers, programs_are_not_affected) {
  EXPECT_EQ(status({}), 200);
  EXPECT_EQ(status({{"Content-Type", "application/x-www-form-urlencoded"}}), 200);  // curl -d
  EXPECT_EQ(status({{"Content-Type", "text/plain"}}), 200);
  EXPECT_EQ(status({{"Content-Type", "text/plain;charset=UTF-8"}, {"Sec-Fetch-Mode", "cors"}}),
            200);  // fetch() of Node
  EXPECT_EQ(status({{"Content-Type", "application/json"}, {"User-Agent", "x"}}), 200);
}

TEST_F(browsers, a_host_is_an_address_a_loopback_name_or_listed) {
  for (auto host : {"localhost", "LOCALHOST:8080", "localhost.", "a.localhost:1", "127.0.0.1",
                    "10.1.2.3:8080", "[::1]:8080", "[fe80::1]", "0.0.0.0:8080"})
    EXPECT_EQ(status({{"Host", host}}), 200) << host;
  for (auto host :
       {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.nip.io",
        "notlocalhost", "127.1", "0x7f000001", "2130706433", "pawl:8080"})
    EXPECT_EQ(status({{"Host", host}}), 421) << host;
  rules.allowed_hosts = {"pawl", "*.Corp.example"};
  for (auto host : {"pawl:8080", "PAWL", "a.corp.example", "a.b.corp.example:1"})
    EXPECT_EQ(status({{"Host", host}}), 200) << host;
  for (auto host : {"corp.example", "evilcorp.example", "pawl.evil.example"})
    EXPECT_EQ(status({{"Host", host}}), 421) << host;
  rules.allowed_hosts = {"*"};
  EXPECT_EQ(status({{"Host", "evil.example"}}), 200);
}

TEST_F(browsers, a_foreign_origin_is_refused_with_every_method) {
  for (auto origin :
       {"http://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:3000",
        "http://localhost:8080", "http://127.0.0.1:8080.evil.example", "chrome-extension://abc",
        "127.0.0.1:8080", "file://", "http://"}) {
    // An empty header counts as none.
    int wanted = std::string_view(origin).empty() ? 200 : 403;
    for (auto method : {"GET", "POST", "OPTIONS", "DELETE", "HEAD"})
      EXPECT_EQ(status({{"Origin", origin}}, method), wanted) << origin;
    EXPECT_EQ(status({{"Origin", origin}, {"Upgrade", "websocket"}}, "GET"), wanted) << origin;
  }
  EXPECT_EQ(status({{"Origin", "http://127.0.0.1:8080"}}), 200);
  EXPECT_EQ(status({{"Host", "localhost"}, {"Origin", "http://localhost"}}), 200);
  EXPECT_EQ(status({{"Host", "[::1]:80"}, {"Origin", "http://[::1]"}}), 200);
  EXPECT_EQ(status({{"Host", "127.0.0.1"}, {"Origin", "https://127.0.0.1:443"}}), 200);
}

TEST_F(browsers, a_listed_origin_may_do_everything) {
  rules.allowed_origins = {"https://app.example"};
  EXPECT_EQ(status({{"Origin", "https://app.example"}, {"Sec-Fetch-Site", "cross-site"}}), 200);
  EXPECT_EQ(status({{"Origin", "https://app.example"}, {"Content-Type", "text/plain"}}), 200);
  for (auto origin : {"http://app.example", "https://app.example:8443", "https://app.example.evil"})
    EXPECT_EQ(status({{"Origin", origin}}), 403) << origin;
  rules.allowed_origins = {"*"};
  EXPECT_EQ(status({{"Origin", "null"}}), 200);
}

TEST_F(browsers, a_socket_origin_opens_sockets_only) {
  rules.socket_origins = {"https://app.example"};
  EXPECT_EQ(status({{"Origin", "https://app.example"}, {"Upgrade", "WebSocket"}}, "GET"), 200);
  EXPECT_EQ(status({{"Origin", "https://app.example"}}, "GET"), 403);
}

TEST_F(browsers, fetch_metadata_of_another_site_is_refused) {
  EXPECT_EQ(status({{"Sec-Fetch-Site", "cross-site"}}, "GET"), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}, "GET"), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "no-cors"}}, "GET"), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "navigate"}}, "GET"), 200);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "navigate"}}, "POST"), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Mode", "navigate"}}, "GET"), 200);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-origin"}}), 200);
}

TEST_F(browsers, a_form_is_refused_even_from_the_own_site) {
  for (auto type : {"application/x-www-form-urlencoded", "text/plain;charset=UTF-8",
                    "Multipart/Form-Data; boundary=x", "text/plain "}) {
    EXPECT_EQ(status({{"Origin", "http://127.0.0.1:8080"}, {"Content-Type", type}}), 403) << type;
    EXPECT_EQ(status({{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", type}}), 403) << type;
    EXPECT_EQ(status({{"Sec-Fetch-Mode", "no-cors"}, {"Content-Type", type}}), 403) << type;
    EXPECT_EQ(status({{"Sec-Fetch-Mode", "navigate"}, {"Content-Type", type}}), 403) << type;
    EXPECT_EQ(status({{"Referer", "http://evil.example/"}, {"Content-Type", type}}), 403) << type;
  }
  EXPECT_EQ(status({{"Origin", "http://127.0.0.1:8080"}, {"Content-Type", "application/json"}}),
            200);
}

}  // namespace
}  // namespace pawl::server
