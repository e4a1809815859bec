#include <fmt/format.h>

#include "faces/entities/stage_test.h"

namespace pawl::entities {
namespace {

using std::chrono::milliseconds;

TEST(machine, other_entities_are_written_while_a_processor_is_out) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), first = s.create(), second = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + first + "/go", R"({"n":2})");
  EXPECT_EQ(waiting->status, 0);
  EXPECT_EQ(s.kernel.open_turns(), 1u);
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + second, R"({"n":9})").status, 200);
  EXPECT_EQ(s.data(first), R"({"k":"a","n":1})");
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":3})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.state(first) + s.data(first), R"(B{"n":3})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(machine, criteria_see_the_transition_that_was_named_or_none) {
  Stage s;
  s.model();
  auto asks = [](const std::string& name) {
    return R"("criterion":{"type":"lifecycle","field":"previousTransition","operatorType":"EQUALS","value":")" +
           name + "\"}";
  };
  s.flow(
      R"({"A":{"transitions":[{"name":"first","next":"B",)" + asks("") +
      R"(}]},"B":{"transitions":[{"name":"never","next":"X",)" + asks("loopback") +
      R"(},{"name":"go","next":"C","manual":true}]},"C":{"transitions":[{"name":"second","next":"D",)" +
      asks("go") + R"(}]},"D":{},"X":{}})");
  std::string id = s.create();
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id, R"({"n":2})").status, 200);
  Heard h = s.say("GET", "/entity/" + id);
  EXPECT_EQ(h.body.find("meta")->string_or("transitionForLatestSave"), "loopback");
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id + "/go", R"({"n":3})").status, 200);
  EXPECT_EQ(s.state(id), "D");
}

TEST(machine, the_first_writer_wins_and_the_other_is_told_to_retry) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id, R"({"n":7})").status, 200);
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 409);
  EXPECT_EQ(waiting->code(), "CONFLICT");
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":7})");
}

TEST(members, answers_that_are_late_repeated_or_strange_change_nothing) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>(), stranger = std::make_shared<Script>();
  std::string member = s.join(script), other = s.join(stranger, {"y"}), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.face->members().answered(member, "no-such-request", Call::processor, {.data = R"({"n":66})"});
  s.face->members().answered(other, script->request(0), Call::processor, {.data = R"({"n":66})"});
  EXPECT_EQ(waiting->status, 0);
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":3})"});
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":66})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.data(id), R"({"n":3})");
}

TEST(members, a_call_that_gets_no_answer_times_out_and_leaves_no_trace) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC", R"(,"responseTimeoutMs":50)"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  Heard h = s.say("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(h.code(), "WORKFLOW_FAILED");
  EXPECT_NE(h.text.find("timed out after 50ms"), std::string::npos);
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":66})"});
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"k":"a","n":1})");
  EXPECT_EQ(s.kernel.open_turns(), 0u);
}

TEST(members, a_call_may_wait_longer_than_clocks_count) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC", R"(,"responseTimeoutMs":9223372036854775807)"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  std::this_thread::sleep_for(milliseconds(50));  // one that is over at once would be by now
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":3})"});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
}

TEST(members, retry_policies_try_three_times_under_one_request_id) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC", R"(,"retryPolicy":"FIXED")"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  for (size_t attempt = 0; attempt < 3; ++attempt) {
    for (int i = 0; i < 2000 && script->calls().size() <= attempt; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(script->calls().size(), attempt + 1);
    EXPECT_EQ(script->request(attempt), script->request(0));
    EXPECT_EQ(waiting->status, 0);
    s.face->members().answered(member, script->request(0), Call::processor,
                               {.kind = Verdict::failed, .message = "not now"});
  }
  EXPECT_EQ(waiting->code(), "WORKFLOW_FAILED");
}

