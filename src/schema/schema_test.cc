#include "schema/schema.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace pawl::schema {
namespace {

constexpr size_t kPlenty = 1'000'000;

Schema compiled(std::string_view text) {
  auto schema = Schema::compile(*json::parse(text));
  CHECK(schema);
  return std::move(*schema);
}

// The message; empty when the value fits.
std::string mismatch(std::string_view schema, std::string_view value) {
  size_t work = 0;
  auto done = compiled(schema).check(*json::parse(value), work, kPlenty);
  return done ? "" : done.error().message;
}

std::string refusal(std::string_view schema) {
  auto made = Schema::compile(*json::parse(schema));
  return made ? "" : made.error().message;
}

struct Case {
  std::string_view schema;
  std::vector<std::string_view> good, bad;
};

TEST(schema, each_keyword_accepts_and_refuses) {
  const Case cases[] = {
      {R"(true)", {"1", "{}"}, {}},
      {R"(false)", {}, {"1", "null"}},
      {R"({"type":"integer"})",
       {"1", "1.0", "1e3", "-0", "123456789012345678901234567890"},
       {"1.5", "\"1\"", "1e-1"}},
      {R"({"type":["string","null"]})", {"null", "\"\""}, {"0", "[]"}},
      {R"({"type":"number"})", {"1", "2.5"}, {"true"}},
      {R"({"enum":[1,"a",{"x":[1,2]}]})",
       {"1.0", "\"a\"", R"({"x":[1.0,2]})"},
       {"2", R"({"x":[2,1]})"}},
      {R"({"const":{"a":1,"b":2}})", {R"({"b":2,"a":1})"}, {R"({"a":1})"}},
      {R"({"multipleOf":0.1})", {"0.3", "1", "0"}, {"0.35"}},
      {R"({"minimum":2,"maximum":3})", {"2", "3.0"}, {"1.999", "3.001"}},
      {R"({"exclusiveMinimum":2,"exclusiveMaximum":3})", {"2.5"}, {"2", "3"}},
      {R"({"minimum":9007199254740993})", {"9007199254740993"}, {"9007199254740992"}},
      {R"({"minLength":2,"maxLength":3})", {R"("日本")", R"("abc")"}, {R"("日")", R"("abcd")"}},
      {R"({"pattern":"b+"})", {R"("abc")", "1"}, {R"("ac")"}},
      {R"({"minItems":1,"maxItems":2})", {"[1]"}, {"[]", "[1,2,3]"}},
      {R"({"uniqueItems":true})", {"[1,2,\"1\"]"}, {"[1,1.0]", R"([{"a":1,"b":2},{"b":2,"a":1}])"}},
      {R"({"prefixItems":[{"type":"string"}],"items":{"type":"number"}})",
       {R"(["a",1])", "[]"},
       {"[1]", R"(["a","b"])"}},
      {R"({"contains":{"type":"number"},"minContains":2,"maxContains":3})",
       {"[1,2,\"a\"]"},
       {"[1]", "[1,2,3,4]"}},
      {R"({"contains":{"type":"number"}})", {"[1]"}, {"[]"}},
      {R"({"required":["a"]})", {R"({"a":null})", "1"}, {"{}"}},
      {R"({"properties":{"a":{"type":"number"}},"additionalProperties":false})",
       {R"({"a":1})", "{}"},
       {R"({"a":"x"})", R"({"b":1})"}},
      {R"({"patternProperties":{"^n_":{"type":"number"}},"additionalProperties":{"type":"string"}})",
       {R"({"n_a":1,"b":"x"})"},
       {R"({"n_a":"x"})", R"({"b":1})"}},
      {R"({"propertyNames":{"maxLength":2}})", {R"({"ab":1})"}, {R"({"abc":1})"}},
      {R"({"minProperties":1,"maxProperties":1})", {R"({"a":1})"}, {"{}", R"({"a":1,"b":1})"}},
      {R"({"dependentRequired":{"a":["b"]}})", {"{}", R"({"a":1,"b":1})"}, {R"({"a":1})"}},
      {R"({"dependentSchemas":{"a":{"required":["b"]}}})", {R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"allOf":[{"minimum":1},{"maximum":2}]})", {"1"}, {"0", "3"}},
      {R"({"anyOf":[{"type":"string"},{"minimum":5}]})", {"\"a\"", "5"}, {"4"}},
      {R"({"oneOf":[{"minimum":1},{"minimum":5}]})", {"3"}, {"0", "6"}},
      {R"({"not":{"type":"string"}})", {"1"}, {"\"a\""}},
      {R"({"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}})",
       {R"({"a":1,"b":1})", R"({"c":1})"},
       {R"({"a":1})", "{}"}},
      {R"({"$defs":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/n"}}})",
       {R"({"a":1})"},
       {R"({"a":"1"})"}},
      {R"({"$defs":{"n":{"$anchor":"num","type":"number"}},"items":{"$ref":"#num"}})",
       {"[1]"},
       {"[\"1\"]"}},
      {R"({"properties":{"next":{"$ref":"#"},"v":{"type":"number"}}})",
       {R"({"next":{"next":{"v":1}}})"},
       {R"({"next":{"next":{"v":"1"}}})"}},
      {R"({"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false})",
       {R"({"a":1,"b":1})"},
       {R"({"c":1})"}},
      {R"({"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":true},"required":["b"]}],"unevaluatedProperties":false})",
       {R"({"a":1})", R"({"a":1,"b":2})"},
       {R"({"a":2,"b":2})"}},
      {R"({"prefixItems":[true],"contains":{"const":9},"unevaluatedItems":false})",
       {"[1,9]"},
       {"[1,9,2]"}},
      {R"({"format":"email","title":"t","x-own":1})", {"\"not an address\""}, {}},
  };
  for (const Case& c : cases) {
    for (std::string_view v : c.good)
      EXPECT_EQ(mismatch(c.schema, v), "") << c.schema << " " << v;
    for (std::string_view v : c.bad)
      EXPECT_NE(mismatch(c.schema, v), "") << c.schema << " " << v;
  }
}

