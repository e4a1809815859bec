#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

// Reads inside an open transaction.

namespace pawl::entities {

namespace {

// A transaction that waits for a member, with its token.
struct OpenTransaction : FaceFixture {
  explicit OpenTransaction(const std::string& mode = "SYNC") {
    add_model();
    import_processors(processor("p", mode));
    member = join(fake);
    id = create();
    other = create(R"({"k":"other","n":5})");
    waiting = start("PUT", "/entity/JSON/" + id + "/go", R"({"k":"a","n":2})");
    token = {{"X-Tx-Token", fake->token(0)}};
    tx = std::string(fake->calls()[0].string_or("transactionId"));
  }
  TestResponse ask(const std::string& target) { return send("GET", target, "", token); }
  std::string add(const std::string& body) {
    TestResponse h = send("POST", "/entity/JSON/m/1", body, token);
    EXPECT_EQ(h.status, 200) << h.text;
    return h.body.array()[0].find("entityIds")->array()[0].string();
  }
  void answer(CallResult result = {}) {
    face->members().answered(member, fake->request(0), Call::processor, std::move(result));
    EXPECT_EQ(kernel.verify(), "");
  }
  int64_t count(const wire::Headers& headers) {
    return send("GET", "/entity/stats/m/1", "", headers)
        .body.find("count")
        ->as_int64()
        .value_or(-1);
  }

  std::shared_ptr<FakeMember> fake = std::make_shared<FakeMember>();
  std::string member, id, other, tx;
  TestResponsePtr waiting;
  wire::Headers token;
};

std::string kinds(const TestResponse& heard, std::string_view name = "changeType") {
  if (!heard.body.is_array() && !heard.body.find("items")) return heard.code();
  std::string out;
  for (const json::Value& c :
       heard.body.is_array() ? heard.body.array() : heard.body.find("items")->array())
    out += fmt::format("{} ", c.string_or(name));
  return out;
}

const std::string kByState = R"({"groupBy":["state"],"aggregations":[{"op":"sum","field":"$.n"}])";
const std::string kLater = "pointInTime=2200-01-01T00:00:00Z";

}  // namespace

TEST(reads_in_transaction, changes_include_those_of_the_transaction) {
  OpenTransaction s;
  std::string child = s.add(R"({"k":"child"})");
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + child, R"({"k":"again"})", s.token).status, 200);
  EXPECT_EQ(s.send("DELETE", "/entity/" + s.other, "", s.token).status, 200);
  TestResponse made = s.ask("/entity/" + child + "/changes");
  EXPECT_EQ(kinds(made), "UPDATED CREATED ");
  EXPECT_EQ(made.body.array()[1].string_or("transactionId"), s.tx);
  EXPECT_EQ(kinds(s.ask("/entity/" + s.other + "/changes")), "DELETED CREATED ");
  // The waiting transition will change its entity.
  TestResponse own = s.ask("/entity/" + s.id + "/changes");
  EXPECT_EQ(kinds(own), "UPDATED CREATED ");
  EXPECT_EQ(own.body.array()[0].string_or("transactionId"), s.tx);
  EXPECT_EQ(own.body.array()[0].string_or("user"), "user");
  // A read at a time sees committed changes only.
  EXPECT_EQ(kinds(s.ask("/entity/" + s.id + "/changes?" + kLater)), "CREATED ");
  EXPECT_EQ(s.ask("/entity/" + child + "/changes?" + kLater).status, 404);
  EXPECT_EQ(kinds(s.send("GET", "/entity/" + s.other + "/changes")), "CREATED ");
  EXPECT_EQ(s.send("GET", "/entity/" + child + "/changes").status, 404);
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(kinds(s.send("GET", "/entity/" + child + "/changes")), "UPDATED CREATED ");
  EXPECT_EQ(kinds(s.send("GET", "/entity/" + s.id + "/changes")), "UPDATED CREATED ");
}