TEST(members, an_attempt_that_failed_leaves_none_of_what_its_callbacks_wrote) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC", R"(,"retryPolicy":"EXPONENTIAL")"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  for (size_t attempt = 0; attempt < 2; ++attempt) {
    for (int i = 0; i < 2000 && script->calls().size() <= attempt; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(script->calls().size(), attempt + 1);
    wire::Headers token{{"X-Tx-Token", script->token(attempt)}};
    EXPECT_EQ(
        s.say("POST", "/entity/JSON/m/1", fmt::format(R"({{"k":"child {}"}})", attempt), token)
            .status,
        200);
    EXPECT_EQ(s.say("GET", "/entity/m/1", "", token).body.array().size(), 2u);
    Verdict verdict;
    if (attempt == 0) verdict.kind = Verdict::failed;
    s.face->members().answered(member, script->request(0), Call::processor, std::move(verdict));
  }
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  Heard all = s.say("GET", "/entity/m/1");
  EXPECT_EQ(all.body.array().size(), 2u);
  EXPECT_EQ(all.text.find("child 0"), std::string::npos);
  EXPECT_NE(all.text.find("child 1"), std::string::npos);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(members,
     a_joined_job_that_is_tried_again_leaves_nothing_of_the_attempt_and_all_of_the_others) {
  Stage s;
  s.model();
  s.flow(R"({"A":{"transitions":[{"name":"outer","next":"B","manual":true,"processors":[)" +
         processor("p", "SYNC") + R"(]},{"name":"inner","next":"B","manual":true,"processors":[)" +
         processor("q", "SYNC", R"(,"retryPolicy":"FIXED")") + R"(]}]},"B":{}})");
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), first = s.create(), second = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + first + "/outer", R"({"n":2})");
  wire::Headers outer{{"X-Tx-Token", script->token(0)}};
  HeardPtr nested = s.begin("PUT", "/entity/JSON/" + second + "/inner", R"({"n":3})", outer);
  for (size_t attempt = 0; attempt < 2; ++attempt) {
    for (int i = 0; i < 2000 && script->calls().size() <= attempt + 1; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(script->calls().size(), attempt + 2);
    wire::Headers inner{{"X-Tx-Token", script->token(attempt + 1)}};
    EXPECT_EQ(
        s.say("POST", "/entity/JSON/m/1", fmt::format(R"({{"k":"inner {}"}})", attempt), inner)
            .status,
        200);
    EXPECT_EQ(
        s.say("POST", "/entity/JSON/m/1", fmt::format(R"({{"k":"outer {}"}})", attempt), outer)
            .status,
        200);
    Verdict verdict;
    if (attempt == 0) verdict.kind = Verdict::failed;
    s.face->members().answered(member, script->request(1), Call::processor, std::move(verdict));
  }
  EXPECT_EQ(nested->status, 200) << nested->text;
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  Heard all = s.say("GET", "/entity/m/1");
  EXPECT_EQ(all.text.find("inner 0"), std::string::npos);
  for (const char* there : {"inner 1", "outer 0", "outer 1"})
    EXPECT_NE(all.text.find(there), std::string::npos) << there;
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 5);
  EXPECT_EQ(s.kernel.verify(), "");
}

// A transaction is open while `meanwhile` is done to the model; `inside` is written with its token
// before.
int after_model_change(const std::string& inside, const std::function<void(Stage&)>& meanwhile) {
  Stage s;
  s.model();
  EXPECT_EQ(s.say("POST", "/model/m/1/changeLevel/TYPE").status, 200);
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.say("POST", "/entity/JSON/m/1", inside, {{"X-Tx-Token", script->token(0)}});
  meanwhile(s);
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(s.kernel.verify(), "");
  EXPECT_EQ(s.state(id), waiting->status == 200 ? "B" : "A");
  return waiting->status;
}

