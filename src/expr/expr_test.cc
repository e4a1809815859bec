// The recorded cases of the expression language, and tests of its limits and errors. The contract
// names the Go library expr-lang/expr, whose results some of the cases record.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "expr/expression.h"
#include "expr/functions.h"
#include "expr/zones.h"
#include "json/text.h"

namespace pawl::expr {
namespace {

constexpr Time kNow = 1'794'700'000 * kSecond;

json::Value load(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  auto value = json::parse(text.str());
  EXPECT_TRUE(value) << path;
  return value ? *value : json::Value();
}

Result<json::Value> run(std::string_view text, std::string_view variables = "{}") {
  auto vars = json::parse(variables);
  return Expression(text).evaluate(vars->object(), kNow);
}

// Compares members in any order and numbers as doubles: 2e+23 is 200000000000000000000000.
bool same(const json::Value& a, const json::Value& b) {
  if (a.is_number() && b.is_number())
    return json::same_number(a, b) || a.as_double() == b.as_double();
  if (a.is_array() && b.is_array())
    return std::equal(a.array().begin(), a.array().end(), b.array().begin(), b.array().end(), same);
  if (a.is_object() && b.is_object()) {
    if (a.object().size() != b.object().size()) return false;
    for (const json::Member& m : a.object())
      if (!b.find(m.name) || !same(m.value, *b.find(m.name))) return false;
    return true;
  }
  return a == b;
}

void play(const std::string& path) {
  json::Value cases = load(path);
  size_t played = 0;
  for (const json::Value& c : cases.array()) {
    if (c.string_or("level") == "quirk") continue;
    ++played;
    std::string text(c.string_or("expr"));
    auto got = Expression(text).evaluate(c.find("vars")->object(), kNow);
    if (c.find("error")) {
      EXPECT_FALSE(got) << text << " with " << json::print(*c.find("vars")) << " gave "
                        << json::print(*got);
    } else {
      ASSERT_TRUE(c.find("result")) << text;
      EXPECT_TRUE(got && same(*got, *c.find("result")))
          << text << " with " << json::print(*c.find("vars")) << " wants "
          << json::print(*c.find("result")) << " got "
          << (got ? json::print(*got) : got.error().message);
    }
  }
  EXPECT_GT(played, 30u);
}

TEST(expr, every_recorded_case_holds) { play("tests/vectors/expressions.json"); }
TEST(expr, every_contract_sample_holds) { play("tests/vectors/expressions-samples.json"); }
TEST(expr, every_case_agrees_with_the_go_library) {
  play("tests/vectors/expressions-compared.json");
}

// Times, zones, layouts, and closures over texts and maps.
TEST(expr, every_time_case_agrees_with_the_go_library) {
  play("tests/vectors/expressions-times.json");
}

TEST(expr, every_time_zone_is_valid_and_sorted) {
  std::string_view left = kZones, before;
  size_t zones = 0;
  while (!left.empty()) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(line.size() + 1);
    std::string_view name = line.substr(0, line.find_first_of("|="));
    EXPECT_LT(before, name) << "zones are found by binary search";
    before = name;
    auto zone = find_zone(name);
    ASSERT_TRUE(zone) << name;
    for (const Zone::Transition& c : zone->transitions)
      ASSERT_LT(c.type, zone->types.size()) << name;
    for (int64_t t = -8'000'000'000; t < 20'000'000'000; t += 100'000'007) {
      ZonePeriod period = period_at(&*zone, t);
      EXPECT_TRUE(period.begin <= t && t < period.end) << name << " at " << t;
      EXPECT_LT(std::abs(period.offset), 26 * 3600) << name;
    }
    ++zones;
  }
  EXPECT_GT(zones, 500u);
}

TEST(expr, times_too_far_away_are_refused) {
  EXPECT_FALSE(run("reduce(1..50000, #acc.AddDate(9999999, 0, 0), date('2024-01-15')).Year()"));
  EXPECT_FALSE(run("date('2024-01-15').AddDate(9223372036854775807, 0, 0)"));
  EXPECT_FALSE(run("reduce(1..90000, #acc + duration('2562047h'), date('2024-01-15')).Year()"));
  EXPECT_FALSE(run("date(s, '2006 MST')", R"({"s": "2024 +)" + std::string(50'000, '0') + "\"}"))
      << "the name of a zone has a limited length";
  EXPECT_EQ(json::print(*run("date('2024-01-15').AddDate(-3000, 0, 0).Year()")), "-976");
}

