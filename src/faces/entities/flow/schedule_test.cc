// Scheduled transitions whose time a member chooses.

#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

constexpr const char* kFlow =
    R"({"A":{"transitions":[{"name":"late","next":"B","schedule":{"function":
    {"name":"when","resultKind":"Schedule","calculationNodesTags":"x","context":"c"}}}]},"B":{}})";

std::string answer(std::string_view result, std::string_view kind = "Schedule") {
  return canonical(json::object({{"resultKind", kind}, {"result", *json::parse(result)}}));
}

struct Timed : FaceFixture {
  Timed() {
    add_model();
    import_workflow(kFlow);
    member = join(fake);
  }
  // Creates an entity; the member answers with this data.
  TestResponse create_with(std::string data) {
    TestResponsePtr waiting = start("POST", "/entity/JSON/m/1", R"({"n":1})");
    face->members().answered(member, fake->request(fake->calls().size() - 1), Call::schedule,
                             {.data = std::move(data)});
    return *waiting;
  }
  std::string trail(const std::string& id) { return send("GET", "/audit/entity/" + id).text; }
  std::shared_ptr<FakeMember> fake = std::make_shared<FakeMember>();
  std::string member;
};

std::string id_of(const TestResponse& h) {
  return h.body.array()[0].find("entityIds")->array()[0].string();
}

TEST(schedule_function, the_member_is_asked_before_the_commit) {
  Timed s;
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"({"n":1})");
  ASSERT_EQ(s.fake->calls().size(), 1u);
  const json::Value call = s.fake->calls()[0];
  EXPECT_EQ(call.string_or("functionName"), "when");
  EXPECT_EQ(call.string_or("parameters"), "c");
  EXPECT_EQ(call.find("transition")->string_or("name"), "late");
  EXPECT_EQ(json::print(*call.find("payload")->find("data")), R"({"n":1})");
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  // An answer of another kind is ignored.
  s.face->members().answered(s.member, s.fake->request(0), Call::processor, {.data = R"({"n":9})"});
  EXPECT_EQ(waiting->status, 0);
  s.face->members().answered(s.member, s.fake->request(0), Call::schedule,
                             {.data = answer(R"({"fireAfterMs":5000,"expireAfterMs":1000})")});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  ASSERT_EQ(s.kernel.timers.size(), 1u);
  auto due = parse_timer_id(s.kernel.timers[0].id);
  ASSERT_TRUE(due);
  EXPECT_EQ(due->at, s.kernel.timers[0].due);
  EXPECT_EQ(due->expires - due->at, 1000 * kMillisecond);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(schedule_function, every_save_in_the_state_asks_again) {
  Timed s;
  std::string id = id_of(s.create_with(answer(R"({"fireAt":1800000000000})")));
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id, R"({"n":2})");
  ASSERT_EQ(s.fake->calls().size(), 2u);
  s.face->members().answered(s.member, s.fake->request(1), Call::schedule,
                             {.data = answer(R"({"fireAt":1900000000000})")});
  EXPECT_EQ(waiting->status, 200);
  ASSERT_EQ(s.kernel.timers.size(), 2u);
  EXPECT_EQ(s.kernel.timers[1].due, 1900000000000 * kMillisecond);
  EXPECT_EQ(s.trail(id).find("SCHEDULED_TRANSITION_CANCEL"), std::string::npos);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(schedule_function, a_timer_that_expires_before_it_is_due_is_not_armed) {
  Timed s;
  TestResponse made = s.create_with(answer(R"({"fireAfterMs":5000,"expireAfterMs":0})"));
  ASSERT_EQ(made.status, 200) << made.text;
  EXPECT_TRUE(s.kernel.timers.empty());
  EXPECT_NE(s.trail(id_of(made)).find("SCHEDULED_TRANSITION_EXPIRE"), std::string::npos);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(schedule_function, times_out_of_range_become_the_first_or_last) {
  Timed s;
  TestResponse made =
      s.create_with(answer(R"({"fireAt":-9223372036854,"expireAfterMs":-9223372036854})"));
  ASSERT_EQ(made.status, 200) << made.text;
  ASSERT_EQ(s.kernel.timers.size(), 1u);
  EXPECT_EQ(s.kernel.timers[0].due, 0);
  FaceFixture plain;
  plain.add_model();
  plain.import_workflow(
      R"({"A":{"transitions":[{"name":"late","next":"B","schedule":{"delayMs":9223372036854775807,"timeoutMs":9223372036854775807}}]},"B":{}})");
  std::string id = plain.create();
  ASSERT_EQ(plain.kernel.timers.size(), 1u);
  EXPECT_EQ(plain.kernel.timers[0].due, INT64_MAX);
  EXPECT_EQ(parse_timer_id(plain.kernel.timers[0].id)->expires, INT64_MAX);
  Input due;
  due.verb = "timer";
  due.settles = plain.kernel.timers[0].id;
  plain.kernel.submit(std::move(due), [](Result<Answer> a) { EXPECT_TRUE(a); });
  EXPECT_EQ(plain.state(id), "B");
}

TEST(schedule_function, an_invalid_schedule_refuses_the_write) {
  const std::string bad[] = {answer(R"({"fireAt":1})", "Number"),
                             answer("null"),
                             answer("{}"),
                             answer(R"({"fireAt":1,"fireAfterMs":1})"),
                             answer(R"({"fireAt":1,"expireAt":2,"expireAfterMs":2})"),
                             answer(R"({"fireAt":"soon"})"),
                             answer(R"({"fireAt":1.5})"),
                             answer(R"({"fireAt":1,"other":2})"),
                             answer(R"({"fireAfterMs":9223372036854775807})")};
  for (const std::string& one : bad) {
    Timed s;
    TestResponse made = s.create_with(one);
    EXPECT_EQ(made.status, 500) << one;
    EXPECT_EQ(made.code(), "SCHEDULE_FUNCTION_INVALID_RESULT") << one;
    EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
  }
}

TEST(schedule_function, a_missing_member_refuses_the_write) {
  Timed s;
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().leave(s.member);
  EXPECT_EQ(waiting->status, 503);
  EXPECT_EQ(waiting->code(), "COMPUTE_MEMBER_DISCONNECTED");
  EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"n":1})").code(), "NO_COMPUTE_MEMBER_FOR_TAG");
}