TEST(reads_in_transaction, the_audit_trail_includes_the_waiting_machine) {
  OpenTransaction s;
  std::string child = s.add(R"({"k":"child"})");
  EXPECT_EQ(kinds(s.ask("/audit/entity/" + child + "?eventType=StateMachine"), "eventType"),
            "STATE_MACHINE_FINISH WORKFLOW_FOUND STATE_MACHINE_START ");
  EXPECT_EQ(s.ask("/audit/entity/" + child + "/workflow/" + s.tx + "/finished").status, 200);
  EXPECT_EQ(s.send("GET", "/audit/entity/" + child).status, 404);
  std::string own = "/audit/entity/" + s.id + "?transactionId=" + s.tx;
  EXPECT_EQ(kinds(s.ask(own), "eventType"), " PAUSE_FOR_PROCESSING STATE_MACHINE_START ");
  EXPECT_EQ(kinds(s.ask(own), "changeType"), "UPDATED   ");
  EXPECT_EQ(s.ask("/audit/entity/" + s.id + "/workflow/" + s.tx + "/finished").status, 404);
  EXPECT_EQ(kinds(s.send("GET", own), "eventType"), "");
  s.answer();
  EXPECT_EQ(kinds(s.send("GET", own), "eventType"),
            " STATE_MACHINE_FINISH TRANSITION_MAKE STATE_PROCESS_RESULT PAUSE_FOR_PROCESSING "
            "STATE_MACHINE_START ");
}

TEST(reads_in_transaction, a_deleted_entity_is_not_changed_by_the_waiting_machine) {
  OpenTransaction s;
  EXPECT_EQ(s.send("DELETE", "/entity/" + s.id, "", s.token).status, 200);
  EXPECT_EQ(kinds(s.ask("/entity/" + s.id + "/changes")), "DELETED CREATED ");
  s.answer();
  EXPECT_EQ(kinds(s.send("GET", "/entity/" + s.id + "/changes")), "DELETED CREATED ");
}

TEST(reads_in_transaction, counts_and_groups_include_the_transaction) {
  OpenTransaction s;
  s.add(R"({"k":"child","n":7})");
  s.add(R"({"k":"child","n":9})");
  EXPECT_EQ(s.send("DELETE", "/entity/" + s.other, "", s.token).status, 200);
  EXPECT_EQ(s.count(s.token), 3);
  EXPECT_EQ(s.count({}), 2);
  EXPECT_EQ(s.ask("/entity/stats").body.array()[0].find("count")->as_int64(), 3);
  EXPECT_EQ(s.ask("/entity/stats/states").text,
            R"([{"modelName":"m","modelVersion":1,"state":"A","count":3}])");
  EXPECT_EQ(s.ask("/entity/stats/states/m/1?states=B").text, "[]");
  auto groups = [&](const std::string& more, const wire::Headers& headers) {
    return s.send("POST", "/entity/stats/m/1/query", kByState + more + "}", headers).text;
  };
  EXPECT_EQ(
      groups("", s.token),
      R"([{"groupKey":[{"path":"state","value":"A"}],"count":3,"aggregations":{"sum_n":18}}])");
  std::string others =
      R"(,"condition":{"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":"other"})";
  EXPECT_EQ(groups(others, s.token), "[]");
  EXPECT_NE(groups(others, {}).find("\"count\":1"), std::string::npos);
  EXPECT_NE(groups(R"(,"pointInTime":"2200-01-01T00:00:00Z")", s.token).find("\"count\":2"),
            std::string::npos);
  s.answer();
  EXPECT_EQ(s.count({}), 3);
  EXPECT_NE(s.send("GET", "/entity/stats/states/m/1").text.find(R"("state":"B","count":1)"),
            std::string::npos);
}

TEST(reads_in_transaction, reads_do_not_see_an_undone_savepoint) {
  OpenTransaction s("ASYNC_NEW_TX");
  std::string child = s.add("{}");
  EXPECT_EQ(s.count(s.token), 3);
  s.answer({.kind = CallResult::failed, .message = "no"});
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(s.count({}), 2);
  EXPECT_EQ(s.send("GET", "/entity/" + child + "/changes").status, 404);
}