TEST(expr, counts_are_truncated_and_sort_orders_are_checked) {
  EXPECT_EQ(json::print(*run("repeat('ab', n)", R"({"n": 2.5})")), "\"abab\"");
  for (const char* text : {"sort(n, 'up')", "map([1], nil)", "sort(n, 5)"})
    EXPECT_FALSE(run(text, R"({"n": null})")) << text;
}

TEST(expr, months_and_days_have_names_and_numbers) {
  EXPECT_EQ(
      json::print(*run(
          "date('2024-01-15').Month() == 1 && string(date('2024-01-15').Month()) == 'January'")),
      "true");
  EXPECT_EQ(json::print(*run("date('2024-01-15').Weekday().String()")), "\"Monday\"");
}

TEST(expr, a_time_without_json_form_is_refused_with_its_year) {
  auto got = run("date('9999-12-31').AddDate(1, 0, 0)");
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("year 10000"), std::string::npos) << got.error().message;
  got = run("date('2024-01-15', '2006-01-02', 'Europe/Nowhere')");
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("unknown time zone 'Europe/Nowhere'"), std::string::npos)
      << got.error().message;
}

TEST(expr, errors_name_expression_position_and_variable) {
  auto got = run("1 + missing > 3");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message,
            "expression \"1 + missing > 3\": undefined variable \"missing\" at position 5");
}

TEST(expr, numbers_keep_their_digits) {
  EXPECT_EQ(json::print(*run("a", R"({"a": 123456789012345678901234567890.50})")),
            "123456789012345678901234567890.50");
  EXPECT_EQ(json::print(*run("a + 1", R"({"a": 9007199254740993})")), "9007199254740994");
  EXPECT_EQ(json::print(*run("a * 2", R"({"a": 9223372036854775807})")), "18446744073709552000");
}