TEST(schema, a_message_names_the_place_in_the_value) {
  EXPECT_EQ(mismatch(R"({"properties":{"amount":{"type":"number"}}})", R"({"amount":"x"})"),
            "at '/amount': got string, want number");
  EXPECT_EQ(mismatch(R"({"required":["a","b"]})", "{}"),
            "at '': missing property \"a\"; at '': missing property \"b\"");
  EXPECT_EQ(mismatch(R"({"properties":{"a/b":{"items":{"maximum":2}}}})", R"({"a/b":[1,3]})"),
            "at '/a~1b/1': must be at most 2, got 3");
}

TEST(schema, a_bad_schema_is_refused_with_its_place) {
  EXPECT_EQ(refusal(R"({"properties":{"a":{"type":"nmber"}}})"),
            "at '/properties/a/type': must be null, boolean, object, array, number, string or "
            "integer");
  EXPECT_NE(refusal(R"({"$ref":"http://x/y"})"), "");
  EXPECT_NE(refusal(R"({"$ref":"#/$defs/none"})"), "");
  EXPECT_NE(refusal(R"({"$defs":{"unused":{"minimum":"x"}}})"), "");
  EXPECT_NE(refusal(R"({"pattern":"("})"), "");
  EXPECT_NE(refusal(R"({"items":[{}]})"), "");
  EXPECT_NE(refusal(R"({"$schema":"http://json-schema.org/draft-07/schema#"})"), "");
  EXPECT_NE(refusal(R"([])"), "");
}

TEST(schema, a_reference_to_itself_ends) { EXPECT_NE(mismatch(R"({"$ref":"#"})", "1"), ""); }

TEST(schema, too_many_subschemas_are_refused) {
  std::string text = R"({"allOf":[{})";
  for (size_t i = 0; i < kMaxNodes; ++i)
    text += ",{}";
  EXPECT_NE(refusal(text + "]}"), "");
}

TEST(schema, the_work_of_a_check_is_limited) {
  // 24 levels of two alternatives each would be tried 16 million times.
  std::string shared = R"({"$defs":{"l0":{"const":0})";
  for (int i = 1; i < 24; ++i) {
    std::string below = R"({"$ref":"#/$defs/l)" + std::to_string(i - 1) + "\"}";
    shared += ",\"l" + std::to_string(i) + R"(":{"anyOf":[)" + below + "," + below + "]}";
  }
  shared += R"(},"$ref":"#/$defs/l23"})";
  size_t work = 0;
  auto done = compiled(shared).check(json::Value(1), work, 10'000);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, "SCHEMA_WORK");
  EXPECT_LT(work, 20'000u);
}

}  // namespace
}  // namespace pawl::schema
