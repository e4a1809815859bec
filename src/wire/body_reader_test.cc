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
    EXPECT_EQ(*body->choice(row::choice("a", {"one", "two"})), "one");
    EXPECT_EQ(*body->object("a"), nullptr);
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

constexpr RequestShape kBase{"", {row::text("inherited")}};
constexpr RequestShape kRows{"Rows",
                             kBase,
                             {row::text("t").by_default("x"), row::integer("i").by_default(7),
                              row::flag("f").by_default(true), row::choice("c", {"one", "two"}),
                              row::texts("l"), row::variables("o")}};

TEST(body_reader, a_row_names_a_member_and_has_its_default) {
  Result<BodyReader> empty = read("{}");
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty->text(kRows["t"]), "x");
  EXPECT_EQ(*empty->integer(kRows["i"]), 7);
  EXPECT_TRUE(*empty->flag(kRows["f"]));
  EXPECT_EQ(*empty->choice(kRows["c"]), "one");
  Result<BodyReader> body =
      read(R"({"t":"a","i":1,"f":false,"c":"two","l":["b"],"o":{"k":1},"inherited":"d"})");
  ASSERT_TRUE(body);
  EXPECT_EQ(*body->text(kRows["t"]), "a");
  EXPECT_EQ(*body->integer(kRows["i"]), 1);
  EXPECT_FALSE(*body->flag(kRows["f"]));
  EXPECT_EQ(*body->choice(kRows["c"]), "two");
  EXPECT_EQ(body->texts(kRows["l"])->size(), 1u);
  EXPECT_EQ(body->take_object(kRows["o"])->size(), 1u);
  EXPECT_EQ(*body->text(kRows["inherited"]), "d");
  EXPECT_TRUE(kRows.has("t"));
  EXPECT_FALSE(kRows.has("inherited"));
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
  EXPECT_EQ(body->choice(row::choice("s", {"a", "b"})).error().message,
            "op: 's' must be a or b, not 'x'");
  EXPECT_EQ(body->take_object("s").error().message, "op: 's' must be an object, not a string");
  EXPECT_EQ(body->object("s").error().message, "op: 's' must be an object, not a string");
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
  EXPECT_EQ(read(" ", {.reason = "BAD", .empty_is_object = false}).error().message,
            "the body must be a JSON object, but it is empty");
  EXPECT_TRUE(read("", {.reason = "BAD", .blank_is_empty = false}));
  EXPECT_FALSE(read(" ", {.reason = "BAD", .blank_is_empty = false}));
}

TEST(body_reader, the_words_of_a_face_are_used) {
  BodyRules rules{
      .reason = "BAD", .lead = "op: ", .not_json = "malformed: ", .not_text = "is text"};
  EXPECT_TRUE(read("{", rules).error().message.starts_with("malformed: invalid JSON at line 1"));
  EXPECT_EQ(read("7", rules).error().message, "op: the body must be a JSON object, not a number");
  EXPECT_EQ(read(R"({"a":1})", rules)->text("a").error().message, "op: 'a' is text");
}

TEST(body_reader, a_body_over_the_limit_is_too_large) {
  BodyRules rules{.reason = "BAD", .max_bytes = 4};
  EXPECT_TRUE(read("{  }", rules));
  Result<BodyReader> large = read("{   }", rules);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::too_large);
  EXPECT_EQ(large.error().message, "the body has 5 bytes; 4 are allowed");
}

TEST(body_reader, a_body_can_be_any_json_value) {
  Request request;
  request.body = "[1]";
  EXPECT_TRUE(BodyReader::value_of(request, {.reason = "BAD"})->is_array());
  request.body = "null";
  EXPECT_TRUE(BodyReader::value_of(request, {.reason = "BAD"})->is_null());
  request.body = "";
  EXPECT_TRUE(BodyReader::value_of(request, {.reason = "BAD"})->is_object());
  Result<json::Value> empty =
      BodyReader::value_of(request, {.reason = "BAD", .empty_is_object = false});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().reason, "BAD");
}

TEST(body_reader, a_moved_reader_reads_its_own_object) {
  auto first = std::make_unique<BodyReader>(*read(R"({"t":"x","o":{"k":1}})"));
  BodyReader moved = std::move(*first);
  first.reset();
  EXPECT_EQ(*moved.text("t"), "x");
  EXPECT_EQ(moved.take_object("o")->size(), 1u);
  EXPECT_EQ(std::move(moved).take().string_or("t"), "x");
}

TEST(body_reader, nested_objects_are_read_where_they_are) {
  const json::Value nested = json::object({{"n", 3}});
  EXPECT_EQ(*MemberReader(nested, {.reason = "BAD"}).count("n"), 3u);
  const json::Value list = json::Array{json::Value(1)};
  EXPECT_FALSE(MemberReader(list, {.reason = "BAD", .ignores_name_case = true}).has("n"));
}

TEST(body_reader, names_can_be_matched_without_case) {
  BodyRules rules{.reason = "BAD", .ignores_name_case = true};
  EXPECT_EQ(*read(R"({"Phase":"x"})", rules)->text("phase"), "x");
  EXPECT_EQ(*read(R"({"Phase":"x","phase":"y"})", rules)->text("phase"), "y");
  EXPECT_EQ(*read(R"({"Phase":"x"})")->text("phase"), "");
}

}  // namespace pawl::wire