TEST(transaction, a_model_that_only_grew_meanwhile_is_no_conflict) {
  auto grow = [](Stage& s) {
    EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", R"({"k":1.5})").status, 200);
  };
  auto index = [](Stage& s) {
    EXPECT_EQ(s.say("PUT", "/model/m/1/indexes", R"({"fields":["$.k"]})").status, 200);
  };
  EXPECT_EQ(after_model_change(R"({"k":"child"})", grow), 200);
  EXPECT_EQ(after_model_change(R"({"k":"child"})", index), 200);
  EXPECT_EQ(after_model_change(
                R"({"k":"child"})",
                [](Stage& s) {
                  EXPECT_EQ(s.say("POST", "/model/m/1/changeLevel/STRUCTURAL").status, 200);
                }),
            200);
  // It has refused by the model that it began with; it has grown it too; it has not compared what
  // must be unique now.
  EXPECT_EQ(after_model_change(R"({"new":1})", grow), 200);
  EXPECT_EQ(after_model_change(R"({"n":"text"})", grow), 409);
  EXPECT_EQ(after_model_change(R"({"k":"child"})",
                               [](Stage& s) {
                                 EXPECT_EQ(s.say("PUT", "/model/m/1/unique-keys",
                                                 R"({"uniqueKeys":[{"id":"u","fields":["$.k"]}]})")
                                               .status,
                                           200);
                               }),
            409);
}

TEST(transaction, workflows_that_are_imported_meanwhile_are_for_the_next) {
  auto replace = [](Stage& s) {
    s.flow(R"({"A":{"transitions":[{"name":"away","next":"C","manual":true}]},"C":{}})");
  };
  auto first = [](Stage& s) {
    EXPECT_EQ(
        s.say("POST", "/model/m/1/workflow/import", R"({"importMode":"REPLACE","workflows":[]})")
            .status,
        200);
  };
  EXPECT_EQ(after_model_change(R"({"k":"child"})", replace), 200);
  EXPECT_EQ(after_model_change(R"({"k":"child"})", first), 200);
}

