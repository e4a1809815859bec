#include "cli/command.h"

#include <gtest/gtest.h>

namespace pawl::cli {
namespace {

constexpr Command kSample{"sample",
                          "ONE [TWO]",
                          "a command",
                          {{"limit", v::number("N"), "how many"},
                           {"render", v::one_of("svg|dot"), "a picture"},
                           {"name", v::text("NAME"), "a name"},
                           {"on", v::boolean(), "on or off"}},
                          nullptr};

Result<Args> parse(std::vector<std::string> words) { return Args::parse(kSample, words); }

// The message of the refusal; empty when the words are accepted.
std::string refusal(std::vector<std::string> words) {
  auto args = parse(std::move(words));
  if (args) return "";
  EXPECT_EQ(exit_code(args.error()), kBadUse);
  return args.error().message;
}

TEST(command_line, words_and_flags_are_told_apart) {
  auto args = parse({"a", "--limit", "5", "--on", "b", "--name=--odd", "--json"});
  ASSERT_TRUE(args) << args.error().message;
  EXPECT_EQ(args->words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(args->number("limit", 1), 5);
  EXPECT_EQ(args->get("on"), "true");
  EXPECT_EQ(args->get("name"), "--odd");
  EXPECT_TRUE(args->json());
  EXPECT_EQ(args->number("other", 7), 7);
}

TEST(command_line, a_flag_never_swallows_the_next_flag) {
  EXPECT_NE(refusal({"a", "--render", "--limit", "5"}).find("--render needs a value"),
            std::string::npos);
  EXPECT_NE(refusal({"a", "--limit"}).find("--limit needs a value, N"), std::string::npos);
}

TEST(command_line, a_value_of_another_type_is_refused) {
  EXPECT_EQ(refusal({"--limit", "abc"}), "--limit is 'abc'; allowed: a whole number");
  EXPECT_EQ(refusal({"--render", "png"}), "--render is 'png'; allowed: svg or dot");
  EXPECT_EQ(refusal({"--on=maybe"}), "--on is 'maybe'; allowed: true or false");
  EXPECT_EQ(refusal({"--json=1"}), "--json takes no value");
}

TEST(command_line, unknown_flags_and_extra_words_are_refused) {
  EXPECT_NE(refusal({"--limt", "5"}).find("did you mean --limit?"), std::string::npos);
  EXPECT_NE(refusal({"a", "b", "c"}).find("the word 'c' is not used"), std::string::npos);
  EXPECT_NE(refusal({"a", "--", "c"}).find("'c' after -- is not used"), std::string::npos);
}

TEST(command_line, the_last_of_a_repeated_flag_counts) {
  auto args = parse({"--name", "x", "--name", "y"});
  ASSERT_TRUE(args);
  EXPECT_EQ(args->get("name"), "y");
  EXPECT_EQ(args->all("name"), (std::vector<std::string>{"x", "y"}));
}

}  // namespace
}  // namespace pawl::cli
