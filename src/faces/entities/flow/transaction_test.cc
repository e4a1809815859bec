#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

// Opens a transaction, writes `inside` with its token, calls `meanwhile` and lets the transaction
// end. Returns the status of its answer.
int after_model_change(const std::string& inside,
                       const std::function<void(FaceFixture&)>& meanwhile) {
  FaceFixture s;
  s.add_model();
  EXPECT_EQ(s.send("POST", "/model/m/1/changeLevel/TYPE").status, 200);
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.send("POST", "/entity/JSON/m/1", inside, {{"X-Tx-Token", fake->token(0)}});
  meanwhile(s);
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(s.kernel.verify(), "");
  EXPECT_EQ(s.state(id), waiting->status == 200 ? "B" : "A");
  return waiting->status;
}

TEST(transaction, a_model_that_only_grew_is_no_conflict) {
  auto grow = [](FaceFixture& s) {
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"k":1.5})").status, 200);
  };
  auto index = [](FaceFixture& s) {
    EXPECT_EQ(s.send("PUT", "/model/m/1/indexes", R"({"fields":["$.k"]})").status, 200);
  };
  EXPECT_EQ(after_model_change(R"({"k":"child"})", grow), 200);
  EXPECT_EQ(after_model_change(R"({"k":"child"})", index), 200);
  EXPECT_EQ(after_model_change(
                R"({"k":"child"})",
                [](FaceFixture& s) {
                  EXPECT_EQ(s.send("POST", "/model/m/1/changeLevel/STRUCTURAL").status, 200);
                }),
            200);
  // The transaction refuses by the model that it began with. When it has grown the model too, or
  // there are new unique keys, it conflicts.
  EXPECT_EQ(after_model_change(R"({"new":1})", grow), 200);
  EXPECT_EQ(after_model_change(R"({"n":"text"})", grow), 409);
  EXPECT_EQ(after_model_change(R"({"k":"child"})",
                               [](FaceFixture& s) {
                                 EXPECT_EQ(s.send("PUT", "/model/m/1/unique-keys",
                                                  R"({"uniqueKeys":[{"id":"u","fields":["$.k"]}]})")
                                               .status,
                                           200);
                               }),
            409);
}

TEST(transaction, an_imported_workflow_applies_to_later_transactions) {
  auto replace = [](FaceFixture& s) {
    s.import_workflow(R"({"A":{"transitions":[{"name":"away","next":"C","manual":true}]},"C":{}})");
  };
  auto first = [](FaceFixture& s) {
    EXPECT_EQ(
        s.send("POST", "/model/m/1/workflow/import", R"({"importMode":"REPLACE","workflows":[]})")
            .status,
        200);
  };
  EXPECT_EQ(after_model_change(R"({"k":"child"})", replace), 200);
  EXPECT_EQ(after_model_change(R"({"k":"child"})", first), 200);
}

