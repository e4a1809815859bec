#include "faces/entities/model/schema.h"

#include <gtest/gtest.h>

#include "faces/entities/model/xml.h"
#include "json/text.h"

namespace pawl::entities {
namespace {

json::Value parsed(std::string_view text) {
  auto v = json::parse(text);
  CHECK(v);
  return *v;
}

std::string view_of(std::initializer_list<std::string_view> samples) {
  Shape shape;
  for (std::string_view s : samples)
    merge(shape, infer(parsed(s)));
  return json::print(simple_view(shape));
}

std::string reason_of(const Result<void>& r) { return r ? "" : r.error().reason; }

TEST(schema, the_simple_view_is_in_the_order_of_bytes) {
  Shape shape = infer(
      *json::parse(R"({"b":1,"a":{"y":1,"x":[{"q":1}]},"a-b":{"z":1},"c":[{"n":1,"m":{"k":1}}]})"));
  EXPECT_EQ(
      json::print(simple_view(shape)),
      R"({"$":{"#.a":"OBJECT","#.a-b":"OBJECT","#.c":"OBJECT",".b":"INTEGER"},"$.a":{"#.x":"OBJECT",".y":"INTEGER"},"$.a-b":{".z":"INTEGER"},)"
      R"("$.a.x[*]":{"#":"ARRAY_ELEMENT",".q":"INTEGER"},"$.c[*]":{"#":"ARRAY_ELEMENT","#.m":"OBJECT",".n":"INTEGER"},"$.c[*].m":{".k":"INTEGER"}})");
}

TEST(types, numbers_are_classified_by_their_digits) {
  const std::pair<const char*, std::string_view> rows[] = {
      {"0", "INTEGER"},
      {"-0.0", "INTEGER"},
      {"2147483647", "INTEGER"},
      {"-2147483648", "INTEGER"},
      {"2147483648", "LONG"},
      {"9223372036854775807", "LONG"},
      {"9223372036854775808", "BIG_INTEGER"},
      {"170141183460469231731687303715884105727", "BIG_INTEGER"},
      {"170141183460469231731687303715884105728", "UNBOUND_INTEGER"},
      {"-170141183460469231731687303715884105728", "BIG_INTEGER"},
      {"1.0", "INTEGER"},
      {"1e3", "INTEGER"},
      {"1.5e2", "INTEGER"},
      {"1e400", "UNBOUND_INTEGER"},
      {"1.5", "DOUBLE"},
      {"0.1", "DOUBLE"},
      {"1e-292", "DOUBLE"},
      {"1e-293", "UNBOUND_DECIMAL"},
      {"123456789.0123456", "BIG_DECIMAL"},
      {"12345678901234567890.123456789012345678", "BIG_DECIMAL"},
      {"1.1234567890123456789", "UNBOUND_DECIMAL"},
      {"170141183460469231731.687303715884105727", "BIG_DECIMAL"},
      {"170141183460469231731.687303715884105728", "UNBOUND_DECIMAL"},
  };
  for (const auto& [digits, name] : rows)
    EXPECT_EQ(name_of(type_of_number(digits)), name) << digits;
}

TEST(types, widening_loses_nothing) {
  EXPECT_TRUE(widens(Type::integer, Type::double_decimal));
  EXPECT_FALSE(widens(Type::long_integer, Type::double_decimal));
  EXPECT_FALSE(widens(Type::double_decimal, Type::big_decimal));
  EXPECT_TRUE(widens(Type::unbound_integer, Type::unbound_decimal));
}

TEST(schema, samples_merge_and_widen) {
  EXPECT_EQ(view_of({R"({"a":1})", R"({"a":1.5})"}), R"({"$":{".a":"DOUBLE"}})");
  EXPECT_EQ(view_of({R"({"a":2147483648})", R"({"a":1.5})"}), R"({"$":{".a":"UNBOUND_DECIMAL"}})");
  EXPECT_EQ(view_of({R"({"a":1})", R"({"a":"x"})"}), R"({"$":{".a":"[INTEGER, STRING]"}})");
  EXPECT_EQ(view_of({R"({"a":null})", R"({"a":"x"})"}), R"({"$":{".a":"STRING"}})");
  EXPECT_EQ(view_of({R"({"a":[]})"}), R"({"$":{".a[*]":"NULL"}})");
  EXPECT_EQ(view_of({R"({"a":[[1]]})"}), R"({"$":{".a[*]":"NULL"}})");
}

TEST(schema, arrays_of_objects_have_a_section_of_their_own) {
  EXPECT_EQ(
      view_of({R"({"arr":[{"q":1}],"nested":{"k":"v"}})"}),
      R"({"$":{"#.arr":"OBJECT","#.nested":"OBJECT"},"$.arr[*]":{"#":"ARRAY_ELEMENT",".q":"INTEGER"},"$.nested":{".k":"STRING"}})");
}

TEST(schema, json_schema_nests_and_offers_choices) {
  Shape shape = infer(parsed(R"({"a":[[1]],"b":"x"})"));
  merge(shape, infer(parsed(R"({"b":1})")));
  EXPECT_EQ(
      json::print(json_schema(shape)),
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},"b":{"oneOf":[{"type":"integer"},{"type":"string"}]}}})");
}

TEST(schema, a_model_of_very_many_fields_is_shown_in_linear_time) {
  json::Object wide;
  for (int i = 0; i < 200'000; ++i)
    wide.add("f" + std::to_string(i), i);
  auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(simple_view(infer(std::move(wide))).find("$")->object().size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

TEST(schema, what_is_stored_reads_back) {
  Shape shape = infer(parsed(R"({"a":[1,{"b":null}],"c":{"d":1.5}})"));
  EXPECT_EQ(json::print(to_json(shape_from(to_json(shape)))), json::print(to_json(shape)));
}

TEST(schema, strict_check_refuses_unknown_fields_and_types) {
  Shape shape = infer(parsed(R"({"a":1,"o":{"k":"v"},"l":[1]})"));
  EXPECT_TRUE(check(shape, parsed(R"({})")));
  EXPECT_TRUE(check(shape, parsed(R"({"a":null,"l":[1,2,3]})")));
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"z":1})"))), "BAD_REQUEST");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"a":1.5})"))), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"o":1})"))), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"l":["x"]})"))), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(reason_of(check(shape, parsed("17"))), "INCOMPATIBLE_TYPE");
  EXPECT_NE(check(shape, parsed(R"({"l":[1,2,"x"]})")).error().detail.find(R"("fieldPath":"l[2]")"),
            std::string::npos);
}

