#include "server/http/parser.h"

#include <gtest/gtest.h>

#include <random>

#include "server/http/writer.h"

namespace pawl::server {
namespace {

// The parser's output for these bytes, fed in pieces whose sizes `piece` returns.
template <class Piece>
std::string transcript(std::string_view bytes, const Piece& piece) {
  HttpParser parser({2048, 4096});
  std::string out;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece());
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      auto state = parser.feed(part);
      if (state == HttpParser::State::failed)
        return out + "failed " + std::to_string(parser.fault().status);
      if (state == HttpParser::State::more) continue;
      bool keep = parser.keep_alive();
      wire::Request request = parser.take();
      out += request.method + " " + request.path + "?" + request.query + " " +
             (keep ? "keep" : "close");
      for (const auto& [name, value] : request.headers)
        out += " " + name + "=" + value;
      out += " [" + request.body + "]\n";
    }
  }
  return out;
}

std::string random_bytes(std::mt19937& dice) {
  static const std::string kPieces[] = {
      "GET / HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST /p?q=1#f HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nabcde",
      "POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: v\r\n\r\n",
      "GET http://h/abs?x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
      "GET /old HTTP/1.0\r\n\r\n",
      "GET / HTTP/1.1\r\n",
      "Host: t\r\n",
      "X: y\r\n\r\n",
      "Content-Length: 3\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n",
      "\r\n",
      "abc",
      "5\r\n",
      "0\r\n\r\n",
      "Long: "
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaa\r\n",
  };
  std::string out;
  for (size_t i = 1 + dice() % 8; i > 0; --i) {
    out += kPieces[dice() % std::size(kPieces)];
    if (dice() % 6 == 0) out.push_back(static_cast<char>(dice()));
  }
  return out;
}

TEST(parser, the_sizes_of_the_pieces_do_not_matter) {
  std::mt19937 dice(7);
  int whole_requests = 0, failures = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = random_bytes(dice);
    std::string at_once = transcript(bytes, [&] { return bytes.size(); });
    std::string one_by_one = transcript(bytes, [] { return size_t{1}; });
    std::string by_chance = transcript(bytes, [&] { return 1 + dice() % 40; });
    ASSERT_EQ(at_once, one_by_one) << bytes;
    ASSERT_EQ(at_once, by_chance) << bytes;
    whole_requests += at_once.find(" [") != std::string::npos;
    failures += at_once.find("failed") != std::string::npos;
  }
  EXPECT_GT(whole_requests, 1000);
  EXPECT_GT(failures, 1000);
}

TEST(parser, targets_are_split_and_the_absolute_form_is_understood) {
  auto all = [](std::string bytes) { return transcript(bytes, [&] { return bytes.size(); }); };
  EXPECT_EQ(all("GET http://h/a?b#c HTTP/1.1\r\nHost: h\r\n\r\n"), "GET /a?b keep Host=h []\n");
  EXPECT_EQ(all("GET HTTP://h HTTP/1.1\r\nHost: h\r\n\r\n"), "GET /? keep Host=h []\n");
  EXPECT_EQ(all("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), "OPTIONS *? keep Host=h []\n");
  EXPECT_EQ(all("GET /a%20b?c=%26 HTTP/1.1\r\nHost: h\r\nX:  y \t\r\n\r\n"),
            "GET /a%20b?c=%26 keep Host=h X=y []\n");
  EXPECT_EQ(all("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"),
            "POST /? keep Host=h Content-Length=2 Content-Length=2 [ok]\n");
  EXPECT_EQ(all("GET /%F0%9F%98%80?q=%C3%A9 HTTP/1.1\r\nHost: h\r\n\r\n"),
            "GET /%F0%9F%98%80?q=%C3%A9 keep Host=h []\n");
  EXPECT_EQ(all("GET / HTTP/1.1\r\nHost: h\r\nX: a\xff\r\n\r\n"),
            "GET /? keep Host=h X=a\xef\xbf\xbd []\n");
  for (std::string no_text : {"/%FF", "/a/%ED%A0%BD", "/a?q=%C3", "/\xc3("})
    EXPECT_EQ(all("GET " + no_text + " HTTP/1.1\r\nHost: h\r\n\r\n"), "failed 400");
}

TEST(writer, dates_have_the_standard_format) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace
}  // namespace pawl::server
