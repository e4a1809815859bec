#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

// The removed entities are read in more than one piece, between the existing ones.
TEST(search, a_search_at_a_time_finds_removed_entities_in_id_order) {
  FaceFixture s;
  s.add_model();
  std::vector<std::string> ids;
  for (int i = 0; i < 15; ++i) {
    std::string body = "[";
    for (int j = 0; j < 100; ++j)
      body += fmt::format(R"({}{{"n":{}}})", j ? "," : "", j);
    TestResponse made = s.send("POST", "/entity/JSON/m/1", body + "]");
    for (const json::Value& id : made.body.array()[0].find("entityIds")->array())
      ids.push_back(id.string());
  }
  std::string then = rfc3339(s.kernel.now());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % 10 == 0) continue;
    EXPECT_EQ(s.send("DELETE", "/entity/" + ids[i]).status, 200);
  }
  s.create();
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> found;
  for (int page = 0; page < 4; ++page) {
    TestResponse list = s.send(
        "GET", fmt::format("/entity/m/1?pageSize=400&pageNumber={}&pointInTime={}", page, then));
    for (const json::Value& e : list.body.array())
      found.emplace_back(e.find("meta")->string_or("id"));
  }
  EXPECT_EQ(found, ids);
}

TEST(search, types_are_checked_before_paths_where_the_operator_uses_the_value) {
  FaceFixture s;
  s.add_model();
  auto code = [&](const std::string& conditions) {
    return s
        .send("POST", "/search/direct/m/1",
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

TEST(search, a_sort_key_must_be_a_field) {
  FaceFixture s;
  s.add_model();
  const std::string all = R"({"type":"group","operator":"AND","conditions":[]})";
  EXPECT_EQ(s.send("POST", "/search/direct/m/1?sort=$.zz:asc", all).code(), "INVALID_FIELD_PATH");
  EXPECT_EQ(s.send("POST", "/search/direct/m/1?sort=$.n:desc,@state", all).status, 200);
}

std::vector<std::string> answers(FaceFixture& s, const std::vector<std::string>& conditions) {
  std::vector<std::string> out;
  for (const std::string& condition : conditions)
    out.push_back(s.send("POST", "/search/direct/m/1?sort=id&limit=10000", condition).text);
  return out;
}

// Runs the conditions before and after k and n have indexes; the answers must be the same.
void compare_index_with_scan(FaceFixture& s, const std::vector<std::string>& conditions,
                             const std::string& indexed_condition) {
  std::vector<std::string> scanned = answers(s, conditions);
  EXPECT_EQ(s.send("PUT", "/model/m/1/indexes", R"(["$.k","$.n"])").status, 200);
  s.wait_for_indexes();
  EXPECT_NE(s.send("POST", "/search/direct/m/1?explain=true", indexed_condition)
                .text.find("\"index\":\"$.k\""),
            std::string::npos);
  std::vector<std::string> indexed = answers(s, conditions);
  for (size_t i = 0; i < conditions.size(); ++i)
    EXPECT_EQ(indexed[i], scanned[i]) << conditions[i];
}

std::string simple(std::string_view path, std::string_view op, std::string_view value) {
  return fmt::format(R"({{"type":"simple","jsonPath":"{}","operatorType":"{}","value":{}}})", path,
                     op, value);
}

TEST(search, an_index_finds_what_a_scan_finds) {
  FaceFixture s;
  EXPECT_EQ(
      s.send("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":"a","n":1.5,"b":true})").status,
      200);
  EXPECT_EQ(s.send("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":1.5,"n":1})").status, 200);
  EXPECT_EQ(s.send("PUT", "/model/m/1/lock").status, 200);
  std::string all = "[";
  const char* values[] = {"\"\"", "\"a\"",         "\"ab\"", "\"b\"", "\"10\"", "\"-3\"", "\"Z\"",
                          "null", "\"a\\u0000b\"", "7",      "-3",    "0.5",    "10"};
  for (const char* v : values)
    for (int n : {-3, 0, 2, 10})
      all += (all.size() > 1 ? "," : "") +
             (R"({"k":)" + std::string(v) + R"(,"n":)" + std::to_string(n) + "}");
  EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", all + "]").status, 200);
  std::vector<std::string> conditions;
  for (const char* path : {"$.k", "$.n"})
    for (const char* op : {"EQUALS", "GREATER_THAN", "LESS_THAN", "GREATER_OR_EQUAL",
                           "LESS_OR_EQUAL", "STARTS_WITH"})
      for (const char* v : {"\"a\"", "\"10\"", "10", "-3", "0", "\"\"", "0.5"})
        conditions.push_back(simple(path, op, v));
  conditions.push_back(simple("$.n", "BETWEEN", "[-3,2]"));
  compare_index_with_scan(s, conditions, conditions[0]);
  EXPECT_EQ(s.kernel.verify(), "");
}

const std::string kLong(300, 'x');
// Values of field k.
const std::string kValues[] = {"null",
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
                               "\"" + kLong + "\"",
                               "\"" + kLong + "y\""};
// Values that the model does not know but a processor may return.
const std::string kUnknownValues[] = {"[]", "[1,\"a\"]", "[null]", "[[1],\"100\"]",
                                      "{}", "{\"z\":1}"};
const std::string kOperands[] = {"null",
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
                                 "\"" + kLong + "\"",
                                 "\"" + std::string(260, 'x') + "\"",
                                 "\"[\"",
                                 "\"{\\\"z\\\":1}\""};

template <class List>
auto drawn(Dice& dice, const List& list) {
  return list[dice.next() % std::size(list)];
}

// Creates entities with every value, and 100 with random ones.
void create_values(FaceFixture& s, Dice& dice) {
  for (const char* sample : {R"({"k":"a","n":1})", R"({"k":1e400})", R"({"k":true})",
                             R"({"k":0.12345678901234567890123})"})
    EXPECT_EQ(s.send("POST", "/model/import/JSON/SAMPLE_DATA/m/1", sample).status, 200);
  EXPECT_EQ(s.send("PUT", "/model/m/1/lock").status, 200);
  std::string all = "[{}";
  for (const std::string& v : kValues)
    all += R"(,{"k":)" + v + "}";
  for (int i = 0; i < 100; ++i)
    all += fmt::format(R"(,{{"k":{},"n":{}}})", drawn(dice, kValues), i % 7);
  TestResponse made = s.send("POST", "/entity/JSON/m/1?transactionWindow=1000", all + "]");
  ASSERT_EQ(made.status, 200) << made.text;
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  for (const std::string& v : kUnknownValues) {
    TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + s.create("{}") + "/go", "{}");
    s.face->members().answered(member, fake->request(fake->calls().size() - 1), Call::processor,
                               {.data = R"({"k":)" + v + "}"});
    EXPECT_EQ(waiting->status, 200) << waiting->text;
  }
}

