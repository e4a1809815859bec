#include <fmt/format.h>

#include "faces/entities/stage_test.h"

namespace pawl::entities {
namespace {

TEST(tenancy, what_belongs_to_another_tenant_is_as_if_it_were_not) {
  Stage s;
  s.model();
  std::string id = s.create(), never = "00000000-0000-1000-8000-000000000000";
  auto same = [&](const std::string& method, const std::string& before, const std::string& after,
                  const std::string& body = "") {
    Heard theirs = s.say(method, before + id + after, body, {}, "other"),
          nobodys = s.say(method, before + never + after, body, {}, "other");
    EXPECT_EQ(theirs.status, 404) << method << before;
    EXPECT_EQ(theirs.status, nobodys.status);
    std::string text = theirs.text;
    for (size_t at; (at = text.find(id)) != std::string::npos;)
      text.replace(at, id.size(), never);
    EXPECT_EQ(text, nobodys.text);
  };
  same("GET", "/entity/", "");
  same("GET", "/entity/", "/changes");
  same("GET", "/entity/", "/transitions");
  same("GET", "/audit/entity/", "");
  same("DELETE", "/entity/", "");
  same("PUT", "/entity/JSON/", "", R"({"n":2})");
  same("PUT", "/entity/JSON/", "/UPDATE", R"({"n":2})");
  EXPECT_EQ(s.say("GET", "/model/export/SIMPLE_VIEW/m/1", "", {}, "other").status, 404);
  EXPECT_EQ(s.say("GET", "/model/", "", {}, "other").text, "[]");
  s.model("other");
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1", "", {}, "other").body.find("count")->as_int64(), 0);
  EXPECT_EQ(s.say("GET", "/entity/m/1", "", {}, "other").text, "[]");
  EXPECT_EQ(s.say("POST", "/search/direct/m/1",
                  R"({"type":"group","operator":"AND","conditions":[]})", {}, "other")
                .text,
            "");
  EXPECT_EQ(s.say("DELETE", "/entity/m/1", "", {}, "other")
                .body.find("deleteResult")
                ->find("numberOfEntitites")
                ->as_int64(),
            0);
  EXPECT_EQ(s.state(id), "CREATED");
}

TEST(http, problems_have_the_shape_of_the_contract) {
  Stage s;
  Heard h = s.say("PUT", "/model/x/1/lock");
  EXPECT_EQ(
      h.text,
      R"({"type":"about:blank","title":"Not Found","status":404,"detail":"MODEL_NOT_FOUND: cannot find model entityName=x, version=1","instance":"/model/x/1/lock","properties":{"errorCode":"MODEL_NOT_FOUND","entityName":"x","entityVersion":1}})");
  EXPECT_EQ(s.say("GET", "/no-such-route").status, 404);
  EXPECT_EQ(s.say("DELETE", "/search/direct/x/1").status, 405);
  EXPECT_EQ(s.say("GET", "/account/subscriptions").status, 501);
}

TEST(http, counts_of_a_model_that_is_not_there_are_of_nothing) {
  Stage s;
  EXPECT_EQ(s.say("GET", "/entity/stats/nope/1").text,
            R"({"modelName":"nope","modelVersion":1,"count":0})");
  EXPECT_EQ(s.say("GET", "/entity/stats/states/nope/1").text, "[]");
}

TEST(http, groups_are_by_single_fields) {
  Stage s;
  s.model();
  for (const char* path : {"", "$.k[*]", "$.k[0]"})
    EXPECT_EQ(s.say("POST", "/entity/stats/m/1/query", fmt::format(R"({{"groupBy":["{}"]}})", path))
                  .code(),
              "INVALID_GROUP_BY_PATH")
        << path;
  EXPECT_EQ(s.say("POST", "/entity/stats/m/1/query",
                  R"({"groupBy":["$.k"],"aggregations":[{"op":"sum","field":"$.n[0]"}]})")
                .code(),
            "INVALID_AGGREGATION_FIELD");
}

TEST(http, groups_of_a_size_come_in_the_order_of_their_keys) {
  Stage s;
  s.model();
  for (const char* k : {R"("a b")", R"("a")", "null", R"("a\"")", R"("z")", R"("z")"})
    s.create(fmt::format(R"({{"k":{}}})", k));
  Heard groups = s.say("POST", "/entity/stats/m/1/query", R"({"groupBy":["$.k"]})");
  std::string order;
  for (const json::Value& g : groups.body.array())
    order += json::print(*g.find("groupKey")->array()[0].find("value")) + " ";
  EXPECT_EQ(order, R"("z" null "a" "a b" "a\"" )");
  EXPECT_EQ(s.say("POST", "/entity/stats/m/1/query", R"({"groupBy":["$.k","k"]})").code(),
            "DUPLICATE_GROUP_BY");
  EXPECT_EQ(s.say("POST", "/entity/stats/m/1/query", R"({"groupBy":["state","$.state"]})").status,
            200);
}

TEST(http, a_document_is_validated_against_the_model_as_it_is) {
  Stage s;
  s.model();
  EXPECT_EQ(s.say("POST", "/model/m/1/changeLevel/STRUCTURAL").status, 200);
  for (const char* body : {R"({"new":1})", R"({"n":"text"})"}) {
    EXPECT_EQ(json::print(*s.say("POST", "/model/validate/m/1", body).body.find("success")),
              "false")
        << body;
    EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", body).status, 200) << body;
    EXPECT_EQ(json::print(*s.say("POST", "/model/validate/m/1", body).body.find("success")), "true")
        << body;
  }
}

TEST(http, the_model_is_looked_for_before_the_change_level) {
  Stage s;
  EXPECT_EQ(s.say("POST", "/model/nope/1/changeLevel/BAD").code(), "MODEL_NOT_FOUND");
  s.model();
  EXPECT_EQ(s.say("POST", "/model/m/1/changeLevel/BAD").code(), "INVALID_CHANGE_LEVEL");
}

TEST(messages, a_batch_may_name_what_is_gone_already) {
  Stage s;
  wire::Headers headers{{"Content-Type", "application/json"}, {"Content-Length", "13"}};
  std::string id = s.say("POST", "/message/new/s", R"({"payload":1})", headers)
                       .body.array()[0]
                       .find("entityIds")
                       ->array()[0]
                       .string();
  std::string gone = "00000000-0000-1000-8000-000000000000";
  EXPECT_EQ(s.say("DELETE", "/message", "[\"" + gone + "\",\"" + id + "\"]").text,
            R"([{"entityIds":[")" + gone + R"(",")" + id + R"("],"success":true}])");
  EXPECT_EQ(s.say("GET", "/message/" + id).status, 404);
  Heard again = s.say("DELETE", "/message/" + id);
  EXPECT_EQ(again.code(), "ENTITY_NOT_FOUND");
  EXPECT_EQ(again.body.find("properties")->string_or("messageId"), id);
}

TEST(entities, digits_survive_and_names_come_out_sorted) {
  Stage s;
  EXPECT_EQ(s.say("POST", "/model/import/JSON/SAMPLE_DATA/m/1",
                  R"({"b":1.10,"a":12345678901234567890123,"c":1E400})")
                .status,
            200);
  EXPECT_EQ(s.say("PUT", "/model/m/1/lock").status, 200);
  std::string id = s.create(R"({"c":1E400,"b":1.10,"a":12345678901234567890123})");
  EXPECT_NE(s.say("GET", "/entity/" + id)
                .text.find(R"("data":{"a":12345678901234567890123,"b":1.10,"c":1E400})"),
            std::string::npos);
}

TEST(entities, a_merge_patch_of_sorted_documents_is_rfc_7386) {
  const char* rows[][3] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"b":1})", R"({"a":2,"c":3})", R"({"a":2,"b":1,"c":3})"},
      {R"(["a"])", R"({"a":{"b":null,"c":1}})", R"({"a":{"c":1}})"},
      {R"({"a":1})", R"(["c"])", R"(["c"])"},
      {R"({"e":null})", R"({"a":1})", R"({"a":1,"e":null})"},
  };
  for (const auto& [target, patch, result] : rows) {
    json::Value value = *json::parse(target);
    merge_sorted(value, *json::parse(patch));
    EXPECT_EQ(json::print(value), result) << target << " " << patch;
  }
}

