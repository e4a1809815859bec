#include "wire/body_reader.h"

#include <gtest/gtest.h>

namespace pawl::wire {

static Result<BodyReader> read(std::string body, BodyRules rules = {.reason = "BAD"}) {
  Request request;
  request.body = std::move(body);
  return BodyReader::of(request, rules);
}

TEST(body_reader, absent_and_null_members_have_their_defaults) {
  for (const char* text : {"", " \n", "{}", R"({"a":null})"}) {
    Result<BodyReader> body = read(text);
    ASSERT_TRUE(body) << text;
    EXPECT_EQ(*body->text("a", "x"), "x");
    EXPECT_EQ(*body->integer("a", 7), 7);
    EXPECT_EQ(*body->count("a"), std::nullopt);
    EXPECT_TRUE(*body->flag("a", true));
    EXPECT_TRUE(body->texts("a")->empty());
    EXPECT_EQ(*body->choice("a", {"one", "two"}), "one");
    EXPECT_TRUE(body->take_object("a")->empty());
  }
}

TEST(body_reader, members_are_read_by_type) {
  Result<BodyReader> body = read(R"({"t":"x","i":-3,"c":3,"f":true,"l":["a","b"],"o":{"k":1}})");
  ASSERT_TRUE(body);
  EXPECT_EQ(*body->text("t"), "x");
  EXPECT_EQ(*body->integer("i", 0), -3);
  EXPECT_EQ(*body->count("c"), 3u);
  EXPECT_TRUE(*body->flag("f"));
  EXPECT_EQ(body->texts("l")->size(), 2u);
  EXPECT_EQ(body->take_object("o")->size(), 1u);
}

TEST(body_reader, another_type_is_refused_by_name) {
  Result<BodyReader> body = read(R"({"n":1.5,"s":"x","l":[1]})", {.reason = "BAD", .lead = "op: "});
  ASSERT_TRUE(body);
  EXPECT_EQ(body->text("n").error().message, "op: 'n' must be a string, not a number");
  EXPECT_EQ(body->integer("n", 0).error().message, "op: 'n' must be an integer, not a number");
  EXPECT_EQ(body->count("s").error().message, "op: 's' must be a whole number from 0 on");
  EXPECT_EQ(body->flag("s").error().message, "op: 's' must be a boolean, not a string");
  EXPECT_EQ(body->texts("l").error().message,
            "op: 'l' must be an array of strings, but it holds a number");
  EXPECT_EQ(body->choice("s", {"a", "b"}).error().message, "op: 's' must be a or b, not 'x'");
  EXPECT_EQ(body->take_object("s").error().message, "op: 's' must be an object, not a string");
  EXPECT_EQ(body->required_text("gone").error().message, "op: 'gone' is missing: give a string");
  EXPECT_EQ(body->text("n").error().reason, "BAD");
}

TEST(body_reader, a_body_that_is_no_object_is_refused) {
  EXPECT_EQ(read("[1]").error().message, "the body must be a JSON object, not an array");
  EXPECT_EQ(read("null").error().message, "the body must be a JSON object, not null");
  EXPECT_TRUE(read("null", {.reason = "BAD", .null_is_object = true}));
  EXPECT_FALSE(read("{"));
  EXPECT_FALSE(read("{} x"));
  EXPECT_TRUE(read("{} x", {.reason = "BAD", .ignores_trailing = true}));
  EXPECT_EQ(read("", {.reason = "BAD", .empty_is_object = false}).error().message,
            "the body must be a JSON object, but it is empty");
}

TEST(body_reader, names_can_be_matched_without_case) {
  BodyRules rules{.reason = "BAD", .ignores_name_case = true};
  EXPECT_EQ(*read(R"({"Phase":"x"})", rules)->text("phase"), "x");
  EXPECT_EQ(*read(R"({"Phase":"x","phase":"y"})", rules)->text("phase"), "y");
  EXPECT_EQ(*read(R"({"Phase":"x"})")->text("phase"), "");
}

}  // namespace pawl::wire
