#include "base/log.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

TEST(log, a_json_line_escapes_its_values) {
  std::string line = log_line(LogFormat::json, 0, Level::warn, "odd \"thing\"",
                              {{"path", "/a\n\"b\""}, {"status", 404}, {"ok", false}, {"ms", 1.5}});
  EXPECT_EQ(
      line,
      R"({"time":"1970-01-01T00:00:00.000000Z","level":"warn","message":"odd \"thing\"","path":"/a\u000a\"b\"","status":404,"ok":false,"ms":1.5})"
      "\n");
}

TEST(log, a_text_line_stays_one_line) {
  std::string line = log_line(LogFormat::text, 0, Level::info, "a\nb", {{"n", 1}});
  EXPECT_EQ(line, "1970-01-01T00:00:00.000Z info  a b n=1\n");
}

TEST(log, the_level_can_change_at_run_time) {
  Level before = log_level();
  log_level(Level::error);
  EXPECT_FALSE(logs(Level::warn));
  EXPECT_TRUE(logs(Level::error));
  log_level(before);
}

TEST(log, an_unknown_name_is_refused_with_the_known_ones) {
  EXPECT_EQ(*parse_level("warn"), Level::warn);
  auto bad = parse_level("loud");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("debug, info"), std::string::npos);
  EXPECT_FALSE(parse_log_format("xml"));
}

}  // namespace
}  // namespace pawl
