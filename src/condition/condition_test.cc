#include "condition/condition.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace pawl::condition {
namespace {

constexpr std::string_view kData =
    R"({"arr":[{"q":1},{"q":5},{"z":0}],"b":true,"big":9007199254740993,"d":2.50,"e":[],"esc":"a\"b\\c\nd","n":10,"nul":null,"o":{"k":"v1","x.y":3},"s":"Alpha","t":"10","tags":["red","blue"],"u":"ÄÖ"})";

Result<Condition> compile(const std::string& text) {
  auto value = json::parse(text);
  CHECK(value);
  return Condition::compile(*value);
}

bool matches(const std::string& text) {
  auto c = compile(text);
  EXPECT_TRUE(c) << text << ": " << (c ? "" : c.error().message);
  return c && c->matches({kData, "OPEN", kSecond, "go"});
}

bool simple(const std::string& path, const std::string& op, const std::string& value) {
  return matches(R"({"type":"simple","jsonPath":")" + path + R"(","operatorType":")" + op +
                 R"(","value":)" + value + "}");
}

std::string refusal(const std::string& text) {
  auto c = compile(text);
  return c ? "" : c.error().message;
}

TEST(path, fields_are_found_in_the_text) {
  EXPECT_EQ(Path("$.o.k").find(kData).text, "v1");
  EXPECT_EQ(Path("o.k").find(kData).text, "v1");
  EXPECT_EQ(Path("$.d").find(kData).text, "2.50");
  EXPECT_EQ(Path("$.tags.1").find(kData).text, "blue");
  EXPECT_EQ(Path("$.tags.2").find(kData).kind, Field::missing);
  EXPECT_EQ(Path("$.tags[0]").find(kData).kind, Field::missing);
  EXPECT_EQ(Path("$.nul").find(kData).kind, Field::null);
  EXPECT_EQ(Path("$.nope.k").find(kData).kind, Field::missing);
  EXPECT_EQ(Path("$.u").find(kData).text, "ÄÖ");
}

TEST(path, escapes_are_decoded) {
  std::string buffer;
  EXPECT_EQ(text_of(Path("$.esc").find(kData), buffer), "a\"b\\c\nd");
  EXPECT_EQ(text_of(Path("$.k").find(R"({"k":"\ud83d\ude00\u00e4"})"), buffer), "😀ä");
}

TEST(path, a_star_tests_every_element_and_at_the_end_the_length) {
  EXPECT_TRUE(simple("$.arr[*].q", "EQUALS", "5"));
  EXPECT_FALSE(simple("$.arr[*].q", "EQUALS", "9"));
  EXPECT_TRUE(simple("$.tags[*]", "EQUALS", "2"));
  EXPECT_FALSE(simple("$.tags[*]", "EQUALS", "\"red\""));
  EXPECT_TRUE(simple("$.tags", "EQUALS", "\"red\""));
  EXPECT_TRUE(simple("$.nope[*].q", "IS_NULL", "null"));
}

TEST(path, an_array_is_tested_element_by_element_for_null_too) {
  EXPECT_TRUE(simple("$.tags", "NOT_NULL", "null"));
  EXPECT_FALSE(simple("$.tags", "IS_NULL", "null"));
  EXPECT_FALSE(simple("$.e", "NOT_NULL", "null"));  // an empty array has no element to test
  EXPECT_FALSE(simple("$.e", "IS_NULL", "null"));
  EXPECT_FALSE(simple("$.e[*].q", "NOT_NULL", "null"));
  EXPECT_FALSE(simple("$.e[*].q", "IS_NULL", "null"));
  auto c = compile(R"({"type":"simple","jsonPath":"$.a[*].q","operatorType":"IS_NULL"})");
  EXPECT_TRUE(c->matches({R"({"a":[{"q":1},{"q":null}]})", "", 0, ""}));
  EXPECT_FALSE(c->matches({R"({"a":[{"q":1},{}]})", "", 0, ""}));
}