// Every operator with every operand, then 200 random groups of conditions.
std::vector<std::string> drawn_conditions(Dice& dice) {
  const auto low = std::to_array<std::string>({"-1e400", "0", "1", "-3"});
  const auto high = std::to_array<std::string>({"0", "100", "1e400"});
  const auto groups = std::to_array<std::string>({"AND", "OR"});
  std::vector<std::string> out;
  for (const condition::Operator& op : condition::operators())
    for (const std::string& v : kOperands) {
      const bool range = op.operand_kind == condition::OperandKind::range;
      out.push_back(simple(
          "$.k", op.name, range ? fmt::format("[{},{}]", drawn(dice, low), drawn(dice, high)) : v));
    }
  for (int i = 0; i < 200; ++i) {
    const condition::Operator& op = drawn(dice, condition::operators());
    if (op.operand_kind == condition::OperandKind::range) continue;
    out.push_back(fmt::format(R"({{"type":"group","operator":"{}","conditions":[{},{},{}]}})",
                              drawn(dice, groups), simple("$.k", op.name, drawn(dice, kOperands)),
                              simple("$.k", "NOT_EQUAL", drawn(dice, kOperands)),
                              simple("$.n", "LESS_THAN", std::to_string(dice.next() % 7))));
  }
  return out;
}

TEST(search, every_operator_finds_the_same_with_an_index) {
  FaceFixture s;
  Dice dice({42, 7});
  create_values(s, dice);
  compare_index_with_scan(s, drawn_conditions(dice), simple("$.k", "EQUALS", "1"));
}

