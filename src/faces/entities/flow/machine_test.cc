#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

TEST(machine, other_entities_are_written_while_a_processor_runs) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), first = s.create(), second = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + first + "/go", R"({"n":2})");
  EXPECT_EQ(waiting->status, 0);
  EXPECT_EQ(s.kernel.open_turns(), 1u);
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + second, R"({"n":9})").status, 200);
  EXPECT_EQ(s.data(first), R"({"k":"a","n":1})");
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.state(first) + s.data(first), R"(B{"n":3})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(machine, criteria_see_the_requested_transition) {
  FaceFixture s;
  s.add_model();
  auto asks = [](const std::string& name) {
    return R"("criterion":{"type":"lifecycle","field":"previousTransition","operatorType":"EQUALS","value":")" +
           name + "\"}";
  };
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"first","next":"B",)" + asks("") +
      R"(}]},"B":{"transitions":[{"name":"never","next":"X",)" + asks("loopback") +
      R"(},{"name":"go","next":"C","manual":true}]},"C":{"transitions":[{"name":"second","next":"D",)" +
      asks("go") + R"(}]},"D":{},"X":{}})");
  std::string id = s.create();
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":2})").status, 200);
  TestResponse h = s.send("GET", "/entity/" + id);
  EXPECT_EQ(h.body.find("meta")->string_or("transitionForLatestSave"), "loopback");
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id + "/go", R"({"n":3})").status, 200);
  EXPECT_EQ(s.state(id), "D");
}

TEST(machine, the_first_writer_wins) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":7})").status, 200);
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 409);
  EXPECT_EQ(waiting->code(), "CONFLICT");
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":7})");
}

