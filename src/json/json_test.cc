#include <gtest/gtest.h>

#include "json/merge.h"
#include "json/text.h"

namespace pawl::json {

TEST(json, parsed_text_prints_back_unchanged) {
  for (std::string text :
       {R"({"b":1.0,"a":1e400,"c":12345678901234567890123,"d":-0.0,"e":[1E+2,0.10]})",
        R"("\u0001\n\"\\")", "[]", "{}", R"({"z":null,"y":true,"x":false})", R"([[],{},""])",
        "\"\xe2\x82\xac\xf0\x9f\x98\x80\""}) {
    auto v = parse(text);
    ASSERT_TRUE(v) << text << v.error().message;
    EXPECT_EQ(print(*v), text);
  }
}

TEST(json, long_numbers_and_strings_are_kept) {
  std::string digits(20000, '7'), words(100000, 'x');
  EXPECT_EQ(print(*parse(digits)), digits);
  EXPECT_EQ(print(*parse("[\"" + words + "\"]")), "[\"" + words + "\"]");
}

TEST(json, bad_text_is_refused_with_line_and_column) {
  for (std::string text :
       {"", "[1,,2]", "01", "1.", "{\"a\"}", "nul", "\"\x01\"", "[1]x", "{\"a\":1,}", "\"\\ud800\"",
        "\"\xff\"", "[", "-", "+1", ".5", "\"\\x\"", "NaN", "'a'", "// c\n1"})
    EXPECT_FALSE(parse(text)) << text;
  auto bad = parse("{\n  \"a\": tru\n}");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("line 2"), std::string::npos) << bad.error().message;
}

TEST(json, depth_and_size_have_limits) {
  std::string ok = std::string(256, '[') + std::string(256, ']');
  std::string deep = std::string(257, '[') + std::string(257, ']');
  EXPECT_TRUE(parse(ok));
  EXPECT_EQ(parse(deep).error().reason, "JSON_TOO_DEEP");
  EXPECT_EQ(parse(std::string(10'000'000, '[')).error().reason, "JSON_TOO_DEEP");
  EXPECT_EQ(parse("[1,2]", {.max_bytes = 4}).error().reason, "JSON_TOO_LARGE");
}

TEST(json, the_last_of_two_equal_names_wins) {
  EXPECT_EQ(print(*parse(R"({"a":1,"b":2,"a":3})")), R"({"a":3,"b":2})");
  std::string big = "{";
  for (int i = 0; i < 100; ++i)
    big += "\"k" + std::to_string(i % 50) + "\":" + std::to_string(i) + (i < 99 ? "," : "}");
  auto v = parse(big);
  EXPECT_EQ(v->object().size(), 50u);
  EXPECT_EQ(v->find("k0")->number_text(), "50");
}

TEST(json, prefix_mode_ignores_text_after_the_value) {
  EXPECT_EQ(print(*parse("{\"a\":1} trailing", {.prefix = true})), "{\"a\":1}");
}

TEST(json, numbers_compare_by_value) {
  EXPECT_EQ(compare_numbers("1.0", "10e-1"), 0);
  EXPECT_LT(compare_numbers("9007199254740992", "9007199254740993"), 0);
  EXPECT_GT(compare_numbers("1e400", "1e399"), 0);
  EXPECT_LT(compare_numbers("-2", "-1"), 0);
  EXPECT_EQ(compare_numbers("0", "-0.000e9"), 0);
  EXPECT_LT(compare_numbers("-1", "0"), 0);
  EXPECT_EQ(*parse("1e3")->as_int64(), 1000);
  EXPECT_EQ(*parse("-9223372036854775808")->as_int64(), INT64_MIN);
  EXPECT_FALSE(parse("9223372036854775808")->as_int64());
  EXPECT_FALSE(parse("1.5")->as_int64());
}