TEST(expr, nesting_of_every_kind_is_limited) {
  EXPECT_FALSE(run(std::string(100'000, '(') + "1" + std::string(100'000, ')')));
  EXPECT_FALSE(run(std::string(20'000, '-') + "1"));
  EXPECT_FALSE(run(std::string(20'000, '[') + std::string(20'000, ']')));
  std::string sum = "1";
  for (int i = 0; i < 20'000; ++i)
    sum += "+1";
  EXPECT_FALSE(run(sum));
  std::string small = "1";
  for (int i = 0; i < 300; ++i)
    small += "+1";
  EXPECT_EQ(json::print(*run(small)), "301");
}

TEST(expr, a_range_of_large_numbers_is_finite) {
  EXPECT_EQ(json::print(*run("n..n + 1", R"({"n": 9007199254740993})")),
            "[9007199254740993,9007199254740994]");
  EXPECT_EQ(json::print(*run("n..n", R"({"n": 1e17})")), "[100000000000000000]");
  for (const char* text : {"n..n", "0..n", "n..0"})
    EXPECT_FALSE(run(text, R"({"n": 1e30})")) << text;
}

TEST(expr, work_is_limited) {
  EXPECT_FALSE(run("1..1000000000"));
  EXPECT_FALSE(run("repeat('x', 100000000)"));
  EXPECT_FALSE(run("map(1..50000, map(1..50000, #))"));
  EXPECT_FALSE(run("len(1..1e300)"));
  EXPECT_FALSE(run("reduce(1..50000, [#acc], 0)")) << "a value nested too deep";
  EXPECT_FALSE(run("string(reduce(1..50000, {\"a\": #acc}, 0))"));
  EXPECT_TRUE(run("reduce(1..100, [#acc], 0)"));
}

// Reads count as well as values that are made. Each of these took from a minute to for ever.
TEST(expr, reading_is_limited) {
  const std::string megabyte(1'000'000, 'a');
  const std::string half(500'000, 'a');
  std::string same_start = "[";
  for (int i = 0; i < 1500; ++i)
    same_start += (i ? ",\"" : "\"") + std::string(2000, 'x') + std::to_string(10'000 + i) + "\"";
  std::string wide = "{";
  for (int i = 0; i < 20'000; ++i)
    wide += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  const std::string vars = "{\"s\":\"" + megabyte + "\",\"half\":\"" + half +
                           "b\",\"xs\":" + same_start + "],\"wide\":" + wide + "},\"json\":\"[" +
                           std::string(100'000, '1') +
                           "]\",\"digits\":" + std::string(200'000, '9') + "}";
  std::string chain = "#";
  for (int i = 0; i < 300; ++i)
    chain += "+#";
  for (const std::string& text :
       {std::string("count(1..20000, s contains \"abc\")"),
        std::string("count(1..20000, s == s[0:999999] + 'b')"),
        std::string("count(1..20000, s contains half)"),
        std::string("count(1..20000, s matches '(a|aa)+$')"),
        std::string("count(1..20000, s matches ('b' + string(#)))"),
        std::string("count(1..20000, indexOf(s, half) > 0)"),
        std::string("count(1..20000, lastIndexOf(s, half) > 0)"),
        std::string("count(1..20000, len(trim(s, half)) > 0)"),
        std::string("count(1..20000, hasPrefix(s, half))"),
        std::string("count(1..20000, s < half)"), std::string("count(1..90000, # in xs)"),
        std::string("count(1..20000, wide == wide)"), std::string("count(1..20000, 'k9' in xs)"),
        std::string("count(1..90000, wide.k19999 == 2)"),
        std::string("count(1..20000, digits > 1)"),
        std::string("count(1..20000, len(fromJSON(json)) > 5)"), std::string("uniq(xs)"),
        std::string("count(1..90000, xs == xs)"),
        "count(1..90000, count(1..9, " + chain + " > 0) > 0)"}) {
    auto got = run(text, vars);
    ASSERT_FALSE(got) << text;
    EXPECT_TRUE(got.error().reason == "EXPRESSION_TOO_EXPENSIVE" ||
                got.error().message.find("makes") != std::string::npos)
        << got.error().message.substr(0, 300);
  }
  EXPECT_EQ(json::print(*run("count(1..100, s contains \"abc\")", vars)), "0")
      << "an honest search is far from the limit";
}

// A list may hold one list twice, and so on: a value of a hundred lists prints as 2^100 elements.
TEST(expr, values_that_share_parts_are_limited) {
  const std::string doubled = "reduce(1..100, [#acc, #acc], 1)";
  const std::string nested = "reduce(1..100, {\"a\": #acc, \"b\": #acc}, 1)";
  for (const std::string& text :
       {doubled, nested, "string(" + doubled + ")", "toJSON(" + nested + ")",
        doubled + " == " + doubled, nested + " == " + nested, "flatten(" + doubled + ")",
        "max(" + doubled + ")", "len(string(" + nested + ")) > 1",
        std::string("join(map(1..90000, repeat('x', 50000)))")}) {
    auto got = run(text);
    EXPECT_FALSE(got) << text;
  }
}

TEST(expr, searching_finds_the_first_and_the_last_place) {
  const char* vars = R"({"s": "abcabc"})";
  const std::pair<const char*, const char*> cases[] = {{"indexOf(s, 'bc')", "1"},
                                                       {"lastIndexOf(s, 'bc')", "4"},
                                                       {"lastIndexOf(s, 'x')", "-1"},
                                                       {"lastIndexOf(s, '')", "6"},
                                                       {"indexOf(s, '')", "0"},
                                                       {"s contains ''", "true"},
                                                       {"lastIndexOf('', 'a')", "-1"},
                                                       {"trim('xxaxx', 'x')", "\"a\""},
                                                       {"trim('xx', 'x')", "\"\""},
                                                       {"trim('  a ')", "\"a\""},
                                                       {"replace(s, 'bc', '')", "\"aa\""},
                                                       {"split('a,b,', ',')", R"(["a","b",""])"}};
  for (const auto& [text, want] : cases) {
    auto got = run(text, vars);
    EXPECT_EQ(got ? json::print(*got) : got.error().message, want) << text;
  }
}

TEST(expr, string_literals_are_never_rewritten) {
  EXPECT_EQ(json::print(*run("'#fff'")), R"("#fff")");
  EXPECT_EQ(json::print(*run("\"${a}\"")), R"("${a}")");
  EXPECT_EQ(json::print(*run("\"it's Bob's\"")), R"("it's Bob's")");
}

TEST(expr, a_function_name_may_be_a_variable) {
  EXPECT_EQ(json::print(*run("type == 'LOAN' && count > 3", R"({"type": "LOAN", "count": 5})")),
            "true");
  EXPECT_EQ(json::print(*run("!contains(xs, 'a')", R"({"xs": ["b"]})")), "true");
}

TEST(expr, a_test_requires_a_boolean) {
  json::Object none;
  auto got = Expression("1 + 1").test(none, kNow);
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("not bool"), std::string::npos);
}

TEST(expr, searches_in_a_nil_variable_are_false) {
  const char* vars = R"({"n": null, "a": 1, "s": "x", "m": {"k": {"z": 9}}})";
  for (const char* text : {"a in n", "a in m.zz", "contains(m.zz, a)", "n in m", "n contains 'x'",
                           "s startsWith n", "n matches s"})
    EXPECT_EQ(json::print(*run(text, vars)), "false") << text;
  for (const char* text : {"a not in n", "n not endsWith s"})
    EXPECT_EQ(json::print(*run(text, vars)), "true") << text;
  for (const char* text : {"a in nil", "contains(nil, a)", "s contains nil", "nil matches 'x'",
                           "'x' in [1, 2]", "a in s"})
    EXPECT_FALSE(run(text, vars)) << text;
}

TEST(expr, optional_chaining_short_circuits_its_chain_only) {
  const char* vars = R"({"n": null, "m": {"k": {"z": 9}}})";
  for (const char* text : {"n?.x", "n?.x.y", "(n?.x).y", "m?.zz?.y", "n?.[0]", "m[n]"})
    EXPECT_EQ(json::print(*run(text, vars)), "null") << text;
  for (const char* text : {"m?.zz.y", "n?.x[0]", "nil?.x"})
    EXPECT_FALSE(run(text, vars)) << text;
  EXPECT_EQ(json::print(*run("m?.k.z", vars)), "9");
  EXPECT_EQ(json::print(*run("1 + n ?? 2", vars)), "3");
  EXPECT_FALSE(run("n ?? 2 + 1", vars)) << "an operator to the right of ?? needs brackets";
}

TEST(expr, functions_accept_variables_of_every_fitting_kind) {
  const char* vars = R"({"n": null, "a": 1, "s": "hello", "xs": [3, 1, 2]})";
  const std::pair<const char*, const char*> cases[] = {
      {"first(s)", "104"},
      {"last(n)", "null"},
      {"get(a, 'x')", "null"},
      {"get(xs, -1)", "2"},
      {"sort(n)", "null"},
      {"sort([nil])", "[null]"},
      {"max(s)", "\"hello\""},
      {"+s", "\"hello\""},
      {"trimPrefix(' x')", "\"x\""},
      {"{1: 2}", "{\"1\":2}"},
      {"duration('1h') * 2", "7200000000000"},
      {"0.5 * duration('1h')", "1800000000000"},
      {"string(duration('1h30m5.25s'))", "\"1h30m5.25s\""},
      {"string(duration('-100ms'))", "\"-100ms\""},
      {"string(date('2024-01-15'))", "\"2024-01-15 00:00:00 +0000 UTC\""}};
  for (const auto& [text, want] : cases) {
    auto got = run(text, vars);
    EXPECT_EQ(got ? json::print(*got) : got.error().message, want) << text;
  }
  for (const char* text : {"first('abc')", "get(nil, 'x')", "max('a', 'b')", "take(xs, a)",
                           "1.5..3", "[1, 2][1.5]", "'hello'[1]", "upper(s)[0]"})
    EXPECT_FALSE(run(text, vars)) << text;
}

TEST(expr, a_result_is_always_valid_json_text) {
  for (const char* text :
       {"s[0:1]", "{(s[0:1]): 1}", "[s[1:]]", "fromBase64('/w==')", "toJSON(s[0:1])"}) {
    auto got = run(text, "{\"s\": \"\xF0\x9F\x98\x80\"}");
    ASSERT_TRUE(got) << text;
    EXPECT_TRUE(json::parse(json::print(*got))) << text;
  }
}

// The reference page repeats the table of functions and must not fall behind.
TEST(expr, every_function_is_in_the_reference) {
  std::string table = "| function | |\n|---|---|\n";
  for (const Function& function : functions())
    table += "| `" + std::string(function.name) + "` | " + std::string(function.doc) + " |\n";
  std::ifstream page("docs/reference/processes.md");
  ASSERT_TRUE(page) << "run from the top of the tree";
  std::string text((std::istreambuf_iterator<char>(page)), {});
  // The page has these rows and no others.
  const size_t at = text.find(table);
  ASSERT_NE(at, std::string::npos) << "docs/reference/processes.md must hold:\n" << table;
  EXPECT_FALSE(text.substr(at + table.size()).starts_with("|"));
}

}  // namespace
}  // namespace pawl::expr
