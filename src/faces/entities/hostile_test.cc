// Hostile bodies, ids and numbers: each is refused with a problem, nothing is written, and the next
// request is served.

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

struct Door4xx {
  const char* method;
  std::string path;
};

std::string repeated(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i)
    out += piece;
  return out;
}

// Whether the answer is a 4xx in the form of the contract.
void expect_refused(const TestResponse& h, const std::string& what) {
  EXPECT_GE(h.status, 400) << what << h.text;
  EXPECT_LT(h.status, 500) << what << h.text;
  EXPECT_FALSE(h.code().empty()) << what << h.text;
}

TEST(hostile, hostile_bodies_are_refused_and_change_nothing) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create();
  const Door4xx doors[] = {
      {"POST", "/model/import/JSON/SAMPLE_DATA/deep/1"},
      {"POST", "/model/validate/m/1"},
      {"POST", "/model/m/1/workflow/import"},
      {"POST", "/entity/JSON/m/1"},
      {"POST", "/entity/JSON"},
      {"PUT", "/entity/JSON/" + id},
      {"PUT", "/entity/JSON"},
      {"PATCH", "/entity/JSON/" + id},
      {"POST", "/search/direct/m/1"},
      {"POST", "/search/async/m/1"},
      {"POST", "/message/new/s"},
      {"DELETE", "/message"},
      {"POST", "/entity/stats/m/1/query"},
      {"PUT", "/model/m/1/indexes"},
      {"PUT", "/model/m/1/unique-keys"},
  };
  const std::string bodies[] = {
      "{",
      "]",
      "nul",
      "{\"a\":}",
      "{\"a\":1,}",
      "\"\xff\"",
      "{\"a\":\"\\ud800\"}",
      "{\"a\":NaN}",
      "{\"a\":01}",
      "{} {}",
      std::string("{\"a\":1\0}", 8),
      repeated("[", 10'000),
      repeated("[", 10'000) + repeated("]", 10'000),
      repeated("{\"a\":", 10'000) + "1" + repeated("}", 10'000),
  };
  for (const Door4xx& kernel : doors)
    for (const std::string& body : bodies)
      expect_refused(s.send(kernel.method, kernel.path, body,
                            {{"Content-Type", "application/json"}, {"Content-Length", "1"}}),
                     std::string(kernel.method) + kernel.path + " " + body.substr(0, 30));
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 1);
  EXPECT_EQ(s.send("GET", "/model/").body.array().size(), 1u);
  EXPECT_EQ(s.data(id), R"({"k":"a","n":1})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(hostile, each_value_of_a_wrong_type_is_refused) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create();
  const char* things[] = {"null", "true", "7",  "-1e999",       "\"x\"",
                          "[]",   "[[]]", "{}", "{\"name\":{}}"};
  const std::string shapes[] = {
      R"({"importMode":@,"workflows":[]})",
      R"({"workflows":[@]})",
      R"({"workflows":[{"name":@,"initialState":"A","states":{"A":{}}}]})",
      R"({"workflows":[{"name":"w","initialState":"A","states":@}]})",
      R"({"workflows":[{"name":"w","initialState":"A","states":{"A":{"transitions":[@]}}}]})",
      R"({"workflows":[{"name":"w","initialState":"A","states":{"A":{"transitions":[{"name":"t","next":"A","manual":true,"processors":[@]}]}}}]})",
      R"({"workflows":[{"name":"w","initialState":"A","states":{"A":{"transitions":[{"name":"t","next":"A","schedule":@}]}}}]})",
  };
  // Any answer is fine except an internal error.
  for (std::string shape : shapes)
    for (const char* thing : things) {
      std::string body = shape;
      body.replace(body.find('@'), 1, thing);
      TestResponse h = s.send("POST", "/model/m/1/workflow/import", body);
      EXPECT_TRUE(h.status == 200 || h.status == 400) << h.status << body;
    }
  const std::string conditions[] = {
      R"({"type":@})",
      R"({"type":"simple","jsonPath":@,"operatorType":"EQUALS","value":1})",
      R"({"type":"simple","jsonPath":"$.n","operatorType":@,"value":1})",
      R"({"type":"simple","jsonPath":"$.n","operatorType":"BETWEEN","value":@})",
      R"({"type":"simple","jsonPath":"$.k","operatorType":"MATCHES_PATTERN","value":@})",
      R"({"type":"group","operator":@,"conditions":[]})",
      R"({"type":"group","operator":"AND","conditions":@})",
      R"({"type":"array","jsonPath":"$.k","values":@})",
      R"({"type":"lifecycle","field":@,"operatorType":"EQUALS","value":1})"};
  for (std::string shape : conditions)
    for (const char* thing : things) {
      std::string body = shape;
      body.replace(body.find('@'), 1, thing);
      TestResponse h = s.send("POST", "/search/direct/m/1", body);
      EXPECT_TRUE(h.status == 200 || h.status == 400) << h.status << body;
    }
  EXPECT_EQ(s.data(id), R"({"k":"a","n":1})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(hostile, hostile_ids_and_numbers_are_refused) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create();
  const std::string targets[] = {
      "/entity/x",
      "/entity/" + id.substr(1),
      "/entity/" + id + "0",
      "/entity/" + id + "?pointInTime=yesterday",
      "/entity/" + id + "?pointInTime=9999-99-99T00:00:00Z",
      "/entity/" + id + "?transactionId=x",
      "/entity/" + id + "/changes?pointInTime=1",
      "/entity/m/9999999999",
      "/entity/m/1?pageSize=999999999999999999999",
      "/entity/m/1?pageNumber=1.5",
      "/audit/entity/x",
      "/audit/entity/" + id + "?limit=x",
      "/search/async/x/status",
      "/search/async/x",
      "/message/x",
      "/model/export/SIMPLE_VIEW/m/x",
      "/entity/stats/m/x",
  };
  for (const std::string& target : targets)
    expect_refused(s.send("GET", target), target);
}

TEST(audit, changes_and_aborted_attempts_are_listed_in_order) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create();
  std::string first(s.send("GET", "/entity/" + id).body.find("meta")->string_or("transactionId"));
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":2})").status, 200);
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":3})", {{"If-Match", first}}).status, 412);
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":4})").status, 200);
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":5})", {{"If-Match", first}}).status, 412);
  EXPECT_EQ(s.send("DELETE", "/entity/" + id).status, 200);
  std::string seen;
  TestResponse all = s.send("GET", "/audit/entity/" + id + "?limit=100");
  for (const json::Value& item : all.body.find("items")->array()) {
    std::string_view kind = item.string_or("changeType", item.string_or("eventType"));
    if (kind != "STATE_MACHINE_START" && kind != "STATE_MACHINE_FINISH" &&
        kind != "WORKFLOW_FOUND" && kind != "TRANSITION_MAKE")
      seen += std::string(kind) + " ";
  }
  EXPECT_EQ(seen, "DELETED TRANSITION_ABORTED UPDATED TRANSITION_ABORTED UPDATED CREATED ");
  // The same, page by page.
  std::string paged;
  for (int at = 0; at < 40; ++at) {
    TestResponse page =
        s.send("GET", "/audit/entity/" + id + "?limit=1&cursor=" + std::to_string(at));
    const json::Array& items = page.body.find("items")->array();
    if (items.empty()) break;
    paged += json::print(items[0]);
  }
  std::string whole;
  for (const json::Value& item : all.body.find("items")->array())
    whole += json::print(item);
  EXPECT_EQ(paged, whole);
  // Pages after the end are empty.
  TestResponse beyond =
      s.send("GET", "/audit/entity/" + id + "?limit=1000&cursor=9223372036854775807");
  EXPECT_EQ(json::print(beyond.body), R"({"items":[],"pagination":{"hasNext":false}})");
}