TEST(transaction, what_it_saves_is_found_by_an_index_that_was_declared_meanwhile) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create(R"({"k":"old"})"),
              gone = s.create(R"({"k":"gone"})");
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"k":"new"})");
  wire::Headers token{{"X-Tx-Token", script->token(0)}};
  EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", R"({"k":"child"})", token).status, 200);
  EXPECT_EQ(s.say("DELETE", "/entity/" + gone, "", token).status, 200);
  EXPECT_EQ(s.say("PUT", "/model/m/1/indexes", R"({"fields":["$.k"]})").status, 200);
  for (int i = 0;
       i < 2000 && s.say("GET", "/model/m/1/indexes").text.find("READY") == std::string::npos; ++i)
    std::this_thread::sleep_for(milliseconds(1));
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  auto plan = [&](const std::string& k) {
    return s
        .say("POST", "/search/direct/m/1?explain=true",
             R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":")" + k + "\"}")
        .text;
  };
  EXPECT_EQ(plan("new"), R"({"index":"$.k","rowsRead":1,"matched":1,"access":"INDEX"})");
  EXPECT_EQ(plan("child"), R"({"index":"$.k","rowsRead":1,"matched":1,"access":"INDEX"})");
  for (std::string k : {"old", "gone"})
    EXPECT_EQ(plan(k), R"({"index":"$.k","rowsRead":0,"matched":0,"access":"INDEX"})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, an_entity_that_its_own_callback_deletes_stays_deleted) {
  for (const char* mode : {"SYNC", "ASYNC_SAME_TX", "ASYNC_NEW_TX", "COMMIT_BEFORE_DISPATCH"}) {
    Stage s;
    s.model();
    const std::string more =
        std::string_view(mode) == "COMMIT_BEFORE_DISPATCH" ? R"(,"startNewTxOnDispatch":true)" : "";
    s.processors(processor("p", mode, more) + "," + processor("never", mode, more));
    auto script = std::make_shared<Script>();
    std::string member = s.join(script), id = s.create();
    HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
    wire::Headers token{{"X-Tx-Token", script->token(0)}};
    EXPECT_EQ(s.say("DELETE", "/entity/" + id, "", token).status, 200);
    EXPECT_EQ(s.say("GET", "/entity/" + id).status, 200) << "only when the transaction commits";
    s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":3})"});
    EXPECT_EQ(waiting->status, 200) << mode << waiting->text;
    EXPECT_EQ(waiting->body.find("entityIds")->array()[0].string(), id);
    EXPECT_EQ(script->calls().size(), 1u) << "nothing more is asked for it";
    EXPECT_EQ(s.say("GET", "/entity/" + id).status, 404) << mode;
    EXPECT_EQ(s.say("GET", "/entity/" + id + "/changes").body.array()[0].string_or("changeType"),
              "DELETED");
    EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
    Heard trail = s.say("GET", "/audit/entity/" + id + "?eventType=StateMachine");
    EXPECT_EQ(trail.body.find("items")->array()[0].string_or("eventType"), "STATE_MACHINE_FINISH")
        << trail.text;
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(transaction, a_deletion_is_undone_with_the_savepoint_it_was_made_in) {
  Stage s;
  s.model();
  s.processors(processor("p", "ASYNC_NEW_TX"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(s.say("DELETE", "/entity/" + id, "", {{"X-Tx-Token", script->token(0)}}).status, 200);
  s.face->members().answered(member, script->request(0), Call::processor,
                             {.kind = Verdict::failed, .message = "no"});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":2})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, a_new_entity_that_a_criterions_or_processors_callback_deletes_never_was) {
  Stage s;
  s.model();
  s.flow(
      R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" + processor("p", "SYNC") +
      R"(]}]},"B":{"transitions":[{"name":"u","next":"C","criterion":)" +
      R"({"type":"function","function":{"name":"f","config":{"calculationNodesTags":"x"}}}}]},"C":{}})");
  auto script = std::make_shared<Script>();
  std::string member = s.join(script);
  HeardPtr waiting = s.begin("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().answered(member, script->request(0), Call::processor, {});
  std::string id(script->calls()[1].string_or("entityId"));
  EXPECT_EQ(s.say("DELETE", "/entity/" + id, "", {{"X-Tx-Token", script->token(1)}}).status, 200);
  s.face->members().answered(member, script->request(1), Call::criterion, {.matches = true});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.say("GET", "/entity/" + id).status, 404);
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction,
     a_criterions_callback_sees_the_entity_as_it_is_and_what_a_failed_attempt_did_is_undone) {
  Stage s;
  s.model();
  s.flow(
      R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" + processor("p", "SYNC") +
      R"(]}]},"B":{"transitions":[{"name":"u","next":"C","criterion":)" +
      R"({"type":"function","function":{"name":"f","config":{"calculationNodesTags":"x","retryPolicy":"FIXED"}}}}]},"C":{}})");
  auto script = std::make_shared<Script>();
  std::string member = s.join(script);
  HeardPtr waiting = s.begin("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":2})"});
  std::string id(script->calls()[1].string_or("entityId"));
  wire::Headers first{{"X-Tx-Token", script->token(1)}};
  Heard seen = s.say("GET", "/entity/" + id, "", first);
  ASSERT_EQ(seen.status, 200) << seen.text;
  EXPECT_EQ(seen.body.find("meta")->string_or("state"), "B");
  EXPECT_EQ(json::print(*seen.body.find("data")), R"({"n":2})");
  // What the attempt that fails writes is undone with it.
  EXPECT_EQ(s.say("DELETE", "/entity/" + id, "", first).status, 200);
  s.face->members().answered(member, script->request(1), Call::criterion,
                             {.kind = Verdict::failed, .message = "not now"});
  for (int i = 0; i < 2000 && script->calls().size() < 3; ++i)
    std::this_thread::sleep_for(milliseconds(1));
  ASSERT_EQ(script->calls().size(), 3u);
  EXPECT_EQ(script->request(2), script->request(1));
  s.face->members().answered(member, script->request(2), Call::criterion, {.matches = true});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.state(id), "C");
  EXPECT_EQ(s.data(id), R"({"n":2})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(members, why_a_criterion_does_not_match_is_told) {
  Stage s;
  s.model();
  const std::string f =
      R"("criterion":{"type":"function","function":{"name":"f","config":{"calculationNodesTags":"x"}}})";
  s.flow(R"({"A":{"transitions":[{"name":"auto","next":"B",)" + f +
         R"(},{"name":"go","next":"B","manual":true,)" + f + "}]},\"B\":{}}");
  auto script = std::make_shared<Script>();
  std::string member = s.join(script);
  HeardPtr waiting = s.begin("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().answered(member, script->request(0), Call::criterion, {.message = "too young"});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  std::string id(script->calls()[0].string_or("entityId"));
  Heard trail = s.say("GET", "/audit/entity/" + id + "?eventType=StateMachine");
  EXPECT_NE(trail.text.find(R"("data":{"reason":"too young"})"), std::string::npos) << trail.text;
  waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":1})");
  s.face->members().answered(member, script->request(1), Call::criterion, {.message = "too old"});
  EXPECT_NE(waiting->text.find("criterion not matched: too old"), std::string::npos)
      << waiting->text;
  waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":1})");
  s.face->members().answered(member, script->request(2), Call::criterion, {});
  EXPECT_NE(waiting->text.find("criterion not matched\""), std::string::npos) << waiting->text;
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(unique, amounts_are_compared_and_not_their_spelling) {
  Stage s;
  EXPECT_EQ(s.say("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":"a","n":1.5})").status,
            200);
  EXPECT_EQ(s.say("PUT", "/model/m/1/unique-keys", R"([{"id":"by-n","fields":["$.n"]}])").status,
            200);
  EXPECT_EQ(s.say("PUT", "/model/m/1/lock").status, 200);
  for (const char* n : {"1", "0", "-2.5", "1.25e-3"})
    EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", fmt::format(R"({{"n":{}}})", n)).status, 200) << n;
  for (const char* n : {"1.0", "10e-1", "1.000", "-0", "0.0", "0e7", "-2.50", "-25e-1", "0.00125"})
    EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", fmt::format(R"({{"n":{}}})", n)).code(),
              "UNIQUE_VIOLATION")
        << n;
  EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", R"({"n":1.0000000000001})").status, 200);
  EXPECT_EQ(plain_number("1e400"), plain_number("10E+399"));
  EXPECT_EQ(plain_number("-0.001e-60"), plain_number("-1e-63"));
  EXPECT_EQ(plain_number("120.50") + " " + plain_number("12e1") + " " + plain_number("0.00"),
            "120.5 120 0");
}

