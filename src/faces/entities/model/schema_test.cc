// Schemas: inference from samples, types of numbers, merging, the two exports, the strict check and
// the change levels.

#include "faces/entities/model/schema.h"

#include <gtest/gtest.h>

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

TEST(schema, the_simple_view_is_sorted_by_bytes) {
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

TEST(schema, arrays_of_objects_have_their_own_section) {
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

TEST(schema, a_model_with_many_fields_is_exported_in_linear_time) {
  json::Object wide;
  for (int i = 0; i < 200'000; ++i)
    wide.add("f" + std::to_string(i), i);
  auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(simple_view(infer(std::move(wide))).find("$")->object().size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

TEST(schema, the_stored_form_reads_back) {
  Shape shape = infer(parsed(R"({"a":[1,{"b":null}],"c":{"d":1.5}})"));
  EXPECT_EQ(json::print(to_json(shape_from(to_json(shape)))), json::print(to_json(shape)));
}

TEST(schema, strict_check_refuses_unknown_fields_and_types) {
  Shape shape = infer(parsed(R"({"a":1,"o":{"k":"v"},"l":[1]})"));
  EXPECT_TRUE(check(shape, parsed(R"({})")));
  EXPECT_TRUE(check(shape, parsed(R"({"a":null,"l":[1,2,3]})")));
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"z":1})"))), "BAD_REQUEST");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"a":1.5})"))), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"o":1})"))), "BAD_REQUEST");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"o":null})"))), "BAD_REQUEST");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"l":["x"]})"))), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(reason_of(check(shape, parsed("17"))), "BAD_REQUEST");
  EXPECT_NE(check(shape, parsed(R"({"l":[1,2,"x"]})")).error().detail.find(R"("fieldPath":"l[2]")"),
            std::string::npos);
}

TEST(schema, the_strongest_kind_wins_in_any_order) {
  const std::string object =
      R"({"$":{"#.a":"OBJECT"},"$.a[*]":{"#":"ARRAY_ELEMENT",".x":"INTEGER"}})";
  EXPECT_EQ(view_of({R"({"a":[{"x":1},[1],"h"]})"}), object);
  EXPECT_EQ(view_of({R"({"a":["h",[1],{"x":1}]})"}), object);
  EXPECT_EQ(view_of({R"({"a":[[1],5]})"}), R"({"$":{".a[*]":"INTEGER"}})");
  EXPECT_EQ(view_of({R"({"a":1})", R"({"a":["x"]})"}), R"({"$":{".a[*]":"STRING"}})");
  EXPECT_EQ(json::print(json_schema(infer(parsed(R"([{"x":1},"h",[2]])")))),
            R"({"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"}}}})");
}

TEST(schema, a_scalar_beside_objects_is_remembered) {
  Shape shape = infer(parsed(R"({"a":[{"x":1},"h"]})"));
  EXPECT_TRUE(check(shape, parsed(R"({"a":["z"]})")));
  EXPECT_TRUE(check(shape, parsed(R"({"a":[{"x":2},"z"]})")));
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"a":[5]})"))), "BAD_REQUEST");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"a":[[1]]})"))), "BAD_REQUEST");
  EXPECT_EQ(reason_of(check(shape, parsed(R"({"a":[null]})"))), "BAD_REQUEST");
  EXPECT_TRUE(check(infer(parsed(R"({"a":["h",null,{"x":1}]})")), parsed(R"({"a":[null]})")));
}

// The shape of the whole array is compared, so the other elements decide about a scalar.
TEST(schema, a_change_level_compares_kinds) {
  auto extended = [](const char* sample, const char* value, ChangeLevel level) {
    Shape shape = infer(parsed(sample));
    auto grown = extend(shape, parsed(value), level);
    return grown ? std::string(*grown ? "grew" : "same") : grown.error().reason;
  };
  const char* mixed = R"([{"x":1},"h"])";
  EXPECT_EQ(extended(mixed, R"(["z"])", ChangeLevel::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(extended(mixed, R"([{"x":2},"z"])", ChangeLevel::array_length), "same");
  EXPECT_EQ(extended(mixed, R"([{"x":2},5])", ChangeLevel::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(extended("[[1],5]", "[7]", ChangeLevel::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(extended("[[1],5]", "[[2],7]", ChangeLevel::array_length), "same");
  EXPECT_EQ(extended(R"([{"x":1}])", "[null]", ChangeLevel::array_length), "BAD_REQUEST");
  EXPECT_EQ(extended(R"([{"x":1}])", "[null]", ChangeLevel::array_elements), "grew");
  EXPECT_EQ(extended(R"({"o":{"x":1}})", R"({"o":null})", ChangeLevel::array_elements),
            "BAD_REQUEST");
  EXPECT_EQ(extended(R"({"o":{"x":1}})", R"({"o":null})", ChangeLevel::type), "grew");
}

// Earlier versions stored an array beside an object.
TEST(schema, a_stored_array_beside_an_object_is_forgotten) {
  Shape shape = shape_from(parsed(R"({"o":{"x":{"t":[0]}},"e":{"t":[0]},"w":2})"));
  EXPECT_TRUE(shape.is_object);
  EXPECT_FALSE(shape.is_array());
}

TEST(schema, each_change_level_includes_the_lower_ones) {
  auto try_level = [](const char* value, ChangeLevel level) {
    Shape shape = infer(parsed(R"({"a":1,"l":[1],"e":[],"u":null})"));
    auto grown = extend(shape, parsed(value), level);
    return grown ? std::string(*grown ? "grew" : "same") : grown.error().reason;
  };
  EXPECT_EQ(try_level(R"({"a":2})", ChangeLevel::array_length), "same");
  EXPECT_EQ(try_level(R"({"l":[1,2]})", ChangeLevel::array_length), "grew");
  EXPECT_EQ(try_level(R"({"l":["x"]})", ChangeLevel::array_length), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"l":["x"]})", ChangeLevel::array_elements), "grew");
  EXPECT_EQ(try_level(R"({"a":"x"})", ChangeLevel::array_elements), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"a":"x"})", ChangeLevel::type), "grew");
  EXPECT_EQ(try_level(R"({"z":1})", ChangeLevel::type), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"z":{"y":1}})", ChangeLevel::structural), "grew");
  EXPECT_EQ(try_level(R"({"a":{"b":1}})", ChangeLevel::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(try_level(R"({"l":{"b":1}})", ChangeLevel::structural), "POLYMORPHIC_SLOT");
  EXPECT_EQ(try_level(R"({"u":{"b":1}})", ChangeLevel::array_elements), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"u":{"b":1}})", ChangeLevel::type), "grew");
  EXPECT_EQ(try_level(R"({"u":[[1],[{"b":1}]]})", ChangeLevel::type), "grew");
  EXPECT_EQ(try_level(R"({"e":[null]})", ChangeLevel::array_length), "grew");
  EXPECT_EQ(try_level(R"({"e":[{"b":1}]})", ChangeLevel::array_length), "BAD_REQUEST");
  EXPECT_EQ(try_level(R"({"e":[{"b":1},{"c":2},null]})", ChangeLevel::array_elements), "grew");
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

}  // namespace
}  // namespace pawl::entities