TEST(dispatch, the_first_transaction_is_durable_before_the_member_is_called) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "COMMIT_BEFORE_DISPATCH"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":2})");
  EXPECT_EQ(s.kernel.open_turns(), 0u);
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":3})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(dispatch, a_repetition_with_the_same_key_gets_the_answer_of_the_second_transaction) {
  for (const char* fresh : {"false", "true"}) {
    FaceFixture s;
    s.add_model();
    s.import_processors(processor("p", "COMMIT_BEFORE_DISPATCH",
                                  std::string(R"(,"startNewTxOnDispatch":)") + fresh));
    auto fake = std::make_shared<FakeMember>();
    std::string member = s.join(fake), id = s.create();
    const wire::Headers key{{"Idempotency-Key", "k1"}};
    const std::string path = "/entity/JSON/" + id + "/go";
    TestResponsePtr first = s.start("PUT", path, R"({"n":2})", key);
    TestResponsePtr second = s.start("PUT", path, R"({"n":2})", key);
    EXPECT_EQ(fake->calls().size(), 1u);
    EXPECT_EQ(second->status, 0) << second->text;
    s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
    EXPECT_EQ(first->status, 200) << first->text;
    EXPECT_EQ(second->text, first->text);
    EXPECT_EQ(s.send("PUT", path, R"({"n":2})", key).text, first->text);
    EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":3})");
    EXPECT_EQ(fake->calls().size(), 1u);
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(dispatch, a_repetition_after_a_failed_processor_runs_again) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "COMMIT_BEFORE_DISPATCH"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  const wire::Headers key{{"Idempotency-Key", "k1"}};
  const std::string path = "/entity/JSON/" + id + "/go";
  TestResponsePtr first = s.start("PUT", path, R"({"n":2})", key);
  TestResponsePtr second = s.start("PUT", path, R"({"n":2})", key);
  s.face->members().answered(member, fake->request(0), Call::processor,
                             {.kind = CallResult::failed, .message = "no luck"});
  EXPECT_EQ(first->code(), "WORKFLOW_FAILED") << first->text;
  EXPECT_EQ(second->code(), "WORKFLOW_FAILED") << second->text;
  TestResponsePtr third = s.start("PUT", path, R"({"n":2})", key);
  ASSERT_EQ(fake->calls().size(), 2u);
  s.face->members().answered(member, fake->request(1), Call::processor, {});
  EXPECT_EQ(third->status, 200) << third->text;
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(dispatch, a_joined_write_cannot_commit_before_dispatch) {
  for (const char* fresh : {"false", "true"}) {
    FaceFixture s;
    s.add_model();
    std::string commits = processor("q", "COMMIT_BEFORE_DISPATCH",
                                    std::string(R"(,"startNewTxOnDispatch":)") + fresh);
    s.import_workflow(
        R"({"A":{"transitions":[{"name":"outer","next":"B","manual":true,"processors":[)" +
        processor("p", "SYNC") + R"(]},{"name":"inner","next":"B","manual":true,"processors":[)" +
        commits + R"(]}]},"B":{}})");
    auto fake = std::make_shared<FakeMember>();
    std::string member = s.join(fake), first = s.create(), second = s.create();
    TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + first + "/outer", R"({"n":2})");
    wire::Headers token{{"X-Tx-Token", fake->token(0)}};
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"k":"child"})", token).status, 200);
    TestResponse refused = s.send("PUT", "/entity/JSON/" + second + "/inner", R"({"n":3})", token);
    EXPECT_EQ(std::to_string(refused.status) + refused.code(), "409COMMIT_IN_JOINED_TRANSACTION")
        << refused.text;
    EXPECT_EQ(refused.text.find("retryable"), std::string::npos);
    EXPECT_EQ(fake->calls().size(), 1u);
    EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 2);
    s.face->members().answered(member, fake->request(0), Call::processor, {});
    EXPECT_EQ(waiting->status, 200) << waiting->text;
    EXPECT_EQ(s.state(first) + s.state(second) + s.data(second), R"(BA{"k":"a","n":1})");
    EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 3);
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(dispatch, a_write_between_the_transactions_is_a_conflict) {
  for (const char* fresh : {"false", "true"}) {
    FaceFixture s;
    s.add_model();
    s.import_processors(processor("p", "COMMIT_BEFORE_DISPATCH",
                                  std::string(R"(,"startNewTxOnDispatch":)") + fresh));
    auto fake = std::make_shared<FakeMember>();
    std::string member = s.join(fake), id = s.create();
    TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
    EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":7})").status, 200);
    s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
    EXPECT_EQ(waiting->status, 409) << fresh;
    EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":7})");
    EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":8})").status, 200);
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(dispatch, a_collection_continues_in_the_second_transaction) {
  FaceFixture s;
  s.add_model();
  s.import_workflow(R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" +
                    processor("p", "COMMIT_BEFORE_DISPATCH") + R"(]}]},"B":{}})");
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"([{"n":1},{"n":2}])");
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 0);
  s.face->members().answered(member, fake->request(1), Call::processor, {});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(waiting->body.array()[0].find("entityIds")->array().size(), 2u);
  EXPECT_EQ(s.send("GET", "/entity/stats/states/m/1").text,
            R"([{"modelName":"m","modelVersion":1,"state":"B","count":2}])");
  EXPECT_EQ(s.kernel.verify(), "");
}

// Answers the call of the processor with a document that has a field of its own.
std::pair<TestResponse, std::string> answer_with_new_field(ProgramOptions options,
                                                           const std::string& config) {
  FaceFixture s(options);
  s.add_model();
  s.import_processors(processor("p", "SYNC", config));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  std::string id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.face->members().answered(member, fake->request(0), Call::processor,
                             {.data = R"({"extra":true,"n":3})"});
  EXPECT_EQ(s.kernel.verify(), "");
  return {*waiting, s.data(id)};
}