TEST(unique, values_that_a_callback_gave_the_entity_are_let_go_of_and_others_keep_theirs) {
  Stage s;
  s.model();
  EXPECT_EQ(s.say("PUT", "/model/m/1/unique-keys", R"([{"id":"by-k","fields":["$.k"]}])").status,
            200);
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create(R"({"k":"mine"})"),
              other = s.create(R"({"k":"theirs"})");
  // On its way the entity has a value that another holds; the processor mends that.
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"k":"theirs"})");
  EXPECT_EQ(
      s.say("PUT", "/entity/JSON/" + id, R"({"k":"between"})", {{"X-Tx-Token", script->token(0)}})
          .status,
      200);
  s.face->members().answered(member, script->request(0), Call::processor,
                             {.data = R"({"k":"last"})"});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  auto made = [&](const std::string& k) {
    return s.say("POST", "/entity/JSON/m/1", R"({"k":")" + k + "\"}").code();
  };
  EXPECT_EQ(made("theirs"), "UNIQUE_VIOLATION");
  EXPECT_EQ(made("last"), "UNIQUE_VIOLATION");
  EXPECT_EQ(made("between"), "");
  EXPECT_EQ(made("mine"), "");
  // What stays a violation to the end is one.
  std::string third = s.create(R"({"k":"third"})");
  waiting = s.begin("PUT", "/entity/JSON/" + third + "/go", R"({"k":"theirs"})");
  s.face->members().answered(member, script->request(1), Call::processor, {});
  EXPECT_EQ(waiting->code(), "UNIQUE_VIOLATION");
  // And one that is deleted meanwhile does not take another's value with it.
  waiting = s.begin("PUT", "/entity/JSON/" + third + "/go", R"({"k":"theirs"})");
  EXPECT_EQ(s.say("DELETE", "/entity/" + third, "", {{"X-Tx-Token", script->token(2)}}).status,
            200);
  s.face->members().answered(member, script->request(2), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(made("theirs"), "UNIQUE_VIOLATION");
  EXPECT_EQ(made("third"), "");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(members, a_disconnect_fails_the_calls_of_that_member_at_once) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.face->members().leave(member);
  EXPECT_EQ(waiting->status, 503);
  EXPECT_EQ(waiting->code(), "COMPUTE_MEMBER_DISCONNECTED");
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})").code(),
            "NO_COMPUTE_MEMBER_FOR_TAG");
}