TEST(search, a_search_in_a_transaction_sorts_and_a_job_is_outside) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create(R"({"n":2})");
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  wire::Headers token{{"X-Tx-Token", fake->token(0)}};
  for (int n : {1, 3, 0})
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", fmt::format(R"({{"n":{}}})", n), token).status,
              200);
  const std::string every = R"({"type":"group","operator":"AND","conditions":[]})";
  auto order = [](const json::Array& found) {
    std::string out;
    for (const json::Value& e : found)
      out += json::print(*e.find("data"));
    return out;
  };
  EXPECT_EQ(order(s.send("POST", "/search/m/1?sort=$.n:desc", every, token).body.array()),
            R"({"n":3}{"n":2}{"n":1}{"n":0})");
  std::string lines = s.send("POST", "/search/direct/m/1?sort=$.n&limit=2", every, token).text;
  EXPECT_LT(lines.find(R"({"n":0})"), lines.find(R"({"n":1})"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  std::string child = s.send("POST", "/entity/JSON/m/1", "{}", token)
                          .body.array()[0]
                          .find("entityIds")
                          ->array()[0]
                          .string();
  EXPECT_EQ(s.send("GET", "/entity/" + child + "/transitions", "", token).text, R"(["go"])");
  EXPECT_EQ(s.send("GET", "/entity/" + child + "/transitions").status, 404);
  // A message is not part of the transaction and exists at once.
  std::string message = s.send("POST", "/message/new/s", R"({"payload":1})",
                               {{"X-Tx-Token", fake->token(0)},
                                {"Content-Type", "application/json"},
                                {"Content-Length", "13"}})
                            .body.array()[0]
                            .find("entityIds")
                            ->array()[0]
                            .string();
  EXPECT_EQ(s.send("GET", "/message/" + message, "", token).status, 200);
  EXPECT_EQ(s.send("POST", "/search/async/m/1", every, {{"X-Tx-Token", "no such token"}}).status,
            409);
  std::string job = s.send("POST", "/search/async/m/1", every, token).body.string();
  std::string status;
  s.wait_until([&] {
    status = s.send("GET", "/search/async/" + job + "/status").text;
    return status.find("SUCCESSFUL") != std::string::npos;
  });
  EXPECT_NE(status.find("\"entitiesCount\":1"), std::string::npos) << status;
  EXPECT_EQ(s.send("DELETE", "/entity/m/1", "", token).status, 200);
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(search, a_repeated_idempotency_key_returns_the_same_job) {
  FaceFixture s;
  s.add_model();
  s.create();
  const std::string every = R"({"type":"group","operator":"AND","conditions":[]})";
  auto ask = [&] {
    return s.send("POST", "/search/async/m/1", every, {{"Idempotency-Key", "k"}}).text;
  };
  std::string job = ask();
  auto page = [&] { return s.send("GET", "/search/async/" + job.substr(1, job.size() - 2)); };
  s.wait_until([&] { return page().status == 200; });
  std::string before = page().text;
  s.create();
  EXPECT_EQ(ask(), job);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(page().text, before);
}

TEST(indexes, an_index_declared_during_a_fill_is_not_ready_with_it) {
  FaceFixture s;
  s.add_model();
  s.create();
  EXPECT_EQ(s.send("PUT", "/model/m/1/indexes", R"(["$.k"])").status, 200);
  s.wait_for_indexes();
  // The verbs are called directly, so that the service fills nothing in the background.
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
    return s.send("GET", "/model/m/1/indexes").text;
  };
  act("model.indexes",
      json::object({{"name", "m"}, {"version", 1}, {"fields", json::Array{"$.k", "$.n"}}}));
  EXPECT_NE(filled({0}).find("BUILDING"), std::string::npos)
      << "the filling that ends began before $.n was declared";
  EXPECT_EQ(filled({0, 1}).find("BUILDING"), std::string::npos);
}

TEST(search, a_job_result_is_a_complete_snapshot) {
  FaceFixture s;
  s.add_model();
  std::string all = "[";
  for (int i = 0; i < 1005; ++i)
    all += (i ? "," : "") + (R"({"n":)" + std::to_string(i) + "}");
  EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", all + "]").status, 200);
  std::string job = s.send("POST", "/search/async/m/1",
                           R"({"type":"simple","jsonPath":"$.n","operatorType":"NOT_NULL"})")
                        .body.string();
  EXPECT_EQ(s.send("DELETE", "/entity/m/1").status, 200);
  TestResponse status;
  s.wait_until([&] {
    status = s.send("GET", "/search/async/" + job + "/status");
    return status.body.string_or("searchJobStatus") != "RUNNING";
  });
  EXPECT_EQ(status.body.find("entitiesCount")->as_int64(), 1005);
  TestResponse page = s.send("GET", "/search/async/" + job + "?pageSize=1000&pageNumber=1");
  EXPECT_EQ(page.body.find("content")->array().size(), 5u);
}

