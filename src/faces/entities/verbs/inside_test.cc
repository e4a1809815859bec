#include <fmt/format.h>

#include "faces/entities/stage_test.h"

// Reads inside an open transaction.

namespace pawl::entities {

namespace {

// One member, one entity whose transition waits for it, and the token of that transaction.
struct Inside : Stage {
  explicit Inside(const std::string& mode = "SYNC") {
    model();
    processors(processor("p", mode));
    member = join(script);
    id = create();
    other = create(R"({"k":"other","n":5})");
    waiting = begin("PUT", "/entity/JSON/" + id + "/go", R"({"k":"a","n":2})");
    token = {{"X-Tx-Token", script->token(0)}};
    tx = std::string(script->calls()[0].string_or("transactionId"));
  }
  Heard ask(const std::string& target) { return say("GET", target, "", token); }
  std::string add(const std::string& body) {
    Heard h = say("POST", "/entity/JSON/m/1", body, token);
    EXPECT_EQ(h.status, 200) << h.text;
    return h.body.array()[0].find("entityIds")->array()[0].string();
  }
  void answer(Verdict verdict = {}) {
    face->members().answered(member, script->request(0), Call::processor, std::move(verdict));
    EXPECT_EQ(kernel.verify(), "");
  }
  int64_t count(const wire::Headers& headers) {
    return say("GET", "/entity/stats/m/1", "", headers).body.find("count")->as_int64().value_or(-1);
  }