TEST(transaction, an_index_declared_meanwhile_finds_what_it_saves) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create(R"({"k":"old"})"),
              gone = s.create(R"({"k":"gone"})");
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"k":"new"})");
  wire::Headers token{{"X-Tx-Token", fake->token(0)}};
  EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"k":"child"})", token).status, 200);
  EXPECT_EQ(s.send("DELETE", "/entity/" + gone, "", token).status, 200);
  EXPECT_EQ(s.send("PUT", "/model/m/1/indexes", R"({"fields":["$.k"]})").status, 200);
  s.wait_for_indexes();
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  auto plan = [&](const std::string& k) {
    return s
        .send("POST", "/search/direct/m/1?explain=true",
              R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":")" + k + "\"}")
        .text;
  };
  EXPECT_EQ(plan("new"), R"({"index":"$.k","rowsRead":1,"matched":1,"access":"INDEX"})");
  EXPECT_EQ(plan("child"), R"({"index":"$.k","rowsRead":1,"matched":1,"access":"INDEX"})");
  for (std::string k : {"old", "gone"})
    EXPECT_EQ(plan(k), R"({"index":"$.k","rowsRead":0,"matched":0,"access":"INDEX"})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, an_entity_deleted_by_its_callback_stays_deleted) {
  for (const char* mode : {"SYNC", "ASYNC_SAME_TX", "ASYNC_NEW_TX", "COMMIT_BEFORE_DISPATCH"}) {
    FaceFixture s;
    s.add_model();
    const std::string more =
        std::string_view(mode) == "COMMIT_BEFORE_DISPATCH" ? R"(,"startNewTxOnDispatch":true)" : "";
    s.import_processors(processor("p", mode, more) + "," + processor("never", mode, more));
    auto fake = std::make_shared<FakeMember>();
    std::string member = s.join(fake), id = s.create();
    TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
    wire::Headers token{{"X-Tx-Token", fake->token(0)}};
    EXPECT_EQ(s.send("DELETE", "/entity/" + id, "", token).status, 200);
    EXPECT_EQ(s.send("GET", "/entity/" + id).status, 200) << "only when the transaction commits";
    s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
    EXPECT_EQ(waiting->status, 200) << mode << waiting->text;
    EXPECT_EQ(waiting->body.find("entityIds")->array()[0].string(), id);
    EXPECT_EQ(fake->calls().size(), 1u) << "nothing more is asked for it";
    EXPECT_EQ(s.send("GET", "/entity/" + id).status, 404) << mode;
    EXPECT_EQ(s.send("GET", "/entity/" + id + "/changes").body.array()[0].string_or("changeType"),
              "DELETED");
    EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
    TestResponse trail = s.send("GET", "/audit/entity/" + id + "?eventType=StateMachine");
    EXPECT_EQ(trail.body.find("items")->array()[0].string_or("eventType"), "STATE_MACHINE_FINISH")
        << trail.text;
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(transaction, a_failed_savepoint_undoes_a_deletion) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "ASYNC_NEW_TX"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(s.send("DELETE", "/entity/" + id, "", {{"X-Tx-Token", fake->token(0)}}).status, 200);
  s.face->members().answered(member, fake->request(0), Call::processor,
                             {.kind = CallResult::failed, .message = "no"});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":2})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, a_new_entity_deleted_by_a_callback_never_existed) {
  FaceFixture s;
  s.add_model();
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" + processor("p", "SYNC") +
      R"(]}]},"B":{"transitions":[{"name":"u","next":"C","criterion":)" +
      R"({"type":"function","function":{"name":"f","config":{"calculationNodesTags":"x"}}}}]},"C":{}})");
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  std::string id(fake->calls()[1].string_or("entityId"));
  EXPECT_EQ(s.send("DELETE", "/entity/" + id, "", {{"X-Tx-Token", fake->token(1)}}).status, 200);
  s.face->members().answered(member, fake->request(1), Call::criterion, {.matches = true});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.send("GET", "/entity/" + id).status, 404);
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, a_criterion_callback_sees_the_entity_and_is_undone_on_failure) {
  FaceFixture s;
  s.add_model();
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" + processor("p", "SYNC") +
      R"(]}]},"B":{"transitions":[{"name":"u","next":"C","criterion":)" +
      R"({"type":"function","function":{"name":"f","config":{"calculationNodesTags":"x","retryPolicy":"FIXED"}}}}]},"C":{}})");
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":2})"});
  std::string id(fake->calls()[1].string_or("entityId"));
  wire::Headers first{{"X-Tx-Token", fake->token(1)}};
  TestResponse seen = s.send("GET", "/entity/" + id, "", first);
  ASSERT_EQ(seen.status, 200) << seen.text;
  EXPECT_EQ(seen.body.find("meta")->string_or("state"), "B");
  EXPECT_EQ(json::print(*seen.body.find("data")), R"({"n":2})");
  // The writes of the failed attempt are undone.
  EXPECT_EQ(s.send("DELETE", "/entity/" + id, "", first).status, 200);
  s.face->members().answered(member, fake->request(1), Call::criterion,
                             {.kind = CallResult::failed, .message = "not now"});
  s.wait_until([&] { return fake->calls().size() >= 3; });
  ASSERT_EQ(fake->calls().size(), 3u);
  EXPECT_EQ(fake->request(2), fake->request(1));
  s.face->members().answered(member, fake->request(2), Call::criterion, {.matches = true});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.state(id), "C");
  EXPECT_EQ(s.data(id), R"({"n":2})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, a_token_joins_only_while_its_call_is_open) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  wire::Headers token{{"X-Tx-Token", fake->token(0)}};
  TestResponse made = s.send("POST", "/entity/JSON/m/1", R"({"k":"child"})", token);
  ASSERT_EQ(made.status, 200) << made.text;
  std::string child = made.body.array()[0].find("entityIds")->array()[0].string();
  EXPECT_EQ(s.send("GET", "/entity/" + child).status, 404);
  EXPECT_EQ(s.send("GET", "/entity/" + child, "", token).status, 200);
  EXPECT_NE(s.send("GET", "/entity/" + id, "", token).text.find("\"n\":2"), std::string::npos);
  EXPECT_EQ(s.send("GET", "/entity/" + child, "", token, "another").status, 409);
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + child, R"({"zz":1})", token).status, 400);
  EXPECT_NE(
      s.send("POST", "/search/direct/m/1",
             R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":"child"})", token)
          .text.find(child),
      std::string::npos);
  EXPECT_EQ(s.send("GET", "/entity/m/1", "", token).body.array().size(), 2u);
  EXPECT_EQ(s.send("GET", "/entity/m/1?pageSize=1&pageNumber=1", "", token).body.array().size(),
            1u);
  EXPECT_EQ(s.send("GET", "/entity/m/1").body.array().size(), 1u);
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.data(child), R"({"k":"child"})");
  EXPECT_EQ(s.send("GET", "/entity/" + child, "", token).status, 409);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, a_failed_savepoint_undoes_only_its_callbacks) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "ASYNC_NEW_TX") + "," + processor("q", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  TestResponse made =
      s.send("POST", "/entity/JSON/m/1", R"({"k":"child"})", {{"X-Tx-Token", fake->token(0)}});
  std::string child = made.body.array()[0].find("entityIds")->array()[0].string();
  s.face->members().answered(member, fake->request(0), Call::processor,
                             {.kind = CallResult::failed, .message = "undo"});
  s.face->members().answered(member, fake->request(1), Call::processor, {.data = R"({"n":5})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.send("GET", "/entity/" + child).status, 404);
  EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":5})");
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 1);
  EXPECT_EQ(s.kernel.verify(), "");
}

}  // namespace
}  // namespace pawl::entities