TEST(entities, a_chunk_is_all_or_nothing) {
  Stage s;
  s.model();
  Heard h = s.say("POST", "/entity/JSON/m/1", R"([{"n":1},{"n":"bad"}])");
  EXPECT_EQ(h.code(), "INCOMPATIBLE_TYPE");
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  h = s.say("POST", "/entity/JSON/m/1?transactionWindow=1", R"([{"n":1},{"n":"bad"},{"n":3}])");
  EXPECT_EQ(h.status, 200);
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 1);
}

TEST(entities, ids_of_one_model_stand_together_and_in_order) {
  Dice dice({1, 2});
  std::string last;
  for (size_t i = 0; i < 1000; ++i) {
    std::string id = new_entity_id(dice, 1'700'000'000 * kSecond, i, "m", 1);
    EXPECT_TRUE(is_uuid(id));
    EXPECT_EQ(id[14], '1');
    EXPECT_LT(last, id);
    EXPECT_TRUE(entity_key("t", id).starts_with(entity_prefix("t", "m", 1)));
    last = id;
  }
}

// More than one piece of those that were removed, between those that are there.
TEST(search, what_was_at_a_time_comes_by_id_whatever_became_of_it) {
  Stage s;
  s.model();
  std::vector<std::string> ids;
  for (int i = 0; i < 15; ++i) {
    std::string body = "[";
    for (int j = 0; j < 100; ++j)
      body += fmt::format(R"({}{{"n":{}}})", j ? "," : "", j);
    Heard made = s.say("POST", "/entity/JSON/m/1", body + "]");
    for (const json::Value& id : made.body.array()[0].find("entityIds")->array())
      ids.push_back(id.string());
  }
  std::string then = rfc3339(s.kernel.now());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % 10 == 0) continue;
    EXPECT_EQ(s.say("DELETE", "/entity/" + ids[i]).status, 200);
  }
  s.create();
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> found;
  for (int page = 0; page < 4; ++page) {
    Heard list = s.say(
        "GET", fmt::format("/entity/m/1?pageSize=400&pageNumber={}&pointInTime={}", page, then));
    for (const json::Value& e : list.body.array())
      found.emplace_back(e.find("meta")->string_or("id"));
  }
  EXPECT_EQ(found, ids);
}

