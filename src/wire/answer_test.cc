#include "wire/answer.h"

#include <gtest/gtest.h>

namespace pawl::wire {
namespace {

// What a server that says `text` and closes is understood to have said, read `step` bytes at a
// time.
struct Read {
  std::string said;  // "STATUS body", or why it is no answer
  bool closes = false, left = false;
};
Read read(std::string_view text, size_t step, std::string_view method = "GET",
          AnswerReader::End end = AnswerReader::End::said, size_t max = 100) {
  AnswerReader in(
      [&](Bytes& onto) -> Result<bool> {
        onto.append(text.substr(0, step));
        bool more = !text.empty();
        text.remove_prefix(std::min(step, text.size()));
        return more;
      },
      [](std::string why) {
        return Error{Code::unavailable, "NO", std::move(why)};
      },
      max, end);
  auto head = in.head();
  if (!head) return {head.error().message};
  auto body = in.body(*head, method);
  if (!body) return {body.error().message};
  return {std::to_string(head->status) + " " + *body, head->closes,
          !in.nothing_left() || !text.empty()};
}

TEST(answer, is_read_however_its_bytes_come) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 hello"},
      {"HTTP/1.1 200 OK\r\ncontent-length:5 \r\n\r\nhello", "200 hello"},
      {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 "},
      {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: "
       "chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
       "404 hello"},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n3;name=\"x\"\r\nhel\r\n02 "
       "\r\nlo\r\n0\r\nDigest: x\r\nOther: y\r\n\r\n",
       "200 hello"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 "
       "Created\r\nContent-Length: 2\r\n\r\nok",
       "201 ok"},
      {"HTTP/1.1 204 No Content\r\n\r\n", "204 "},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 "},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101 "},
  };
  for (auto [text, said] : cases)
    for (size_t step : {1u, 2u, 7u, 1000u}) {
      Read got = read(text, step);
      EXPECT_EQ(got.said, said) << text;
      EXPECT_FALSE(got.left) << text;
      EXPECT_FALSE(got.closes) << text;
    }
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 3, "HEAD").said, "200 ");
}

TEST(answer, that_is_none_says_why) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "the connection was closed without an answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "the answer was cut off"},
      {"HTTP/1.1 200 OK\r\nConte", "the answer was cut off"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "the answer was cut off"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n",
       "the answer was cut off"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "what answered does not speak HTTP/1.1"},
      {"HTTP/2 200 OK fine\r\n\r\n", "what answered does not speak HTTP/1.1"},
      {"HTTP/1.1 abc OK\r\n\r\n", "what answered does not speak HTTP/1.1"},
      {"HTTP/1.1 099 OK\r\n\r\n", "what answered does not speak HTTP/1.1"},
      {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "a header without a colon"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello", "a length that is no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello", "a length that is no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
       "a length that is no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", "the answer is too large"},
      {"HTTP/1.1 200 OK\r\n\r\nhello", "the answer does not say how long it is"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "a chunk without a size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello", "a chunk without a size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n",
       "a chunk that does not end where it says"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n", "the answer is too large"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n",
       "a head or a chunk's line that is too long"},
  };
  for (const auto& [text, why] : cases)
    for (size_t step : {1u, 3u, 100'000u})
      EXPECT_EQ(read(text, step).said, why) << text.substr(0, 80);
  // Small ones add up.
  std::string headers = "HTTP/1.1 200 OK\r\n",
              chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", interim;
  for (int i = 0; i < 10'000; ++i)
    headers += "Name: value\r\n", chunks += "40\r\n" + std::string(64, 'x') + "\r\n",
        interim += "HTTP/1.1 103 Wait\r\n\r\n";
  EXPECT_EQ(read(headers, 1000).said, "a head or a chunk's line that is too long");
  EXPECT_EQ(read(chunks, 1000).said, "the answer is too large");
  EXPECT_EQ(read(interim, 1000).said, "one interim answer after the other, and no answer");
}

TEST(answer, tells_whether_the_connection_is_good_for_more) {
  EXPECT_TRUE(read("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", 9).closes);
  EXPECT_TRUE(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 9).closes);
  EXPECT_FALSE(
      read("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", 9).closes);
  EXPECT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", 99).left);
  Read open = read("HTTP/1.1 200 OK\r\n\r\nhello", 4, "GET", AnswerReader::End::or_connection);
  EXPECT_EQ(open.said, "200 hello");
  EXPECT_TRUE(open.closes);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n\r\n" + std::string(101, 'x'), 40, "GET",
                 AnswerReader::End::or_connection)
                .said,
            "the answer is too large");
}

TEST(address, splits_into_host_and_port) {
  for (auto [text, host, port] : {std::array{"a.example:81", "a.example", "81"},
                                  {"a.example", "a.example", "80"},
                                  {"[::1]:81", "::1", "81"},
                                  {"[::1]", "::1", "80"},
                                  {"", "", "80"},
                                  {":9", "", "9"}}) {
    HostPort got = host_and_port(text, "80");
    EXPECT_EQ(got.host, host) << text;
    EXPECT_EQ(got.port, port) << text;
  }
}

TEST(answer, comes_piece_by_piece_until_the_reader_has_enough) {
  std::string_view text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n";
  AnswerReader in(
      [&](Bytes& onto) -> Result<bool> { return onto.append(std::exchange(text, "")), true; },
      [](std::string why) {
        return Error{Code::unavailable, "NO", std::move(why)};
      },
      5);
  auto head = in.head();
  ASSERT_TRUE(head);
  std::string said;
  ASSERT_TRUE(in.pieces(
      *head, [&](BytesView piece) { return said.append(piece).append("|"), said.size() < 8; }));
  EXPECT_EQ(said, "one|two|");
}

}  // namespace
}  // namespace pawl::wire