TEST(json, printed_strings_are_valid_utf8) {
  EXPECT_EQ(quote("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  // An invalid byte, truncated characters, an overlong form, a surrogate, a value above U+10FFFF.
  for (const char* text :
       {"\xFF", "a\xC3", "\xE2\x82z", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    auto read = parse(quote(text));
    ASSERT_TRUE(read) << quote(text);
    EXPECT_NE(read->string().find("\xEF\xBF\xBD"), std::string::npos) << quote(text);
  }
}

TEST(json, shallow_deep_and_patch_merges_differ) {
  Value a = *parse(R"({"x":{"p":1},"y":2})");
  Value shallow = a, deep = a, patch = a;
  merge_shallow(shallow.object(), parse(R"({"x":{"q":2}})")->object());
  EXPECT_EQ(print(shallow), R"({"x":{"q":2},"y":2})");
  merge_deep(deep.object(), parse(R"({"x":{"q":2}})")->object());
  EXPECT_EQ(print(deep), R"({"x":{"p":1,"q":2},"y":2})");
  merge_patch(patch, *parse(R"({"x":{"p":null},"y":null,"z":{"n":null}})"));
  EXPECT_EQ(print(patch), R"({"x":{},"z":{}})");
}

Object wide(size_t from, size_t to) {
  Object out;
  for (size_t i = from; i < to; ++i)
    out.add("k" + std::to_string(i), Value(static_cast<int64_t>(i)));
  return out;
}

// Each of these compared every name with every other one: minutes for objects of this size.
TEST(json, wide_objects_take_linear_time) {
  constexpr size_t n = 200'000;
  Object target = wide(0, n);
  merge_shallow(target, wide(n / 2, n + n / 2));
  EXPECT_EQ(target.size(), n + n / 2);
  EXPECT_EQ(target.begin()[n].name, "k" + std::to_string(n)) << "new members come last, in order";
  merge_deep(target, wide(0, n + n));
  EXPECT_EQ(target.size(), n + n);
  EXPECT_TRUE(target == wide(0, n + n));
  Value patched(wide(0, n));
  Object nulls;
  for (size_t i = 0; i < n; i += 2)
    nulls.add("k" + std::to_string(i), nullptr);
  merge_patch(patched, Value(std::move(nulls)));
  EXPECT_EQ(patched.object().size(), n / 2);
  EXPECT_EQ(patched.object().begin()->name, "k1");
  Object turned;
  for (size_t i = n; i-- > 0;)
    turned.add("k" + std::to_string(i), Value(static_cast<int64_t>(i)));
  EXPECT_TRUE(turned == wide(0, n)) << "the order does not matter";
  turned.begin()->value = "x";
  EXPECT_FALSE(turned == wide(0, n));
  std::string text = "{";
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < n; ++i)
      text +=
          (text.size() > 1 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(round);
  auto parsed = parse(text + "}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->object().size(), n) << "equal names replace each other";
  EXPECT_EQ(parsed->object().begin()[5].value, Value(1));
}

// Names that fall on one slot of a table.
std::vector<std::string> colliding_names(size_t count) {
  std::vector<std::string> out;
  for (uint64_t n = 0; out.size() < count; ++n) {
    std::string name = "n" + std::to_string(n);
    if ((std::hash<std::string_view>()(name) & 0xfff) == 7) out.push_back(std::move(name));
  }
  return out;
}

TEST(json, names_that_collide_are_found_all_the_same) {
  const std::vector<std::string> names = colliding_names(300);
  std::string text = "{";
  for (size_t round = 0; round < 2; ++round)
    for (size_t i = 0; i < names.size(); ++i)
      text +=
          (text.size() > 1 ? ",\"" : "\"") + names[i] + "\":" + std::to_string(round * 1000 + i);
  auto parsed = parse(text + "}");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->object().size(), names.size()) << "the last of two equal names wins";
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(parsed->find(names[i])->as_int64(), 1000 + static_cast<int64_t>(i));
  Object target = parsed->object();
  merge_shallow(target, parsed->object());
  EXPECT_EQ(target.size(), names.size());
  Value turned{Object{}};
  for (auto it = names.rbegin(); it != names.rend(); ++it)
    turned.object().add(*it, *parsed->find(*it));
  EXPECT_TRUE(equivalent(turned, *parsed));
  turned.object().begin()->value = 5;
  EXPECT_FALSE(equivalent(turned, *parsed));
}

}  // namespace pawl::json