TEST(reads_in_transaction, the_open_transaction_may_be_named) {
  OpenTransaction s;
  std::string child = s.add(R"({"k":"child"})");
  std::string first(s.send("GET", "/entity/" + s.id).body.find("meta")->string_or("transactionId"));
  auto seen = [&](const std::string& entity, const std::string& tx) {
    return s.ask("/entity/" + entity + "?transactionId=" + tx);
  };
  EXPECT_EQ(seen(child, s.tx).status, 200);
  EXPECT_NE(seen(s.id, s.tx).text.find("\"n\":2"), std::string::npos);
  EXPECT_NE(seen(s.id, first).text.find("\"n\":1"), std::string::npos);
  EXPECT_EQ(seen(s.other, s.tx).status, 404);
  EXPECT_EQ(s.ask("/entity/" + child + "/transitions?transactionId=" + s.tx).text, R"(["go"])");
  EXPECT_EQ(s.ask("/entity/" + s.other + "/transitions?transactionId=" + s.tx).status, 400);
  EXPECT_EQ(s.send("GET", "/entity/" + child + "?transactionId=" + s.tx).status, 404);
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
}

TEST(reads_in_transaction, a_conflict_comes_only_from_entities_that_were_shown) {
  const std::string wanted =
      R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":")";
  for (bool shown : {false, true}) {
    OpenTransaction s;
    EXPECT_EQ(
        s.send("POST", "/search/direct/m/1", wanted + (shown ? "other\"}" : "nobody\"}"), s.token)
            .status,
        200);
    EXPECT_EQ(s.send("POST", "/entity/stats/m/1/query", kByState + "}", s.token).status, 200);
    EXPECT_EQ(s.count(s.token), 2);
    EXPECT_EQ(s.send("PUT", "/entity/JSON/" + s.other, R"({"n":6})").status, 200);
    s.answer();
    EXPECT_EQ(s.waiting->status, shown ? 409 : 200) << s.waiting->text;
  }
}

TEST(transaction, all_writes_have_the_time_of_the_commit) {
  OpenTransaction s;
  std::string child = s.add(R"({"k":"child"})");
  EXPECT_EQ(s.send("DELETE", "/entity/" + s.other, "", s.token).status, 200);
  s.answer();
  std::string when(s.send("GET", "/entity/" + s.id).body.find("meta")->string_or("lastUpdateTime"));
  EXPECT_EQ(s.send("GET", "/entity/" + child).body.find("meta")->string_or("lastUpdateTime"), when);
  EXPECT_EQ(s.send("GET", "/entity/" + child + "?pointInTime=" + when).status, 200);
  EXPECT_EQ(
      s.send("GET", "/entity/" + s.other + "/changes").body.array()[0].string_or("timeOfChange"),
      when);
  EXPECT_EQ(s.send("GET", "/entity/" + s.other + "?pointInTime=" + when).status, 404);
}

TEST(transaction, the_items_of_a_collection_appear_together) {
  FaceFixture s;
  s.add_model();
  s.import_workflow(R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" +
                    processor("p", "SYNC") + R"(]}]},"B":{}})");
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"([{"n":1},{"n":2}])");
  for (size_t i : {0, 1})
    s.face->members().answered(member, fake->request(i), Call::processor, {});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  for (const json::Value& id : waiting->body.array()[0].find("entityIds")->array()) {
    std::string when(
        s.send("GET", "/entity/" + id.string()).body.find("meta")->string_or("lastUpdateTime"));
    EXPECT_EQ(s.send("GET", "/entity/" + id.string() + "?pointInTime=" + when).status, 200);
  }
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(reads_in_transaction, a_collection_is_written_as_a_whole) {
  OpenTransaction s;
  std::string many, mixed, updates;
  for (size_t i = 0; i < kDefaultWindow; ++i) {
    many += "{},";
    mixed += R"({"model":{"name":"m","version":1},"payload":"{}"},)";
  }
  for (int i = 0; i < 101; ++i)
    updates += R"({"id":")" + s.other + R"(","payload":"{\"n\":1}"},)";
  struct Route {
    std::string method, path, good, bad;
  };
  for (const Route& route :
       {Route{"POST", "/entity/JSON/m/1", "[" + many + "{}]", "[" + many + R"({"zz":1}])"},
        Route{"POST", "/entity/JSON",
              "[" + mixed + R"({"model":{"name":"m","version":1},"payload":"{}"}])",
              "[" + mixed + R"({"model":{"name":"no","version":1},"payload":"{}"}])"},
        Route{"PUT", "/entity/JSON", "[" + updates.substr(0, updates.size() - 1) + "]",
              "[" + updates + R"({"id":")" + s.id + R"(","payload":"{\"zz\":1}"}])"}}) {
    int64_t before = s.count(s.token);
    TestResponse refused = s.send(route.method, route.path, route.bad, s.token);
    EXPECT_GE(refused.status, 400) << refused.text;
    EXPECT_EQ(s.count(s.token), before);
    TestResponse windowed =
        s.send(route.method, route.path + "?transactionWindow=10", route.good, s.token);
    EXPECT_EQ(windowed.status, 400) << windowed.text;
    EXPECT_EQ(windowed.code(), "BAD_REQUEST");
    TestResponse whole = s.send(route.method, route.path, route.good, s.token);
    EXPECT_EQ(whole.status, 200) << whole.text;
    EXPECT_EQ(whole.body.array().size(), 1u);
  }
  EXPECT_EQ(s.count(s.token), 2 + 2 * 101);
  EXPECT_EQ(kinds(s.ask("/entity/" + s.other + "/changes?" + kLater)), "CREATED ");
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(s.count({}), 2 + 2 * 101);
}