TEST(search, a_job_is_deleted_at_the_end_of_its_lifetime) {
  FaceFixture s;
  s.add_model();
  s.create();
  std::string job = s.send("POST", "/search/async/m/1",
                           R"({"type":"simple","jsonPath":"$.n","operatorType":"NOT_NULL"})")
                        .body.string();
  s.wait_until([&] {
    return s.send("GET", "/search/async/" + job + "/status").body.string_or("searchJobStatus") !=
           "RUNNING";
  });
  ASSERT_EQ(s.kernel.timers.size(), 1u);
  Input due;
  due.verb = "timer";
  due.settles = s.kernel.timers[0].id;
  s.kernel.submit(std::move(due), [](Result<Answer> a) { EXPECT_TRUE(a); });
  EXPECT_EQ(s.send("GET", "/search/async/" + job).code(), "SEARCH_JOB_NOT_FOUND");
  EXPECT_EQ(s.kernel.verify(), "");
}

std::string many_conditions(size_t count) {
  std::string out = R"({"type":"group","operator":"OR","conditions":[)";
  for (size_t i = 0; i < count; ++i)
    out += fmt::format(
        R"({}{{"type":"simple","jsonPath":"$.k","operatorType":"CONTAINS","value":"no{}"}})",
        i ? "," : "", i);
  return out + "]}";
}

TEST(search, too_many_conditions_are_refused_everywhere) {
  FaceFixture s;
  s.add_model();
  s.create();
  const std::string many = many_conditions(1000);
  EXPECT_EQ(s.send("POST", "/search/direct/m/1", many).status, 400);
  EXPECT_EQ(s.send("POST", "/search/async/m/1", many).status, 400);
  EXPECT_EQ(s.send("POST", "/search/direct/m/1", many_conditions(999)).status, 200);
}

TEST(search, a_search_ends_when_it_reads_too_much_or_is_told_to) {
  FaceFixture s;
  s.add_model();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(
        s.send("POST", "/entity/JSON/m/1", R"({"n":1,"k":")" + std::string(3'000'000, 'x') + "\"}")
            .status,
        200);
  Query query{.tenant = "t", .model = "m", .version = 1};
  size_t seen = 0;
  auto count = [&](const EntityView&) {
    ++seen;
    return true;
  };
  query.max_work = 5'000'000;
  auto plan = search(s.kernel.snapshot(), query, nullptr, count);
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().is(kSearchTooLong));
  EXPECT_EQ(seen, 1u);
  query.max_work = ~uint64_t{0};
  seen = 0;
  query.proceed = []() -> Result<void> { return fail(Code::unavailable, "GONE", "gone"); };
  plan = search(s.kernel.snapshot(), query, nullptr, count);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().reason, "GONE");
  EXPECT_EQ(seen, 1u) << "it is asked after some megabytes";
}

TEST(search, a_sorted_search_holds_about_twice_what_it_shows) {
  std::vector<SortKey> keys = *parse_sort({"$.n:desc", "@id"}, nullptr);
  SortedMatches matches(keys, 10);
  Entity e{.model = "m", .version = 1, .state = "A"};
  for (int i = 0; i < 5000; ++i) {
    e.id = std::to_string(i);
    e.data = R"({"n":)" + std::to_string(i * 7919 % 5000) + "}";
    matches.add(view_of(e));
    ASSERT_LE(matches.held(), 110u);
  }
  std::vector<Entity> found = matches.take();
  ASSERT_EQ(found.size(), 10u);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(found[static_cast<size_t>(i)].data, R"({"n":)" + std::to_string(4999 - i) + "}");
}

TEST(search, the_matches_that_a_search_holds_are_bounded) {
  FaceFixture s;
  s.add_model();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"n":1,"k":")" + std::string(1000, 'x') + "\"}")
                  .status,
              200);
  for (bool sorted : {false, true}) {
    size_t held = 0, seen = 0;
    Query query{.tenant = "t", .model = "m", .version = 1};
    if (sorted) query.sort = *parse_sort({"n"}, nullptr);
    query.limit = 1;
    query.hold = [&](size_t bytes) -> Result<void> {
      held += bytes;
      if (held <= 5000) return {};
      return fail(Code::exhausted, "SEARCH_MEMORY", "too much");
    };
    auto plan = search(s.kernel.snapshot(), query, nullptr, [&](const EntityView&) {
      ++seen;
      return true;
    });
    // A sort holds more matches than it shows.
    EXPECT_EQ(plan.has_value(), !sorted);
    EXPECT_EQ(seen, sorted ? 0u : 1u);
    EXPECT_EQ(plan ? "" : plan.error().reason, sorted ? "SEARCH_MEMORY" : "");
  }
}

}  // namespace
}  // namespace pawl::entities