TEST(search, types_are_checked_before_paths_and_only_where_a_value_is_looked_at) {
  Stage s;
  s.model();
  auto code = [&](const std::string& conditions) {
    return s
        .say("POST", "/search/direct/m/1",
             R"({"type":"group","operator":"AND","conditions":[)" + conditions + "]}")
        .code();
  };
  std::string lost = R"({"type":"simple","jsonPath":"$.zz","operatorType":"EQUALS","value":1})",
              wrong = R"({"type":"simple","jsonPath":"$.n","operatorType":"EQUALS","value":"x"})";
  EXPECT_EQ(code(lost), "INVALID_FIELD_PATH");
  EXPECT_EQ(code(lost + "," + wrong), "CONDITION_TYPE_MISMATCH");
  EXPECT_EQ(code(R"({"type":"simple","jsonPath":"$.n","operatorType":"IS_NULL","value":"x"})"), "");
  EXPECT_EQ(code(R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":{"a":1}})"),
            "CONDITION_TYPE_MISMATCH");
  EXPECT_EQ(code(R"({"type":"simple","jsonPath":"$.k","operatorType":"EQUALS","value":7})"), "");
}

TEST(search, what_is_sorted_by_must_be_a_field) {
  Stage s;
  s.model();
  const std::string all = R"({"type":"group","operator":"AND","conditions":[]})";
  EXPECT_EQ(s.say("POST", "/search/direct/m/1?sort=$.zz:asc", all).code(), "INVALID_FIELD_PATH");
  EXPECT_EQ(s.say("POST", "/search/direct/m/1?sort=$.n:desc,@state", all).status, 200);
}