TEST(schedule_function, a_dispatch_arms_the_source_state) {
  Timed s;
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"late","next":"B","schedule":{"function":{"name":"when","resultKind":"Schedule","calculationNodesTags":"x"}}},
      {"name":"go","next":"B","manual":true,"processors":[{"type":"EXTERNAL","name":"p","executionMode":"COMMIT_BEFORE_DISPATCH","config":{"calculationNodesTags":"x"}}]}]},"B":{}})");
  std::string id = id_of(s.create_with(answer(R"({"fireAfterMs":5000})")));
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  ASSERT_EQ(s.fake->calls().size(), 2u);
  s.face->members().answered(s.member, s.fake->request(1), Call::schedule,
                             {.data = answer(R"({"fireAfterMs":7000})")});
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"n":2})");
  ASSERT_EQ(s.kernel.timers.size(), 2u);
  ASSERT_EQ(s.fake->calls().size(), 3u);
  s.face->members().answered(s.member, s.fake->request(2), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(schedule_function, import_refuses_invalid_schedules) {
  FaceFixture s;
  s.add_model();
  const char* bad[] = {
      R"({})",
      R"({"delayMs":0})",
      R"({"delayMs":5,"function":{"name":"f","resultKind":"Schedule","calculationNodesTags":"x"}})",
      R"({"function":{"resultKind":"Schedule","calculationNodesTags":"x"}})",
      R"({"function":{"name":"f","calculationNodesTags":"x"}})",
      R"({"function":{"name":"f","resultKind":"Schedule"}})",
      R"({"timeoutMs":5,"function":{"name":"f","resultKind":"Schedule","calculationNodesTags":"x"}})"};
  auto import = [&](std::string_view transition) {
    return s
        .send(
            "POST", "/model/m/1/workflow/import",
            fmt::format(
                R"({{"workflows":[{{"name":"w","initialState":"A","states":{{"A":{{"transitions":[{}]}},"B":{{}}}}}}]}})",
                transition))
        .code();
  };
  for (const char* schedule : bad)
    EXPECT_EQ(import(fmt::format(R"({{"name":"t","next":"B","schedule":{}}})", schedule)),
              "VALIDATION_FAILED")
        << schedule;
  EXPECT_EQ(import(R"({"name":"t","next":"B","manual":true,"schedule":{"delayMs":5}})"),
            "VALIDATION_FAILED");
  EXPECT_EQ(import(R"({"name":"t","next":"B","schedule":{"delayMs":5,"timeoutMs":0}})"), "");
}

}  // namespace
}  // namespace pawl::entities