TEST(audit, a_stale_item_of_a_collection_is_recorded_as_aborted) {
  FaceFixture s;
  s.add_model();
  std::string fresh = s.create(), stale = s.create(),
              never = "00000000-0000-0000-0000-000000000000";
  std::string actual(
      s.send("GET", "/entity/" + stale).body.find("meta")->string_or("transactionId"));
  auto item = [](const std::string& id, const std::string& more) {
    return R"({"id":")" + id + R"(","payload":"{\"n\":2}")" + more + "}";
  };
  std::string too_late = R"(,"ifMatch":")" + never + R"(")";
  for (const std::string& items : {item(fresh, "") + "," + item(stale, too_late),
                                   item(stale, too_late + R"(,"transition":"UPDATE")")}) {
    TestResponse done = s.send("PUT", "/entity/JSON", "[" + items + "]");
    ASSERT_EQ(done.status, 200) << done.text;
    EXPECT_EQ(done.body.array()[0].find("failed")->array().size(), 1u);
    std::string tx(done.body.array()[0].string_or("transactionId"));
    TestResponse trail = s.send("GET", "/audit/entity/" + stale + "?transactionId=" + tx);
    const json::Array& events = trail.body.find("items")->array();
    ASSERT_EQ(events.size(), 2u) << trail.text;
    EXPECT_EQ(events[1].string_or("eventType"), "STATE_MACHINE_START");
    EXPECT_EQ(events[0].string_or("eventType"), "TRANSITION_ABORTED");
    const json::Value& data = *events[0].find("data");
    EXPECT_EQ(data.string_or("reason"), "ENTITY_MODIFIED");
    EXPECT_EQ(data.string_or("expectedTxId"), never);
    EXPECT_EQ(data.string_or("actualTxId"), actual);
    EXPECT_EQ(data.string_or("transitionName"),
              items.starts_with(item(fresh, "")) ? "loopback" : "UPDATE");
  }
  EXPECT_EQ(s.data(stale), R"({"k":"a","n":1})");
  EXPECT_EQ(s.kernel.verify(), "");
}

}  // namespace
}  // namespace pawl::entities