TEST(search, an_index_gives_what_a_scan_gives) {
  Stage s;
  EXPECT_EQ(
      s.say("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":"a","n":1.5,"b":true})").status,
      200);
  EXPECT_EQ(s.say("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":1.5,"n":1})").status, 200);
  EXPECT_EQ(s.say("PUT", "/model/m/1/lock").status, 200);
  std::string all = "[";
  const char* values[] = {"\"\"", "\"a\"",         "\"ab\"", "\"b\"", "\"10\"", "\"-3\"", "\"Z\"",
                          "null", "\"a\\u0000b\"", "7",      "-3",    "0.5",    "10"};
  for (const char* v : values)
    for (int n : {-3, 0, 2, 10})
      all += (all.size() > 1 ? "," : "") +
             (R"({"k":)" + std::string(v) + R"(,"n":)" + std::to_string(n) + "}");
  EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", all + "]").status, 200);
  std::vector<std::string> questions;
  for (const char* path : {"$.k", "$.n"})
    for (const char* op : {"EQUALS", "GREATER_THAN", "LESS_THAN", "GREATER_OR_EQUAL",
                           "LESS_OR_EQUAL", "STARTS_WITH"})
      for (const char* v : {"\"a\"", "\"10\"", "10", "-3", "0", "\"\"", "0.5"})
        questions.push_back(fmt::format(
            R"({{"type":"simple","jsonPath":"{}","operatorType":"{}","value":{}}})", path, op, v));
  questions.push_back(
      R"({"type":"simple","jsonPath":"$.n","operatorType":"BETWEEN","value":[-3,2]})");
  auto answers = [&] {
    std::vector<std::string> out;
    for (const std::string& q : questions) {
      Heard h = s.say("POST", "/search/direct/m/1?sort=id", q);
      out.push_back(h.text);
    }
    return out;
  };
  std::vector<std::string> scanned = answers();
  EXPECT_EQ(s.say("PUT", "/model/m/1/indexes", R"(["$.k","$.n"])").status, 200);
  for (int i = 0;
       i < 2000 && s.say("GET", "/model/m/1/indexes").text.find("BUILDING") != std::string::npos;
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(
      s.say("POST", "/search/direct/m/1?explain=true", questions[0]).text.find("\"index\":\"$.k\""),
      std::string::npos);
  std::vector<std::string> indexed = answers();
  for (size_t i = 0; i < questions.size(); ++i)
    EXPECT_EQ(indexed[i], scanned[i]) << questions[i];
  EXPECT_EQ(s.kernel.verify(), "");
}

