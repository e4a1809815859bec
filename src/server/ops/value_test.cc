#include "server/ops/value.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

using enum ValueKind;

TEST(value, a_bare_number_is_no_server) {
  for (const char* good : {"127.0.0.1:24180", "localhost:8080", "pawl.example", "[::1]:8080",
                           "http://10.0.0.1:80", "https://pawl.example/", "https://pawl.example"})
    EXPECT_TRUE(normal_value({server, "HOST:PORT"}, good)) << good;
  for (const char* bad : {"24180", "", ":8080", "host:", "host:0", "host:70000", "host:port",
                          "a b:80", "http://", "https://:1", "user@host:80"})
    EXPECT_FALSE(normal_value({server, "HOST:PORT"}, bad)) << bad;
}

TEST(value, numbers_are_whole_and_not_negative) {
  EXPECT_EQ(parse_whole_number("42"), 42);
  for (const char* bad : {"", "abc", "-1", "1.5", "4 ", "0x10", "99999999999999999999"})
    EXPECT_FALSE(normal_value({number, "N"}, bad)) << bad;
  EXPECT_EQ(parse_seconds("0.5"), 0.5);
  for (const char* bad : {"", "soon", "-1", "inf", "nan", "1s"})
    EXPECT_FALSE(normal_value({seconds, "SECONDS"}, bad)) << bad;
}

TEST(value, bytes_have_binary_units) {
  EXPECT_EQ(parse_bytes("256MiB"), uint64_t{256} << 20);
  EXPECT_EQ(parse_bytes("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("512KiB"), uint64_t{512} << 10);
  EXPECT_EQ(parse_bytes("0"), 0u);
  for (const char* bad : {"", "MiB", "1MB", "-1", "1.5GiB", "1 GiB", "99999999999GiB"})
    EXPECT_FALSE(normal_value({bytes, "BYTES"}, bad)) << bad;
}

TEST(value, a_list_names_its_alternatives) {
  ValueType picture{one_of, "svg|mermaid|dot"};
  EXPECT_EQ(allowed_values(picture), "svg, mermaid or dot");
  EXPECT_EQ(allowed_values({one_of, "live"}), "live");
  EXPECT_TRUE(normal_value(picture, "dot"));
  for (const char* bad : {"", "png", "svg|dot", "SVG"})
    EXPECT_FALSE(normal_value(picture, bad)) << bad;
}

TEST(value, values_have_one_normal_form) {
  EXPECT_EQ(normal_value({boolean}, "off"), "false");
  EXPECT_EQ(normal_value({address}, "8080"), "127.0.0.1:8080");
  EXPECT_EQ(normal_value({pair, "NAME=VALUE"}, "a="), "a=");
  EXPECT_FALSE(normal_value({pair, "NAME=VALUE"}, "=a"));
  for (const char* good : {"2026-01-31T12:00:00Z", "2999-12-31T23:59:59.5+01:00"})
    EXPECT_EQ(normal_value({time, "TIME"}, good), good);
  for (const char* bad : {"yesterday", "", "2026-01-31", "2026-13-01T00:00:00Z"})
    EXPECT_FALSE(normal_value({time, "TIME"}, bad)) << bad;
  EXPECT_FALSE(normal_value({path, "FILE"}, ""));
}

TEST(value, the_nearest_name_is_suggested) {
  const std::string_view names[] = {"limit", "server", "definition"};
  EXPECT_EQ(suggestion("sever", names), "; did you mean server?");
  EXPECT_EQ(suggestion("limt", names, "--"), "; did you mean --limit?");
  EXPECT_EQ(suggestion("shards", names), "");
  EXPECT_EQ(suggestion("x", {}), "");
}

}  // namespace
}  // namespace pawl::server
