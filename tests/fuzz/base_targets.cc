// Fuzz targets for JSON, CBOR, expressions, conditions, times and encodings.

#include "base/utf8.h"
#include "cbor/cbor.h"
#include "condition/condition.h"
#include "expr/expression.h"
#include "fuzz.h"
#include "json/merge.h"
#include "json/text.h"

namespace pawl::fuzz {

namespace {

// Printed JSON parses back to the same value.
void json_text(BytesView bytes) {
  auto value = json::parse(bytes);
  if (!value) return;
  std::string text = json::print(*value);
  auto again = json::parse(text);
  CHECK(again && json::print(*again) == text);
  auto pretty = json::parse(json::print_pretty(*value));
  CHECK(pretty && json::print(*pretty) == text);
  json::Value merged = *value;
  json::merge_patch(merged, *again);
  (void)json::print(merged);
}

// Decoded CBOR encodes back to an equal value.
void cbor_bytes(BytesView bytes) {
  auto value = cbor::decode(bytes);
  if (!value) return;
  auto again = cbor::decode(cbor::encode(*value));
  CHECK(again && cbor::encode(*again) == cbor::encode(*value));
  // The canonical bytes decode to a value with the same canonical bytes.
  Bytes once = cbor::canonical(*value);
  auto back = cbor::decode(once);
  CHECK(back && cbor::canonical(*back) == once);
}

// The first line is the expression, the rest are its variables as JSON.
void expression(BytesView bytes) {
  if (!is_utf8(bytes)) return;  // expressions come in JSON, which is UTF-8
  size_t end = bytes.find('\n');
  expr::Expression e(bytes.substr(0, end));
  auto variables = json::parse(end == BytesView::npos ? BytesView("{}") : bytes.substr(end + 1));
  json::Object none;
  auto value = e.evaluate(variables && variables->is_object() ? variables->object() : none, kNow);
  CHECK(!e.problem() || !value);
  if (!value) return refused(value.error());
  auto printed = json::parse(
      json::print(*value), {.max_depth = 2 * limits::kJsonDepth, .max_bytes = limits::kFrameBytes});
  CHECK(printed);
}

std::vector<std::string> expression_seeds() {
  std::vector<std::string> out{
      "a + b * -c ** 2 // 3\n{\"a\":1,\"b\":2,\"c\":3}",
      "map(filter(list, # > 1), {x: #.y ?? 'n'})[0]?.x\n{\"list\":[1,2,3]}",
      "date('2024-01-15').Year() + len(split('a,b', ','))\n{}",
      "not (s matches '^a+$') and ${x} in 1..3 ? sum([1, 2.5]) : s[1:2]\n{\"s\":\"aab\",\"x\":2}"};
  for (const char* file : {"expressions.json", "expressions-times.json"})
    for (const std::string& part : vectors(file, 2, "expr")) {
      auto value = json::parse(part);
      const json::Value* given = value->find("vars");
      out.push_back(std::string(value->find("expr")->string()) + "\n" +
                    (given ? json::print(*given) : "{}"));
    }
  return out;
}

// The input is an array of a condition and a document.
void condition_text(BytesView bytes) {
  auto both = json::parse(bytes);
  if (!both || !both->is_array() || both->array().size() != 2) return;
  auto compiled = condition::Condition::compile(both->array()[0]);
  if (!compiled) return refused(compiled.error());
  std::string data = json::print(both->array()[1]);
  (void)compiled->matches({data, "OPEN", kNow, "go"});
}

std::vector<std::string> condition_seeds() {
  std::vector<std::string> out;
  for (const std::string& part : vectors("entities/search-matcher", 8, "operatorType"))
    out.push_back("[" + part + R"(,{"a":[1,{"b":"x"},null],"n":1.5,"s":"text","o":{"k":true}}])");
  for (const std::string& part : vectors("entities/search-matcher", 8, "conditions"))
    out.push_back("[" + part + R"(,{"n":1}])");
  return out;
}

// The first line is a path, the rest is a document.
void condition_path(BytesView bytes) {
  size_t end = bytes.find('\n');
  if (end == BytesView::npos) return;
  auto value = json::parse(bytes.substr(end + 1));
  if (!value) return;
  std::string data = json::print(*value);
  std::string buffer;
  condition::Path path(bytes.substr(0, end));
  if (path.is_list()) {
    std::vector<condition::Field> found;
    if (path.collect(data, found))
      for (const auto& field : found)
        (void)condition::text_of(field, buffer);
  } else {
    (void)condition::text_of(path.find(data), buffer);
  }
}

// A parsed time prints back to the same time, and no duration overflows when it is added.
void times(BytesView bytes) {
  if (auto t = parse_rfc3339(bytes)) {
    auto again = parse_rfc3339(rfc3339(*t));
    CHECK(again && *again == *t);
  }
  if (auto d = parse_duration(bytes)) (void)add(kNow, *d);
}

void encodings(BytesView bytes) {
  auto raw = unbase64(bytes);
  if (raw) {
    auto again = unbase64(base64(*raw));
    CHECK(again && *again == *raw);
  }
  if (auto raw_hex = unhex(bytes)) CHECK(*unhex(hex(*raw_hex)) == *raw_hex);
  // quote() keeps valid UTF-8 and replaces other bytes.
  auto printed = json::parse(json::quote(bytes), {.max_bytes = 8u << 20});
  CHECK(printed && printed->string() == as_utf8(bytes) && is_utf8(as_utf8(bytes)) &&
        is_utf8(bytes) == (as_utf8(bytes) == bytes));
}

}  // namespace

std::vector<Target> base_targets() {
  return {
      {"json", json_text, [] { return vectors("", 3); }},
      {"cbor", cbor_bytes,
       [] {
         return std::vector<std::string>{
             std::string("\xd9\xd9\xf7\xa2\x61\x61\x01\x61\x62\x82\xf6\xf5", 12),
             std::string("\xbf\x61\x61\x9f\x01\xff\x7f\x61\x62\xff\xc2\x41\x01\xff", 14),
             std::string("\xfb\x7f\xf8\0\0\0\0\0\0", 9), "\x3b\xff\xff\xff\xff\xff\xff\xff\xff"};
       }},
      {"expression", expression, expression_seeds},
      {"condition", condition_text, condition_seeds},
      {"path", condition_path,
       [] {
         return std::vector<std::string>{"$.a[*].b\n{\"a\":[{\"b\":1},{\"b\":\"\\u00e9\"}]}",
                                         "a.0.length\n{\"a\":[[1,2]]}", "$\n[]",
                                         "$.a.b.length\n{\"a\":{\"b\":[1,2,3]}}"};
       }},
      {"times", times,
       [] {
         return std::vector<std::string>{"2026-11-15T13:32:00.123456Z",
                                         "1969-12-31 23:59:59+14:00",
                                         "9999-12-31t23:59:59.9999999999z",
                                         "P1Y2M3W4DT5H6M7.5S",
                                         "-PT1S",
                                         "PT0.000000001S"};
       }},
      {"encodings", encodings,
       [] {
         return std::vector<std::string>{"AAEC_-8=", "deadBEEF", "\xf0\x9f\x98\x80", "\xed\xa0\x80",
                                         "\xe0\x9f\xbf"};
       }},
  };
}

}  // namespace pawl::fuzz