TEST(operators, equality_compares_numbers_or_texts) {
  EXPECT_TRUE(simple("$.n", "EQUALS", "10.0"));
  EXPECT_TRUE(simple("$.n", "EQUALS", "\"10\""));
  EXPECT_TRUE(simple("$.t", "EQUALS", "10"));
  EXPECT_TRUE(simple("$.b", "EQUALS", "true"));
  EXPECT_FALSE(simple("$.s", "EQUALS", "\"alpha\""));
  EXPECT_TRUE(simple("$.nul", "EQUALS", "null"));
  EXPECT_TRUE(simple("$.nope", "EQUALS", "null"));
  EXPECT_FALSE(simple("$.n", "EQUALS", "null"));
  EXPECT_TRUE(simple("$.nope", "NOT_EQUAL", "1"));
  EXPECT_FALSE(simple("$.nope", "NOT_EQUAL", "null"));
}

TEST(operators, order_compares_numbers_otherwise_bytes) {
  EXPECT_TRUE(simple("$.n", "GREATER_THAN", "9"));
  EXPECT_TRUE(simple("$.n", "GREATER_THAN", "\"9\""));
  EXPECT_TRUE(simple("$.t", "LESS_THAN", "\"9\""));
  EXPECT_TRUE(simple("$.s", "LESS_OR_EQUAL", "\"Alpha\""));
  EXPECT_FALSE(simple("$.nope", "LESS_THAN", "1"));
  EXPECT_FALSE(simple("$.nul", "GREATER_OR_EQUAL", "0"));
}

TEST(operators, between_includes_both_ends_and_reads_text_as_zero) {
  EXPECT_TRUE(simple("$.n", "BETWEEN", "[10,11]"));
  EXPECT_TRUE(simple("$.n", "BETWEEN_INCLUSIVE", "\"1,10\""));
  EXPECT_FALSE(simple("$.n", "BETWEEN", "[11,12]"));
  EXPECT_TRUE(simple("$.s", "BETWEEN", "[-1,1]"));
  EXPECT_FALSE(simple("$.nope", "BETWEEN", "[-1,1]"));
  EXPECT_TRUE(simple("$.b", "BETWEEN", "[1,1]"));  // true counts as 1
}

TEST(operators, no_text_contains_null) {
  for (const char* op : {"CONTAINS", "STARTS_WITH", "ENDS_WITH", "ICONTAINS", "ISTARTS_WITH",
                         "IENDS_WITH", "LIKE", "MATCHES_PATTERN"})
    EXPECT_FALSE(simple("$.s", op, "null")) << op;
  for (const char* op :
       {"NOT_CONTAINS", "NOT_STARTS_WITH", "NOT_ENDS_WITH", "INOT_CONTAINS", "INOT_EQUAL"})
    EXPECT_TRUE(simple("$.s", op, "null")) << op;
  EXPECT_TRUE(simple("$.s", "CONTAINS", "\"\""));
}

TEST(operators, iequals_folds_case) {
  auto equal = [](const std::string& a, const std::string& b) {
    auto c = compile(R"({"type":"simple","jsonPath":"$.s","operatorType":"IEQUALS","value":")" + b +
                     "\"}");
    return c->matches({R"({"s":")" + a + "\"}", "", 0, ""});
  };
  EXPECT_TRUE(equal("ΟΔΟΣ", "οδος"));
  EXPECT_TRUE(equal("οδοσ", "οδος"));
  EXPECT_TRUE(equal("STRAẞE", "straße"));
  EXPECT_FALSE(equal("STRASSE", "straße"));
  EXPECT_FALSE(equal("ı", "I"));
}