// Every operator against every kind of value, drawn by dice.
TEST(search, whatever_is_asked_an_index_gives_what_a_scan_gives) {
  const std::string values[] = {"null",
                                "true",
                                "false",
                                "0",
                                "-0.0",
                                "1",
                                "1.0",
                                "1e0",
                                "100",
                                "1e2",
                                "-3",
                                "0.1",
                                "12345678901234567890",
                                "12345678901234567891",
                                "1e400",
                                "-1e400",
                                "9007199254740993",
                                "\"\"",
                                "\"1\"",
                                "\"1.0\"",
                                "\"100\"",
                                "\"true\"",
                                "\"null\"",
                                "\"<nil>\"",
                                "\"a\"",
                                "\"A\"",
                                "\"ab\"",
                                "\"\\u00c4rger\"",
                                "\"\\u00e4rger\"",
                                "\"a\\u0000b\"",
                                "\"\\u00ff\"",
                                "\"q\\\"q\"",
                                "\"" + std::string(300, 'x') + "\"",
                                "\"" + std::string(300, 'x') + "y\""};
  // What the model does not know but a processor may give back.
  const std::string strange[] = {"[]", "[1,\"a\"]", "[null]", "[[1],\"100\"]", "{}", "{\"z\":1}"};
  const std::string operands[] = {"null",
                                  "true",
                                  "0",
                                  "1",
                                  "1.0",
                                  "1.5",
                                  "100",
                                  "-3",
                                  "12345678901234567890",
                                  "\"\"",
                                  "\"1\"",
                                  "\"1e0\"",
                                  "\"100\"",
                                  "\"a\"",
                                  "\"A\"",
                                  "\"ab\"",
                                  "\"\\u00c4rger\"",
                                  "\"a%\"",
                                  "\"" + std::string(300, 'x') + "\"",
                                  "\"" + std::string(260, 'x') + "\"",
                                  "\"[\"",
                                  "\"{\\\"z\\\":1}\""};
  Stage s;
  for (const char* sample : {R"({"k":"a","n":1})", R"({"k":1e400})", R"({"k":true})",
                             R"({"k":0.12345678901234567890123})"})
    EXPECT_EQ(s.say("POST", "/model/import/JSON/SAMPLE_DATA/m/1", sample).status, 200);
  EXPECT_EQ(s.say("PUT", "/model/m/1/lock").status, 200);
  Dice dice({42, 7});
  auto drawn = [&](const auto& from) { return from[dice.next() % std::size(from)]; };
  std::string all = "[{}";
  for (const std::string& v : values)
    all += R"(,{"k":)" + v + "}";
  for (int i = 0; i < 100; ++i)
    all += fmt::format(R"(,{{"k":{},"n":{}}})", drawn(values), i % 7);
  Heard made = s.say("POST", "/entity/JSON/m/1?transactionWindow=1000", all + "]");
  ASSERT_EQ(made.status, 200) << made.text;
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script);
  for (const std::string& v : strange) {
    HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + s.create("{}") + "/go", "{}");
    s.face->members().answered(member, script->request(script->calls().size() - 1), Call::processor,
                               {.data = R"({"k":)" + v + "}"});
    EXPECT_EQ(waiting->status, 200) << waiting->text;
  }
  std::vector<std::string> questions;
  auto simple = [](std::string_view op, const std::string& v) {
    return fmt::format(R"({{"type":"simple","jsonPath":"$.k","operatorType":"{}","value":{}}})", op,
                       v);
  };
  for (const condition::Operator& op : condition::operators()) {
    bool range = op.operand_kind == condition::OperandKind::range;
    for (const std::string& v : operands)
      questions.push_back(simple(
          op.name, range ? fmt::format("[{},{}]", drawn(std::to_array({"-1e400", "0", "1", "-3"})),
                                       drawn(std::to_array({"0", "100", "1e400"})))
                         : v));
  }
  for (int i = 0; i < 200; ++i) {
    const condition::Operator& op =
        condition::operators()[dice.next() % condition::operators().size()];
    if (op.operand_kind == condition::OperandKind::range) continue;
    questions.push_back(fmt::format(
        R"({{"type":"group","operator":"{}","conditions":[{},{},{{"type":"simple","jsonPath":"$.n","operatorType":"LESS_THAN","value":{}}}]}})",
        drawn(std::to_array({"AND", "OR"})), simple(op.name, drawn(operands)),
        simple("NOT_EQUAL", drawn(operands)), dice.next() % 7));
  }
  auto answers = [&] {
    std::vector<std::string> out;
    for (const std::string& q : questions)
      out.push_back(s.say("POST", "/search/direct/m/1?sort=id&limit=10000", q).text);
    return out;
  };
  std::vector<std::string> scanned = answers();
  EXPECT_EQ(s.say("PUT", "/model/m/1/indexes", R"(["$.k","$.n"])").status, 200);
  for (int i = 0;
       i < 2000 && s.say("GET", "/model/m/1/indexes").text.find("BUILDING") != std::string::npos;
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(
      s.say("POST", "/search/direct/m/1?explain=true", simple("EQUALS", "1")).text.find("INDEX"),
      std::string::npos);
  std::vector<std::string> indexed = answers();
  for (size_t i = 0; i < questions.size(); ++i)
    EXPECT_EQ(indexed[i], scanned[i]) << questions[i];
}