TEST(schema, a_field_of_two_kinds_keeps_both_while_another_grows) {
  Shape shape = infer(parsed(R"({"v":{"k":1}})"));
  merge(shape, infer(parsed(R"({"v":"text"})")));
  EXPECT_TRUE(extend(shape, parsed(R"({"v":"other","new":1})"), Level::structural));
  EXPECT_TRUE(extend(shape, parsed(R"({"v":{"k":2},"newer":1})"), Level::structural));
  EXPECT_EQ(extend(shape, parsed(R"({"v":[1]})"), Level::structural).error().reason,
            "POLYMORPHIC_SLOT");
}

TEST(schema, each_change_level_allows_its_own_and_what_is_below) {
  auto try_level = [](const char* value, Level level) {
    Shape shape = infer(parsed(R"({"a":1,"l":[1],"e":[],"u":null})"));
    auto grown = extend(shape, parsed(value), level);
    return grown ? std::string(*grown ? "grew" : "same") : grown.error().reason;
  };
  EXPECT_EQ(try_level(R"({"a":2})", Level::array_length), "same");
  EXPECT_EQ(try_level(R"({"l":[1,2]})", Level::array_length), "grew");
  EXPECT_EQ(try_level(R"({"l":["x"]})", Level::array_length), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"l":["x"]})", Level::array_elements), "grew");
  EXPECT_EQ(try_level(R"({"a":"x"})", Level::array_elements), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"a":"x"})", Level::type), "grew");
  EXPECT_EQ(try_level(R"({"z":1})", Level::type), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"z":{"y":1}})", Level::structural), "grew");
  EXPECT_EQ(try_level(R"({"a":{"b":1}})", Level::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(try_level(R"({"l":{"b":1}})", Level::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(try_level(R"({"u":{"b":1}})", Level::array_elements), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"u":{"b":1}})", Level::type), "grew");
  EXPECT_EQ(try_level(R"({"u":[[1],[{"b":1}]]})", Level::type), "grew");
  EXPECT_EQ(try_level(R"({"e":[null]})", Level::array_length), "grew");
  EXPECT_EQ(try_level(R"({"e":[{"b":1}]})", Level::array_length), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"e":[{"b":1},{"c":2},null]})", Level::array_elements), "grew");
}

TEST(schema, paths_are_fields_or_prefixes_of_fields) {
  Shape shape = infer(parsed(R"({"o":{"k":"v"},"tags":["x"],"arr":[{"q":1}]})"));
  EXPECT_TRUE(shape_at(shape, "o.k"));
  EXPECT_TRUE(shape_at(shape, "o"));
  EXPECT_TRUE(shape_at(shape, "arr[*].q"));
  EXPECT_TRUE(shape_at(shape, "tags[*]"));
  EXPECT_FALSE(shape_at(shape, "tags"));
  EXPECT_FALSE(shape_at(shape, "tags.0"));
  EXPECT_FALSE(shape_at(shape, "o.z"));
}

std::string xml(std::string_view text) {
  auto v = parse_xml(text);
  return v ? json::print(*v) : "refused";
}

TEST(xml, becomes_json) {
  EXPECT_EQ(xml("<?xml version=\"1.0\"?><r><name>a</name><n>1</n><b>true</b><d>2.50</d></r>"),
            R"({"name":"a","n":1,"b":true,"d":2.50})");
  EXPECT_EQ(xml("<r><t>x</t><t>y</t><z/></r>"), R"({"t":["x","y"],"z":{}})");
  EXPECT_EQ(xml("<r id='7'><o><k>v</k></o>text</r>"), R"({"id":7,"o":{"k":"v"},"_text":"text"})");
  EXPECT_EQ(xml("<x:r xmlns:x='u' x:id='7'><x:t id='1'/><id>8</id></x:r>"),
            R"({"x":"u","id":[7,8],"t":{"id":1}})");
  EXPECT_EQ(xml("<r> one <b>1</b> two<!-- not a word -->fold\n<b>2</b></r>"),
            R"({"b":[1,2],"_text":"one twofold"})");
  EXPECT_EQ(xml("<r>17</r>"), R"({"_value":17})");
  EXPECT_EQ(xml("<r><a></a><b/><c> <!-- nothing --> </c></r>"), R"({"a":{},"b":{},"c":{}})");
  EXPECT_EQ(xml("<r></r>"), "{}");
  EXPECT_EQ(xml("<r><a>TRUE</a><b>False</b><c>T</c></r>"), R"({"a":true,"b":false,"c":"T"})");
  EXPECT_EQ(xml("<r><k>&lt;&#65;&#x42;&amp;</k><c><![CDATA[<x>]]></c></r>"),
            R"({"k":"<AB&","c":"<x>"})");
  EXPECT_EQ(xml("<r><zip>007</zip></r>"), R"({"zip":"007"})");
}

TEST(xml, malformed_and_hostile_documents_are_refused) {
  for (std::string_view bad :
       {"", "<r>", "<r></s>", "<r a=b/>", "<r a='1' a='2'/>", "<r/><r/>", "text", "<r>&bomb;</r>",
        "<!DOCTYPE r><r/>", "<r>&#xD800;</r>", "<1/>", "<r>\xbb</r>"})
    EXPECT_EQ(xml(bad), "refused") << bad;
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += "<a>";
  EXPECT_EQ(xml(deep), "refused");
}

TEST(xml, as_many_names_as_a_body_holds_take_no_longer_than_their_bytes) {
  std::string wide = "<r>", attributes = "<r";
  for (int i = 0; i < 300'000; ++i)
    wide += "<a" + std::to_string(i) + "/>", attributes += " a" + std::to_string(i) + "='1'";
  auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(parse_xml(wide + "</r>"));
  EXPECT_TRUE(parse_xml(attributes + "/>"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

}  // namespace
}  // namespace pawl::entities