TEST(members, only_the_own_tenants_members_are_asked) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  s.face->members().join(script, "another", {"x"});
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + s.create() + "/go", R"({"n":2})").code(),
            "NO_COMPUTE_MEMBER_FOR_TAG");
  EXPECT_TRUE(script->calls().empty());
}

TEST(transaction, a_callback_joins_by_its_token_and_only_while_the_call_is_out) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  wire::Headers token{{"X-Tx-Token", script->token(0)}};
  Heard made = s.say("POST", "/entity/JSON/m/1", R"({"k":"child"})", token);
  ASSERT_EQ(made.status, 200) << made.text;
  std::string child = made.body.array()[0].find("entityIds")->array()[0].string();
  EXPECT_EQ(s.say("GET", "/entity/" + child).status, 404);
  EXPECT_EQ(s.say("GET", "/entity/" + child, "", token).status, 200);
  EXPECT_NE(s.say("GET", "/entity/" + id, "", token).text.find("\"n\":2"), std::string::npos);
  EXPECT_EQ(s.say("GET", "/entity/" + child, "", token, "another").status, 409);
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + child, R"({"zz":1})", token).status, 400);
  EXPECT_NE(
      s.say("POST", "/search/direct/m/1",
            R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":"child"})", token)
          .text.find(child),
      std::string::npos);
  EXPECT_EQ(s.say("GET", "/entity/m/1", "", token).body.array().size(), 2u);
  EXPECT_EQ(s.say("GET", "/entity/m/1?pageSize=1&pageNumber=1", "", token).body.array().size(), 1u);
  EXPECT_EQ(s.say("GET", "/entity/m/1").body.array().size(), 1u);
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.data(child), R"({"k":"child"})");
  EXPECT_EQ(s.say("GET", "/entity/" + child, "", token).status, 409);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(transaction, a_failed_savepoint_undoes_its_callbacks_and_nothing_else) {
  Stage s;
  s.model();
  s.processors(processor("p", "ASYNC_NEW_TX") + "," + processor("q", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  Heard made =
      s.say("POST", "/entity/JSON/m/1", R"({"k":"child"})", {{"X-Tx-Token", script->token(0)}});
  std::string child = made.body.array()[0].find("entityIds")->array()[0].string();
  s.face->members().answered(member, script->request(0), Call::processor,
                             {.kind = Verdict::failed, .message = "undo"});
  s.face->members().answered(member, script->request(1), Call::processor, {.data = R"({"n":5})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.say("GET", "/entity/" + child).status, 404);
  EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":5})");
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 1);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(dispatch, the_first_transaction_is_durable_before_the_member_is_called) {
  Stage s;
  s.model();
  s.processors(processor("p", "COMMIT_BEFORE_DISPATCH"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create();
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":2})");
  EXPECT_EQ(s.kernel.open_turns(), 0u);
  s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":3})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.state(id) + s.data(id), R"(B{"n":3})");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(dispatch, a_joined_write_does_not_commit_what_it_joined) {
  for (const char* fresh : {"false", "true"}) {
    Stage s;
    s.model();
    std::string commits = processor("q", "COMMIT_BEFORE_DISPATCH",
                                    std::string(R"(,"startNewTxOnDispatch":)") + fresh);
    s.flow(R"({"A":{"transitions":[{"name":"outer","next":"B","manual":true,"processors":[)" +
           processor("p", "SYNC") +
           R"(]},{"name":"inner","next":"B","manual":true,"processors":[)" + commits +
           R"(]}]},"B":{}})");
    auto script = std::make_shared<Script>();
    std::string member = s.join(script), first = s.create(), second = s.create();
    HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + first + "/outer", R"({"n":2})");
    wire::Headers token{{"X-Tx-Token", script->token(0)}};
    EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", R"({"k":"child"})", token).status, 200);
    Heard refused = s.say("PUT", "/entity/JSON/" + second + "/inner", R"({"n":3})", token);
    EXPECT_EQ(std::to_string(refused.status) + refused.code(), "409COMMIT_IN_JOINED_TRANSACTION")
        << refused.text;
    EXPECT_EQ(refused.text.find("retryable"), std::string::npos);
    EXPECT_EQ(script->calls().size(), 1u);
    EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 2);
    s.face->members().answered(member, script->request(0), Call::processor, {});
    EXPECT_EQ(waiting->status, 200) << waiting->text;
    EXPECT_EQ(s.state(first) + s.state(second) + s.data(second), R"(BA{"k":"a","n":1})");
    EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 3);
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(dispatch, a_lost_compare_and_save_is_a_conflict_and_the_other_write_stays) {
  for (const char* fresh : {"false", "true"}) {
    Stage s;
    s.model();
    s.processors(processor("p", "COMMIT_BEFORE_DISPATCH",
                           std::string(R"(,"startNewTxOnDispatch":)") + fresh));
    auto script = std::make_shared<Script>();
    std::string member = s.join(script), id = s.create();
    HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
    EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id, R"({"n":7})").status, 200);
    s.face->members().answered(member, script->request(0), Call::processor, {.data = R"({"n":3})"});
    EXPECT_EQ(waiting->status, 409) << fresh;
    EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":7})");
    EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id, R"({"n":8})").status, 200);
    EXPECT_EQ(s.kernel.verify(), "");
  }
}