TEST(operators, text_operators_and_their_negations) {
  EXPECT_TRUE(simple("$.s", "CONTAINS", "\"lph\""));
  EXPECT_TRUE(simple("$.n", "CONTAINS", "1"));
  EXPECT_TRUE(simple("$.s", "STARTS_WITH", "\"Al\""));
  EXPECT_TRUE(simple("$.s", "ENDS_WITH", "\"ha\""));
  EXPECT_TRUE(simple("$.nope", "NOT_CONTAINS", "\"x\""));
  EXPECT_FALSE(simple("$.s", "NOT_STARTS_WITH", "\"Al\""));
  EXPECT_TRUE(simple("$.s", "IEQUALS", "\"aLPHA\""));
  EXPECT_TRUE(simple("$.u", "IEQUALS", "\"äö\""));
  EXPECT_TRUE(simple("$.n", "IEQUALS", "10"));
  EXPECT_FALSE(simple("$.n", "IEQUALS", "\"10.0\""));  // unlike EQUALS it compares only texts
  EXPECT_TRUE(simple("$.s", "ICONTAINS", "\"LPH\""));
  EXPECT_TRUE(simple("$.nope", "INOT_ENDS_WITH", "\"x\""));
}

TEST(operators, like_matches_the_whole_text_with_two_wildcards) {
  EXPECT_TRUE(simple("$.s", "LIKE", "\"A%a\""));
  EXPECT_TRUE(simple("$.s", "LIKE", "\"_lpha\""));
  EXPECT_FALSE(simple("$.s", "LIKE", "\"lph\""));
  EXPECT_FALSE(simple("$.esc", "LIKE", "\"a%d\""));  // % does not match a newline
  EXPECT_TRUE(simple("$.u", "LIKE", "\"__\""));      // characters, not bytes
}

TEST(operators, patterns_match_anywhere_in_linear_time) {
  EXPECT_TRUE(simple("$.s", "MATCHES_PATTERN", "\"^[A-Z]\""));
  EXPECT_TRUE(simple("$.s", "MATCHES_PATTERN", "\"ph\""));
  std::string text = R"({"s":")" + std::string(50'000, 'a') + R"(!"})";
  auto c = compile(
      R"({"type":"simple","jsonPath":"$.s","operatorType":"MATCHES_PATTERN","value":"(a+)+$"})");
  EXPECT_FALSE(c->matches({text, "", 0, ""}));
}

TEST(condition, groups_arrays_and_lifecycle_fields_are_tested) {
  EXPECT_TRUE(matches(R"({"type":"group","operator":"AND","conditions":[]})"));
  EXPECT_FALSE(matches(R"({"type":"group","operator":"OR","conditions":[]})"));
  EXPECT_TRUE(matches(R"({"type":"array","jsonPath":"$.tags","values":["red",null]})"));
  EXPECT_TRUE(matches(R"({"type":"array","jsonPath":"$.tags","values":["red",null,null]})"));
  EXPECT_FALSE(matches(R"({"type":"array","jsonPath":"$.tags","values":["red",null,"blue"]})"));
  EXPECT_FALSE(matches(R"({"type":"array","jsonPath":"$.nope","values":["red"]})"));
  EXPECT_TRUE(matches(R"({"type":"array","jsonPath":"$.tags","values":["red"]})"));
  EXPECT_FALSE(matches(R"({"type":"array","jsonPath":"$.tags[*]","values":["red"]})"));
  EXPECT_TRUE(matches(R"({"type":"array","jsonPath":"$.tags[*]","values":[null]})"));
  EXPECT_TRUE(
      matches(R"({"type":"lifecycle","field":"state","operatorType":"EQUALS","value":"OPEN"})"));
  EXPECT_TRUE(matches(
      R"({"type":"lifecycle","field":"transitionForLatestSave","operator":"EQUALS","value":"go"})"));
  EXPECT_TRUE(matches(
      R"({"type":"lifecycle","field":"creationDate","operatorType":"LESS_THAN","value":"2001-01-01T00:00:00Z"})"));
}