TEST(transaction, entities_changed_since_it_began_are_conflicts) {
  enum Does { updates, gets, lists, lists_others, removes_all };
  for (Does does : {updates, gets, lists, lists_others, removes_all}) {
    OpenTransaction s;
    std::string last =
        s.send("GET", "/entity/m/1").body.array().back().find("meta")->string_or("id") == s.other
            ? s.other
            : s.id;
    ASSERT_EQ(last, s.other);  // ids are in the order of creation
    EXPECT_EQ(s.send("PUT", "/entity/JSON/" + s.other, R"({"k":"rival"})").status, 200);
    switch (does) {
      case updates:
        EXPECT_EQ(s.send("PUT", "/entity/JSON/" + s.other, R"({"k":"late"})", s.token).status, 200);
        break;
      case gets: EXPECT_EQ(s.ask("/entity/" + s.other).status, 200); break;
      case lists: EXPECT_EQ(s.ask("/entity/m/1").body.array().size(), 2u); break;
      case lists_others: EXPECT_EQ(s.ask("/entity/m/1?pageSize=1").body.array().size(), 1u); break;
      case removes_all: EXPECT_EQ(s.send("DELETE", "/entity/m/1", "", s.token).status, 200); break;
    }
    s.answer();
    EXPECT_EQ(s.waiting->status, does == lists_others ? 200 : 409) << does << s.waiting->text;
    EXPECT_EQ(s.data(s.other), R"({"k":"rival"})");
  }
}

TEST(transaction, entities_created_since_it_began_are_not_listed) {
  OpenTransaction s;
  std::string later = s.create(R"({"k":"later"})");
  EXPECT_EQ(s.ask("/entity/m/1").body.array().size(), 2u);
  EXPECT_EQ(s.send("POST", "/search/m/1",
                   R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":"later"})",
                   s.token)
                .text,
            "[]");
  // The same holds when the frame is repeated later.
  TestResponse removed = s.send(
      "DELETE", "/entity/m/1",
      R"({"type":"simple","jsonPath":"$.k","operatorType":"NOT_EQUAL","value":"a"})", s.token);
  EXPECT_EQ(removed.status, 200) << removed.text;
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(s.send("GET", "/entity/" + s.other).status, 404);
  EXPECT_EQ(s.data(later), R"({"k":"later"})");
}

TEST(reads_in_transaction, an_ended_token_is_a_conflict_on_every_route) {
  OpenTransaction s;
  s.answer();
  for (std::string path :
       {"/entity/" + s.id, "/entity/" + s.id + "?" + kLater, "/entity/" + s.id + "/changes",
        "/entity/" + s.id + "/changes?" + kLater, "/entity/m/1?" + kLater, "/audit/entity/" + s.id,
        std::string("/entity/stats"), std::string("/entity/stats/states"),
        std::string("/model/")}) {
    TestResponse h = s.ask(path);
    EXPECT_EQ(h.status, 409) << path;
    EXPECT_EQ(h.code(), "CONFLICT");
  }
  EXPECT_EQ(s.send("POST", "/entity/stats/m/1/query", kByState + "}", s.token).status, 409);
}

}  // namespace pawl::entities