TEST(dispatch, a_collection_goes_on_in_the_second_transaction) {
  Stage s;
  s.model();
  s.flow(R"({"A":{"transitions":[{"name":"t","next":"B","processors":[)" +
         processor("p", "COMMIT_BEFORE_DISPATCH") + R"(]}]},"B":{}})");
  auto script = std::make_shared<Script>();
  std::string member = s.join(script);
  HeardPtr waiting = s.begin("POST", "/entity/JSON/m/1", R"([{"n":1},{"n":2}])");
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 0);
  s.face->members().answered(member, script->request(1), Call::processor, {});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(waiting->body.array()[0].find("entityIds")->array().size(), 2u);
  EXPECT_EQ(s.say("GET", "/entity/stats/states/m/1").text,
            R"([{"modelName":"m","modelVersion":1,"state":"B","count":2}])");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(cascade, a_guarded_loop_ends_at_the_visit_limit_and_stores_nothing) {
  Stage s(ProgramOptions{.max_state_visits = 3});
  s.model();
  s.flow(
      R"({"A":{"transitions":[{"name":"t","next":"B","criterion":{"type":"simple","jsonPath":"$.n","operatorType":"EQUALS","value":1}}]},"B":{"transitions":[{"name":"u","next":"A"}]}})");
  Heard h = s.say("POST", "/entity/JSON/m/1", R"({"n":1})");
  EXPECT_EQ(h.code(), "WORKFLOW_FAILED");
  EXPECT_NE(h.text.find("visited 4 times (limit: 3)"), std::string::npos) << h.text;
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
}

TEST(schedule, a_timer_fires_once_and_an_older_one_does_nothing) {
  Stage s;
  s.model();
  s.flow(
      R"({"A":{"transitions":[{"name":"late","next":"B","schedule":{"delayMs":1000}}]},"B":{}})");
  std::string id = s.create();
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id, R"({"n":5})").status, 200);
  ASSERT_EQ(s.kernel.timers.size(), 2u);
  auto fire = [&](size_t i) {
    Input input;
    input.verb = "timer";
    input.settles = s.kernel.timers[i].id;
    std::string reason;
    s.kernel.submit(std::move(input),
                    [&](Result<Answer> a) { reason = a ? "" : a.error().reason; });
    return reason;
  };
  EXPECT_EQ(fire(0), "EFFECT_NOT_OPEN");
  EXPECT_EQ(s.state(id), "A");
  EXPECT_EQ(fire(1), "");
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(fire(1), "EFFECT_NOT_OPEN");
  EXPECT_EQ(s.kernel.verify(), "");
}

}  // namespace
}  // namespace pawl::entities