  std::shared_ptr<Script> script = std::make_shared<Script>();
  std::string member, id, other, tx;
  HeardPtr waiting;
  wire::Headers token;
};

std::string kinds(const Heard& heard, std::string_view name = "changeType") {
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

TEST(inside, changes_are_those_that_the_transaction_has_made_too) {
  Inside s;
  std::string child = s.add(R"({"k":"child"})");
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + child, R"({"k":"again"})", s.token).status, 200);
  EXPECT_EQ(s.say("DELETE", "/entity/" + s.other, "", s.token).status, 200);
  Heard made = s.ask("/entity/" + child + "/changes");
  EXPECT_EQ(kinds(made), "UPDATED CREATED ");
  EXPECT_EQ(made.body.array()[1].string_or("transactionId"), s.tx);
  EXPECT_EQ(kinds(s.ask("/entity/" + s.other + "/changes")), "DELETED CREATED ");
  // The entity in hand is changed by what waits.
  Heard own = s.ask("/entity/" + s.id + "/changes");
  EXPECT_EQ(kinds(own), "UPDATED CREATED ");
  EXPECT_EQ(own.body.array()[0].string_or("transactionId"), s.tx);
  EXPECT_EQ(own.body.array()[0].string_or("user"), "user");
  // A time is what is committed.
  EXPECT_EQ(kinds(s.ask("/entity/" + s.id + "/changes?" + kLater)), "CREATED ");
  EXPECT_EQ(s.ask("/entity/" + child + "/changes?" + kLater).status, 404);
  EXPECT_EQ(kinds(s.say("GET", "/entity/" + s.other + "/changes")), "CREATED ");
  EXPECT_EQ(s.say("GET", "/entity/" + child + "/changes").status, 404);
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(kinds(s.say("GET", "/entity/" + child + "/changes")), "UPDATED CREATED ");
  EXPECT_EQ(kinds(s.say("GET", "/entity/" + s.id + "/changes")), "UPDATED CREATED ");
}

TEST(inside, the_audit_trail_has_what_the_machine_has_done_so_far) {
  Inside s;
  std::string child = s.add(R"({"k":"child"})");
  EXPECT_EQ(kinds(s.ask("/audit/entity/" + child + "?eventType=StateMachine"), "eventType"),
            "STATE_MACHINE_FINISH WORKFLOW_FOUND STATE_MACHINE_START ");
  EXPECT_EQ(s.ask("/audit/entity/" + child + "/workflow/" + s.tx + "/finished").status, 200);
  EXPECT_EQ(s.say("GET", "/audit/entity/" + child).status, 404);
  std::string own = "/audit/entity/" + s.id + "?transactionId=" + s.tx;
  EXPECT_EQ(kinds(s.ask(own), "eventType"), " PAUSE_FOR_PROCESSING STATE_MACHINE_START ");
  EXPECT_EQ(kinds(s.ask(own), "changeType"), "UPDATED   ");
  EXPECT_EQ(s.ask("/audit/entity/" + s.id + "/workflow/" + s.tx + "/finished").status, 404);
  EXPECT_EQ(kinds(s.say("GET", own), "eventType"), "");
  s.answer();
  EXPECT_EQ(kinds(s.say("GET", own), "eventType"),
            " STATE_MACHINE_FINISH TRANSITION_MAKE STATE_PROCESS_RESULT PAUSE_FOR_PROCESSING "
            "STATE_MACHINE_START ");
}

TEST(inside, an_entity_that_a_callback_has_deleted_was_not_changed_by_what_waits) {
  Inside s;
  EXPECT_EQ(s.say("DELETE", "/entity/" + s.id, "", s.token).status, 200);
  EXPECT_EQ(kinds(s.ask("/entity/" + s.id + "/changes")), "DELETED CREATED ");
  s.answer();
  EXPECT_EQ(kinds(s.say("GET", "/entity/" + s.id + "/changes")), "DELETED CREATED ");
}

TEST(inside, counts_and_groups_are_those_of_the_transaction) {
  Inside s;
  s.add(R"({"k":"child","n":7})");
  s.add(R"({"k":"child","n":9})");
  EXPECT_EQ(s.say("DELETE", "/entity/" + s.other, "", s.token).status, 200);
  EXPECT_EQ(s.count(s.token), 3);
  EXPECT_EQ(s.count({}), 2);
  EXPECT_EQ(s.ask("/entity/stats").body.array()[0].find("count")->as_int64(), 3);
  EXPECT_EQ(s.ask("/entity/stats/states").text,
            R"([{"modelName":"m","modelVersion":1,"state":"A","count":3}])");
  EXPECT_EQ(s.ask("/entity/stats/states/m/1?states=B").text, "[]");
  auto groups = [&](const std::string& more, const wire::Headers& headers) {
    return s.say("POST", "/entity/stats/m/1/query", kByState + more + "}", headers).text;
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
  EXPECT_NE(s.say("GET", "/entity/stats/states/m/1").text.find(R"("state":"B","count":1)"),
            std::string::npos);
}

TEST(inside, what_a_failed_savepoint_undid_is_in_no_read) {
  Inside s("ASYNC_NEW_TX");
  std::string child = s.add("{}");
  EXPECT_EQ(s.count(s.token), 3);
  s.answer({.kind = Verdict::failed, .message = "no"});
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(s.count({}), 2);
  EXPECT_EQ(s.say("GET", "/entity/" + child + "/changes").status, 404);
}

TEST(inside, the_own_transaction_may_be_named) {
  Inside s;
  std::string child = s.add(R"({"k":"child"})");
  std::string first(s.say("GET", "/entity/" + s.id).body.find("meta")->string_or("transactionId"));
  auto seen = [&](const std::string& entity, const std::string& tx) {
    return s.ask("/entity/" + entity + "?transactionId=" + tx);
  };
  EXPECT_EQ(seen(child, s.tx).status, 200);
  EXPECT_NE(seen(s.id, s.tx).text.find("\"n\":2"), std::string::npos);
  EXPECT_NE(seen(s.id, first).text.find("\"n\":1"), std::string::npos);
  EXPECT_EQ(seen(s.other, s.tx).status, 404);
  EXPECT_EQ(s.ask("/entity/" + child + "/transitions?transactionId=" + s.tx).text, R"(["go"])");
  EXPECT_EQ(s.ask("/entity/" + s.other + "/transitions?transactionId=" + s.tx).status, 400);
  EXPECT_EQ(s.say("GET", "/entity/" + child + "?transactionId=" + s.tx).status, 404);
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
}

TEST(inside, a_transaction_stands_on_what_a_search_showed_it_and_on_no_more) {
  const std::string wanted =
      R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":")";
  for (bool shown : {false, true}) {
    Inside s;
    EXPECT_EQ(
        s.say("POST", "/search/direct/m/1", wanted + (shown ? "other\"}" : "nobody\"}"), s.token)
            .status,
        200);
    EXPECT_EQ(s.say("POST", "/entity/stats/m/1/query", kByState + "}", s.token).status, 200);
    EXPECT_EQ(s.count(s.token), 2);
    EXPECT_EQ(s.say("PUT", "/entity/JSON/" + s.other, R"({"n":6})").status, 200);
    s.answer();
    EXPECT_EQ(s.waiting->status, shown ? 409 : 200) << s.waiting->text;
  }
}

TEST(transaction, everything_it_wrote_is_there_from_the_time_of_its_commit) {
  Inside s;
  std::string child = s.add(R"({"k":"child"})");
  EXPECT_EQ(s.say("DELETE", "/entity/" + s.other, "", s.token).status, 200);
  s.answer();
  std::string when(s.say("GET", "/entity/" + s.id).body.find("meta")->string_or("lastUpdateTime"));
  EXPECT_EQ(s.say("GET", "/entity/" + child).body.find("meta")->string_or("lastUpdateTime"), when);
  EXPECT_EQ(s.say("GET", "/entity/" + child + "?pointInTime=" + when).status, 200);
  EXPECT_EQ(
      s.say("GET", "/entity/" + s.other + "/changes").body.array()[0].string_or("timeOfChange"),
      when);
  EXPECT_EQ(s.say("GET", "/entity/" + s.other + "?pointInTime=" + when).status, 404);
}

TEST(transaction, the_items_of_a_collection_are_there_together) {
  Stage s;
  s.model();
  s.flow(R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" + processor("p", "SYNC") +
         R"(]}]},"B":{}})");
  auto script = std::make_shared<Script>();
  std::string member = s.join(script);
  HeardPtr waiting = s.begin("POST", "/entity/JSON/m/1", R"([{"n":1},{"n":2}])");
  for (size_t i : {0, 1})
    s.face->members().answered(member, script->request(i), Call::processor, {});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  for (const json::Value& id : waiting->body.array()[0].find("entityIds")->array()) {
    std::string when(
        s.say("GET", "/entity/" + id.string()).body.find("meta")->string_or("lastUpdateTime"));
    EXPECT_EQ(s.say("GET", "/entity/" + id.string() + "?pointInTime=" + when).status, 200);
  }
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(inside, a_collection_is_written_as_a_whole) {
  Inside s;
  std::string many, mixed, updates;
  for (size_t i = 0; i < kWindow; ++i) {
    many += "{},";
    mixed += R"({"model":{"name":"m","version":1},"payload":"{}"},)";
  }
  for (int i = 0; i < 101; ++i)
    updates += R"({"id":")" + s.other + R"(","payload":"{\"n\":1}"},)";
  struct KernelAccess {
    std::string method, path, good, bad;
  };
  for (const KernelAccess& kernel :
       {KernelAccess{"POST", "/entity/JSON/m/1", "[" + many + "{}]", "[" + many + R"({"zz":1}])"},
        KernelAccess{"POST", "/entity/JSON",
                     "[" + mixed + R"({"model":{"name":"m","version":1},"payload":"{}"}])",
                     "[" + mixed + R"({"model":{"name":"no","version":1},"payload":"{}"}])"},
        KernelAccess{"PUT", "/entity/JSON", "[" + updates.substr(0, updates.size() - 1) + "]",
                     "[" + updates + R"({"id":")" + s.id + R"(","payload":"{\"zz\":1}"}])"}}) {
    int64_t before = s.count(s.token);
    Heard refused = s.say(kernel.method, kernel.path, kernel.bad, s.token);
    EXPECT_GE(refused.status, 400) << refused.text;
    EXPECT_EQ(s.count(s.token), before);
    Heard windowed =
        s.say(kernel.method, kernel.path + "?transactionWindow=10", kernel.good, s.token);
    EXPECT_EQ(windowed.status, 400) << windowed.text;
    EXPECT_EQ(windowed.code(), "BAD_REQUEST");
    Heard whole = s.say(kernel.method, kernel.path, kernel.good, s.token);
    EXPECT_EQ(whole.status, 200) << whole.text;
    EXPECT_EQ(whole.body.array().size(), 1u);
  }
  EXPECT_EQ(s.count(s.token), 2 + 2 * 101);
  EXPECT_EQ(kinds(s.ask("/entity/" + s.other + "/changes?" + kLater)), "CREATED ");
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(s.count({}), 2 + 2 * 101);
}

TEST(transaction, what_others_committed_since_it_began_is_a_conflict_when_it_is_read_or_written) {
  enum Does { updates, gets, lists, lists_others, removes_all };
  for (Does does : {updates, gets, lists, lists_others, removes_all}) {
    Inside s;
    std::string last =
        s.say("GET", "/entity/m/1").body.array().back().find("meta")->string_or("id") == s.other
            ? s.other
            : s.id;
    ASSERT_EQ(last, s.other);  // ids are in the order of their making
    EXPECT_EQ(s.say("PUT", "/entity/JSON/" + s.other, R"({"k":"rival"})").status, 200);
    switch (does) {
      case updates:
        EXPECT_EQ(s.say("PUT", "/entity/JSON/" + s.other, R"({"k":"late"})", s.token).status, 200);
        break;
      case gets: EXPECT_EQ(s.ask("/entity/" + s.other).status, 200); break;
      case lists: EXPECT_EQ(s.ask("/entity/m/1").body.array().size(), 2u); break;
      case lists_others: EXPECT_EQ(s.ask("/entity/m/1?pageSize=1").body.array().size(), 1u); break;
      case removes_all: EXPECT_EQ(s.say("DELETE", "/entity/m/1", "", s.token).status, 200); break;
    }
    s.answer();
    EXPECT_EQ(s.waiting->status, does == lists_others ? 200 : 409) << does << s.waiting->text;
    EXPECT_EQ(s.data(s.other), R"({"k":"rival"})");
  }
}

TEST(transaction, what_others_created_since_it_began_is_in_none_of_its_lists) {
  Inside s;
  std::string later = s.create(R"({"k":"later"})");
  EXPECT_EQ(s.ask("/entity/m/1").body.array().size(), 2u);
  EXPECT_EQ(s.say("POST", "/search/m/1",
                  R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":"later"})",
                  s.token)
                .text,
            "[]");
  // Nor when the frame is run again, which is after that.
  Heard removed = s.say(
      "DELETE", "/entity/m/1",
      R"({"type":"simple","jsonPath":"$.k","operatorType":"NOT_EQUAL","value":"a"})", s.token);
  EXPECT_EQ(removed.status, 200) << removed.text;
  s.answer();
  EXPECT_EQ(s.waiting->status, 200) << s.waiting->text;
  EXPECT_EQ(s.say("GET", "/entity/" + s.other).status, 404);
  EXPECT_EQ(s.data(later), R"({"k":"later"})");
}

TEST(inside, a_token_that_is_over_is_a_conflict_whatever_is_asked) {
  Inside s;
  s.answer();
  for (std::string path :
       {"/entity/" + s.id, "/entity/" + s.id + "?" + kLater, "/entity/" + s.id + "/changes",
        "/entity/" + s.id + "/changes?" + kLater, "/entity/m/1?" + kLater, "/audit/entity/" + s.id,
        std::string("/entity/stats"), std::string("/entity/stats/states"),
        std::string("/model/")}) {
    Heard h = s.ask(path);
    EXPECT_EQ(h.status, 409) << path;
    EXPECT_EQ(h.code(), "CONFLICT");
  }
  EXPECT_EQ(s.say("POST", "/entity/stats/m/1/query", kByState + "}", s.token).status, 409);
}

}  // namespace pawl::entities