TEST(condition, an_invalid_condition_is_refused_with_the_fault) {
  EXPECT_NE(refusal(R"({"type":"simple","jsonPath":"$.n","operatorType":"FOO"})").find("FOO"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type":"simple","jsonPath":"$.n","operatorType":"IS_CHANGED"})")
                .find("IS_CHANGED"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type":"lifecycle","field":"foo","operatorType":"EQUALS"})").find("foo"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"type":"simple","jsonPath":"$.n","operatorType":"MATCHES_PATTERN","value":"["})")
          .find("["),
      std::string::npos);
  EXPECT_NE(refusal(R"({"type":"group","operator":"and","conditions":[]})").find("and"),
            std::string::npos);
  EXPECT_FALSE(refusal(R"({"type":"simple","jsonPath":"$.n","operatorType":"BETWEEN","value":[1]})")
                   .empty());
  EXPECT_FALSE(
      refusal(
          R"({"type":"group","operator":"AND","conditions":[{"type":"function","function":{"name":"f"}}]})")
          .empty());
  EXPECT_FALSE(refusal("[]").empty());
  EXPECT_FALSE(
      refusal(
          R"({"type":"simple","jsonPath":"$.s","operatorType":"MATCHES_PATTERN","value":"a{1000000}"})")
          .empty());
}

TEST(condition, nesting_is_limited_to_fifty_groups) {
  auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i)
      text += R"({"type":"group","operator":"AND","conditions":[)";
    text += R"({"type":"simple","jsonPath":"$.n","operatorType":"EQUALS","value":10})";
    for (int i = 0; i < depth; ++i)
      text += "]}";
    return text;
  };
  EXPECT_TRUE(matches(nested(50)));
  EXPECT_FALSE(refusal(nested(51)).empty());
}

std::string group_of(size_t count, const std::string& condition) {
  std::string out = R"({"type":"group","operator":"OR","conditions":[)";
  for (size_t i = 0; i < count; ++i)
    out += (i ? "," : "") + condition;
  return out + "]}";
}

TEST(condition, requests_have_a_limited_number_of_conditions) {
  const std::string one = R"({"type":"simple","jsonPath":"$.n","operatorType":"EQUALS","value":1})";
  auto most = compile(group_of(kMaxConditions - 1, one));
  ASSERT_TRUE(most);
  EXPECT_TRUE(most->check_size());
  auto more = compile(group_of(kMaxConditions, one));
  ASSERT_TRUE(more) << "a stored workflow may have more";
  auto refused = more->check_size();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid);
  EXPECT_NE(refused.error().message.find("1001 conditions"), std::string::npos);
}

TEST(condition, patterns_are_limited_in_number_and_size) {
  const std::string one =
      R"({"type":"simple","jsonPath":"$.s","operatorType":"MATCHES_PATTERN","value":"a+"})";
  EXPECT_TRUE(compile(group_of(kMaxPatterns, one)));
  EXPECT_NE(refusal(group_of(kMaxPatterns + 1, one)).find("501 patterns"), std::string::npos);
  EXPECT_NE(
      refusal(
          R"({"type":"simple","jsonPath":"$.s","operatorType":"MATCHES_PATTERN","value":"((a{100}){100}){100}"})")
          .find("is not valid"),
      std::string::npos);
}

TEST(condition, work_grows_with_the_document_and_the_conditions) {
  const std::string one = R"({"type":"simple","jsonPath":"$.n","operatorType":"EQUALS","value":1})";
  auto few = compile(group_of(1, one));
  auto many = compile(group_of(100, one));
  const std::string large(1'000'000, ' ');
  EXPECT_GT(many->work({large, "", 0, ""}), 100'000'000u);
  EXPECT_GT(few->work({large, "", 0, ""}), 1'000'000u);
  EXPECT_LT(few->work({kData, "", 0, ""}), 1'000u);
}

// The usual search for a part takes time in proportion to the product of both lengths.
TEST(condition, contains_takes_linear_time) {
  const std::string text(4'000'000, 'a');
  const std::string data = "{\"s\":\"" + text + "\"}";
  for (const char* op : {"CONTAINS", "ICONTAINS"}) {
    auto c = compile(R"({"type":"simple","jsonPath":"$.s","operatorType":")" + std::string(op) +
                     R"(","value":")" + text.substr(0, 2'000'000) + "b\"}");
    ASSERT_TRUE(c);
    EXPECT_FALSE(c->matches({data, "", 0, ""}));
  }
  EXPECT_TRUE(simple("$.s", "CONTAINS", R"("")"));
}

}  // namespace
}  // namespace pawl::condition