TEST(results, are_checked_against_the_model_only_on_request) {
  auto [free, stored] = answer_with_new_field({}, "");
  EXPECT_EQ(free.status, 200) << free.text;
  EXPECT_EQ(stored, R"({"extra":true,"n":3})");
  for (bool for_all : {false, true}) {
    auto [refused, kept] = answer_with_new_field(ProgramOptions{.validate_results = for_all},
                                                 for_all ? "" : R"(,"validateResult":true)");
    EXPECT_EQ(refused.code(), "WORKFLOW_FAILED") << refused.text;
    EXPECT_NE(refused.text.find("'$.extra'"), std::string::npos) << refused.text;
    EXPECT_NE(refused.text.find("processor p"), std::string::npos) << refused.text;
    EXPECT_EQ(kept, R"({"k":"a","n":1})");
  }
}

TEST(items, two_for_one_entity_are_one_change) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create();
  std::string item = R"({"id":")" + id + R"(","payload":"{\"n\":)";
  TestResponse both = s.send("PUT", "/entity/JSON", "[" + item + "2}\"}," + item + "3}\"}]");
  ASSERT_EQ(both.status, 200) << both.text;
  EXPECT_EQ(both.body.array()[0].find("entityIds")->array().size(), 2u);
  EXPECT_EQ(s.data(id), R"({"n":3})");
  EXPECT_EQ(s.send("GET", "/entity/" + id + "/changes").body.array().size(), 2u);
  EXPECT_EQ(s.kernel.verify(), "");
}

// The second item must name the transaction before this one, too: any other is stale.
TEST(items, if_match_of_a_second_item_names_the_transaction_before) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create();
  std::string tx(s.send("GET", "/entity/" + id).body.find("meta")->string_or("transactionId"));
  auto item = [&](const std::string& n, const std::string& match) {
    return R"({"id":")" + id + R"(","payload":"{\"n\":)" + n + R"(}","ifMatch":")" + match + "\"}";
  };
  TestResponse done =
      s.send("PUT", "/entity/JSON", "[" + item("2", tx) + "," + item("3", "other") + "]");
  EXPECT_EQ(done.body.array()[0].find("entityIds")->array().size(), 1u) << done.text;
  EXPECT_EQ(done.body.array()[0].find("failed")->array().size(), 1u);
  EXPECT_EQ(s.data(id), R"({"n":2})");
}

TEST(cascade, a_guarded_loop_ends_at_the_visit_limit) {
  FaceFixture s(ProgramOptions{.max_state_visits = 3});
  s.add_model();
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"t","next":"B","criterion":{"type":"simple","jsonPath":"$.n","operatorType":"EQUALS","value":1}}]},"B":{"transitions":[{"name":"u","next":"A"}]}})");
  TestResponse h = s.send("POST", "/entity/JSON/m/1", R"({"n":1})");
  EXPECT_EQ(h.code(), "WORKFLOW_FAILED");
  EXPECT_NE(h.text.find("visited 4 times (limit: 3)"), std::string::npos) << h.text;
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
}

// A thousand conditions read a document of two megabytes a thousand times.
TEST(cascade, criteria_that_read_too_much_fail_the_request) {
  FaceFixture s;
  s.add_model();
  std::string conditions;
  for (int i = 0; i < 1000; ++i)
    conditions += std::string(i ? "," : "") +
                  R"({"type":"simple","jsonPath":"$.k","operatorType":"CONTAINS","value":"no)" +
                  std::to_string(i) + "\"}";
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"go","next":"B","criterion":{"type":"group","operator":"OR","conditions":[)" +
      conditions + R"(]}}]},"B":{}})");
  EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"n":1,"k":"a"})").status, 200);
  TestResponse refused =
      s.send("POST", "/entity/JSON/m/1", R"({"n":1,"k":")" + std::string(2'000'000, 'x') + "\"}");
  EXPECT_EQ(refused.code(), "CRITERIA_TOO_EXPENSIVE") << refused.text;
  EXPECT_EQ(s.kernel.verify(), "");
}

}  // namespace
}  // namespace pawl::entities