TEST(search, one_inside_a_transaction_sorts_too_and_a_job_is_outside) {
  Stage s;
  s.model();
  s.processors(processor("p", "SYNC"));
  auto script = std::make_shared<Script>();
  std::string member = s.join(script), id = s.create(R"({"n":2})");
  HeardPtr waiting = s.begin("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  wire::Headers token{{"X-Tx-Token", script->token(0)}};
  for (int n : {1, 3, 0})
    EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", fmt::format(R"({{"n":{}}})", n), token).status,
              200);
  const std::string every = R"({"type":"group","operator":"AND","conditions":[]})";
  auto order = [](const json::Array& found) {
    std::string out;
    for (const json::Value& e : found)
      out += json::print(*e.find("data"));
    return out;
  };
  EXPECT_EQ(order(s.say("POST", "/search/m/1?sort=$.n:desc", every, token).body.array()),
            R"({"n":3}{"n":2}{"n":1}{"n":0})");
  std::string lines = s.say("POST", "/search/direct/m/1?sort=$.n&limit=2", every, token).text;
  EXPECT_LT(lines.find(R"({"n":0})"), lines.find(R"({"n":1})"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  std::string child = s.say("POST", "/entity/JSON/m/1", "{}", token)
                          .body.array()[0]
                          .find("entityIds")
                          ->array()[0]
                          .string();
  EXPECT_EQ(s.say("GET", "/entity/" + child + "/transitions", "", token).text, R"(["go"])");
  EXPECT_EQ(s.say("GET", "/entity/" + child + "/transitions").status, 404);
  // A message is there at once, whatever becomes of the transaction.
  std::string message = s.say("POST", "/message/new/s", R"({"payload":1})",
                              {{"X-Tx-Token", script->token(0)},
                               {"Content-Type", "application/json"},
                               {"Content-Length", "13"}})
                            .body.array()[0]
                            .find("entityIds")
                            ->array()[0]
                            .string();
  EXPECT_EQ(s.say("GET", "/message/" + message, "", token).status, 200);
  EXPECT_EQ(s.say("POST", "/search/async/m/1", every, {{"X-Tx-Token", "no such token"}}).status,
            409);
  std::string job = s.say("POST", "/search/async/m/1", every, token).body.string();
  std::string status;
  for (int i = 0; i < 2000 && status.find("SUCCESSFUL") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = s.say("GET", "/search/async/" + job + "/status").text;
  }
  EXPECT_NE(status.find("\"entitiesCount\":1"), std::string::npos) << status;
  EXPECT_EQ(s.say("DELETE", "/entity/m/1", "", token).status, 200);
  s.face->members().answered(member, script->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(search, a_job_that_is_asked_for_twice_under_one_key_is_one_job) {
  Stage s;
  s.model();
  s.create();
  const std::string every = R"({"type":"group","operator":"AND","conditions":[]})";
  auto ask = [&] {
    return s.say("POST", "/search/async/m/1", every, {{"Idempotency-Key", "k"}}).text;
  };
  std::string job = ask();
  auto page = [&] { return s.say("GET", "/search/async/" + job.substr(1, job.size() - 2)); };
  for (int i = 0; i < 2000 && page().status != 200; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::string before = page().text;
  s.create();
  EXPECT_EQ(ask(), job);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(page().text, before);
}

TEST(indexes, one_that_is_declared_while_another_is_filled_waits_for_its_own_entries) {
  Stage s;
  s.model();
  s.create();
  EXPECT_EQ(s.say("PUT", "/model/m/1/indexes", R"(["$.k"])").status, 200);
  for (int i = 0;
       i < 2000 && s.say("GET", "/model/m/1/indexes").text.find("BUILDING") != std::string::npos;
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Past the service, so that nothing is filled behind our back.
  auto act = [&](std::string verb, json::Value body) {
    Input input{.program = "entities",
                .verb = std::move(verb),
                .body = json::print(body),
                .caller = {"t", "system", ""}};
    s.kernel.submit(std::move(input),
                    [](Result<Answer> a) { EXPECT_TRUE(a) << a.error().message; });
  };
  auto filled = [&](std::initializer_list<size_t> which) {
    json::Array list;
    auto model = *s.face->service().model("t", "m", 1);
    for (size_t i : which)
      list.push_back(
          json::object({{"path", model->indexes[i].path}, {"since", model->indexes[i].since}}));
    act("model.fill",
        json::object(
            {{"name", "m"}, {"version", 1}, {"ids", json::Array()}, {"filled", std::move(list)}}));
    return s.say("GET", "/model/m/1/indexes").text;
  };
  act("model.indexes",
      json::object({{"name", "m"}, {"version", 1}, {"fields", json::Array{"$.k", "$.n"}}}));
  EXPECT_NE(filled({0}).find("BUILDING"), std::string::npos)
      << "the filling that ends began before $.n was declared";
  EXPECT_EQ(filled({0, 1}).find("BUILDING"), std::string::npos);
}

TEST(search, a_result_of_any_size_is_a_snapshot_without_a_cut) {
  Stage s;
  s.model();
  std::string all = "[";
  for (int i = 0; i < 1005; ++i)
    all += (i ? "," : "") + (R"({"n":)" + std::to_string(i) + "}");
  EXPECT_EQ(s.say("POST", "/entity/JSON/m/1", all + "]").status, 200);
  std::string job = s.say("POST", "/search/async/m/1",
                          R"({"type":"simple","jsonPath":"$.n","operatorType":"NOT_NULL"})")
                        .body.string();
  EXPECT_EQ(s.say("DELETE", "/entity/m/1").status, 200);
  Heard status;
  for (int i = 0; i < 2000 && (status = s.say("GET", "/search/async/" + job + "/status"))
                                      .body.string_or("searchJobStatus") == "RUNNING";
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(status.body.find("entitiesCount")->as_int64(), 1005);
  Heard page = s.say("GET", "/search/async/" + job + "?pageSize=1000&pageNumber=1");
  EXPECT_EQ(page.body.find("content")->array().size(), 5u);
}

TEST(search, a_job_is_let_go_of_when_its_time_is_over) {
  Stage s;
  s.model();
  s.create();
  std::string job = s.say("POST", "/search/async/m/1",
                          R"({"type":"simple","jsonPath":"$.n","operatorType":"NOT_NULL"})")
                        .body.string();
  for (int i = 0;
       i < 2000 &&
       s.say("GET", "/search/async/" + job + "/status").body.string_or("searchJobStatus") ==
           "RUNNING";
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(s.kernel.timers.size(), 1u);
  Input due;
  due.verb = "timer";
  due.settles = s.kernel.timers[0].id;
  s.kernel.submit(std::move(due), [](Result<Answer> a) { EXPECT_TRUE(a); });
  EXPECT_EQ(s.say("GET", "/search/async/" + job).code(), "SEARCH_JOB_NOT_FOUND");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(entities, very_many_are_removed_in_turns_of_their_own) {
  Stage s;
  s.model();
  for (int i = 0; i < 11; ++i) {
    std::string all = "[";
    for (int j = 0; j < 1000; ++j)
      all += (j ? "," : "") + (R"({"n":)" + std::to_string(j) + "}");
    ASSERT_EQ(s.say("POST", "/entity/JSON/m/1?transactionWindow=1000", all + "]").status, 200);
  }
  Heard asked = s.say("DELETE", "/entity/m/1", R"({"type":"function","function":{"name":"old"}})");
  EXPECT_EQ(asked.status, 400) << asked.text;
  Heard h =
      s.say("DELETE", "/entity/m/1",
            R"({"type":"simple","jsonPath":"$.n","operatorType":"GREATER_THAN","value":499})");
  EXPECT_EQ(h.body.find("deleteResult")->find("numberOfEntititesRemoved")->as_int64(), 5500)
      << h.text;
  EXPECT_EQ(s.say("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 5500);
  EXPECT_EQ(
      s.say("PUT", "/model/m/1/unlock").body.find("properties")->find("entityCount")->as_int64(),
      5500);
}

TEST(http, browsers_on_the_own_machine_may_call_and_others_when_listed) {
  Stage s;
  wire::Dialect own = s.face->dialect();
  EXPECT_EQ(own.cors("http://localhost:3000").allow_origin, "http://localhost:3000");
  EXPECT_EQ(own.cors("http://[::1]:3000").allow_origin, "http://[::1]:3000");
  EXPECT_EQ(own.cors("http://localhost.evil.example").allow_origin, "");
  EXPECT_EQ(own.cors("https://evil.example").allow_origin, "");
  FaceOptions listed;
  listed.cors_origins = "https://a.example,https://b.example";
  Face face(s.kernel, listed);
  EXPECT_EQ(face.dialect().cors("https://b.example").allow_origin, "https://b.example");
}

TEST(counts, follow_every_move_and_a_restart) {
  Stage s;
  s.model();
  std::string id = s.create(), other = s.create();
  EXPECT_EQ(s.say("PUT", "/entity/JSON/" + id + "/DELETE", R"({"n":1})").status, 200);
  EXPECT_EQ(s.say("DELETE", "/entity/" + other).status, 200);
  std::string live = s.say("GET", "/entity/stats/states/m/1").text;
  EXPECT_EQ(live, R"([{"modelName":"m","modelVersion":1,"state":"DELETED","count":1}])");
  Counts again(s.kernel);
  EXPECT_TRUE(again.start());
  EXPECT_EQ(again.total("t", "m", 1), 1);
  EXPECT_EQ(again.of("t").rows()[0].state, "DELETED");
}

}  // namespace
}  // namespace pawl::entities
