// Compute members: keepalives, timeouts, retries, late answers and lost connections.

#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

// A background whose time the test sets and whose loop runs on the thread of the test.
class ManualBackground final : public Background {
 public:
  Time steady_now() const override { return now_; }
  std::unique_ptr<BackgroundLoop> loop(std::string, Step step) override {
    step_ = std::move(step);
    return std::make_unique<Loop>(due_);
  }
  std::unique_ptr<BackgroundPool> pool(std::string, size_t, size_t) override { return nullptr; }
  // Runs every step that is due until then.
  void run_until(Time then) {
    while (due_ <= then) {
      now_ = std::max(now_, due_);
      due_ = BackgroundLoop::kNever;
      due_ = std::min(due_, step_());
    }
    now_ = then;
  }

 private:
  struct Loop final : BackgroundLoop {
    explicit Loop(Time& due) : due(due) {}
    void wake() override { due = 0; }
    Time& due;
  };
  Time now_ = kSecond;
  Time due_ = 0;
  Step step_;
};

// Stores the types of the events it gets.
class EventList final : public MemberStream {
 public:
  void send(MemberEvent event) override { types.push_back(event.type); }
  void end_unresponsive() override { types.push_back("end"); }
  std::vector<std::string> types;
};

TEST(members, a_silent_member_is_ended_after_the_keepalive_timeout) {
  TestKernelAccess kernel;
  ManualBackground background;
  Members members(kernel, background, {});
  members.start();
  auto stream = std::make_shared<EventList>();
  auto second = std::make_shared<EventList>();
  members.join(stream, "t", {"x"});
  const std::string alive = members.join(second, "t", {"x"});
  using Types = std::vector<std::string>;
  background.run_until(10 * kSecond);
  EXPECT_EQ(stream->types, Types({"CalculationMemberGreetEvent"}));
  background.run_until(11 * kSecond);
  EXPECT_EQ(stream->types.back(), "CalculationMemberKeepAliveEvent");
  background.run_until(30 * kSecond);
  EXPECT_EQ(stream->types.back(), "CalculationMemberKeepAliveEvent");
  members.alive(alive);
  background.run_until(31 * kSecond);
  EXPECT_EQ(std::count(stream->types.begin(), stream->types.end(), "end"), 1);
  EXPECT_EQ(std::count(second->types.begin(), second->types.end(), "end"), 0);
  background.run_until(60 * kSecond);
  EXPECT_EQ(std::count(second->types.begin(), second->types.end(), "end"), 1);
}

TEST(members, late_repeated_and_foreign_answers_are_ignored) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>(), stranger = std::make_shared<FakeMember>();
  std::string member = s.join(fake), other = s.join(stranger, {"y"}), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.face->members().answered(member, "no-such-request", Call::processor, {.data = R"({"n":66})"});
  s.face->members().answered(other, fake->request(0), Call::processor, {.data = R"({"n":66})"});
  EXPECT_EQ(waiting->status, 0);
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":66})"});
  EXPECT_EQ(waiting->status, 200);
  EXPECT_EQ(s.data(id), R"({"n":3})");
}

TEST(members, a_timed_out_call_changes_nothing) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC", R"(,"responseTimeoutMs":50)"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponse h = s.send("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  EXPECT_EQ(h.code(), "WORKFLOW_FAILED");
  EXPECT_NE(h.text.find("timed out after 50ms"), std::string::npos);
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":66})"});
  EXPECT_EQ(s.state(id) + s.data(id), R"(A{"k":"a","n":1})");
  EXPECT_EQ(s.kernel.open_turns(), 0u);
}

TEST(members, a_timeout_of_max_int64_does_not_overflow) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC", R"(,"responseTimeoutMs":9223372036854775807)"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  // A call that times out at once would have done so by now.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  s.face->members().answered(member, fake->request(0), Call::processor, {.data = R"({"n":3})"});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
}

TEST(members, a_retry_policy_makes_three_attempts_with_one_request_id) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC", R"(,"retryPolicy":"FIXED")"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  for (size_t attempt = 0; attempt < 3; ++attempt) {
    s.wait_until([&] { return fake->calls().size() > attempt; });
    ASSERT_EQ(fake->calls().size(), attempt + 1);
    EXPECT_EQ(fake->request(attempt), fake->request(0));
    EXPECT_EQ(waiting->status, 0);
    s.face->members().answered(member, fake->request(0), Call::processor,
                               {.kind = CallResult::failed, .message = "not now"});
  }
  EXPECT_EQ(waiting->code(), "WORKFLOW_FAILED");
}

TEST(members, a_failed_attempt_undoes_its_callbacks) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC", R"(,"retryPolicy":"EXPONENTIAL")"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  for (size_t attempt = 0; attempt < 2; ++attempt) {
    s.wait_until([&] { return fake->calls().size() > attempt; });
    ASSERT_EQ(fake->calls().size(), attempt + 1);
    wire::Headers token{{"X-Tx-Token", fake->token(attempt)}};
    EXPECT_EQ(
        s.send("POST", "/entity/JSON/m/1", fmt::format(R"({{"k":"child {}"}})", attempt), token)
            .status,
        200);
    EXPECT_EQ(s.send("GET", "/entity/m/1", "", token).body.array().size(), 2u);
    CallResult result;
    if (attempt == 0) result.kind = CallResult::failed;
    s.face->members().answered(member, fake->request(0), Call::processor, std::move(result));
  }
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  TestResponse all = s.send("GET", "/entity/m/1");
  EXPECT_EQ(all.body.array().size(), 2u);
  EXPECT_EQ(all.text.find("child 0"), std::string::npos);
  EXPECT_NE(all.text.find("child 1"), std::string::npos);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(members, a_retried_joined_write_undoes_only_its_own_callbacks) {
  FaceFixture s;
  s.add_model();
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"outer","next":"B","manual":true,"processors":[)" +
      processor("p", "SYNC") + R"(]},{"name":"inner","next":"B","manual":true,"processors":[)" +
      processor("q", "SYNC", R"(,"retryPolicy":"FIXED")") + R"(]}]},"B":{}})");
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), first = s.create(), second = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + first + "/outer", R"({"n":2})");
  wire::Headers outer{{"X-Tx-Token", fake->token(0)}};
  TestResponsePtr nested = s.start("PUT", "/entity/JSON/" + second + "/inner", R"({"n":3})", outer);
  for (size_t attempt = 0; attempt < 2; ++attempt) {
    s.wait_until([&] { return fake->calls().size() > attempt + 1; });
    ASSERT_EQ(fake->calls().size(), attempt + 2);
    wire::Headers inner{{"X-Tx-Token", fake->token(attempt + 1)}};
    EXPECT_EQ(
        s.send("POST", "/entity/JSON/m/1", fmt::format(R"({{"k":"inner {}"}})", attempt), inner)
            .status,
        200);
    EXPECT_EQ(
        s.send("POST", "/entity/JSON/m/1", fmt::format(R"({{"k":"outer {}"}})", attempt), outer)
            .status,
        200);
    CallResult result;
    if (attempt == 0) result.kind = CallResult::failed;
    s.face->members().answered(member, fake->request(1), Call::processor, std::move(result));
  }
  EXPECT_EQ(nested->status, 200) << nested->text;
  s.face->members().answered(member, fake->request(0), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  TestResponse all = s.send("GET", "/entity/m/1");
  EXPECT_EQ(all.text.find("inner 0"), std::string::npos);
  for (const char* there : {"inner 1", "outer 0", "outer 1"})
    EXPECT_NE(all.text.find(there), std::string::npos) << there;
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 5);
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(members, the_reason_of_a_mismatch_is_reported) {
  FaceFixture s;
  s.add_model();
  const std::string f =
      R"("criterion":{"type":"function","function":{"name":"f","config":{"calculationNodesTags":"x"}}})";
  s.import_workflow(R"({"A":{"transitions":[{"name":"auto","next":"B",)" + f +
                    R"(},{"name":"go","next":"B","manual":true,)" + f + "}]},\"B\":{}}");
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake);
  TestResponsePtr waiting = s.start("POST", "/entity/JSON/m/1", R"({"n":1})");
  s.face->members().answered(member, fake->request(0), Call::criterion, {.message = "too young"});
  ASSERT_EQ(waiting->status, 200) << waiting->text;
  std::string id(fake->calls()[0].string_or("entityId"));
  TestResponse trail = s.send("GET", "/audit/entity/" + id + "?eventType=StateMachine");
  EXPECT_NE(trail.text.find(R"("data":{"reason":"too young"})"), std::string::npos) << trail.text;
  waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":1})");
  s.face->members().answered(member, fake->request(1), Call::criterion, {.message = "too old"});
  EXPECT_NE(waiting->text.find("criterion not matched: too old"), std::string::npos)
      << waiting->text;
  waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":1})");
  s.face->members().answered(member, fake->request(2), Call::criterion, {});
  EXPECT_NE(waiting->text.find("criterion not matched\""), std::string::npos) << waiting->text;
  EXPECT_EQ(s.kernel.verify(), "");
}

TEST(members, a_disconnect_fails_the_open_calls_of_the_member) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create();
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})");
  s.face->members().leave(member);
  EXPECT_EQ(waiting->status, 503);
  EXPECT_EQ(waiting->code(), "COMPUTE_MEMBER_DISCONNECTED");
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id + "/go", R"({"n":2})").code(),
            "NO_COMPUTE_MEMBER_FOR_TAG");
}

TEST(members, only_members_of_the_same_tenant_are_asked) {
  FaceFixture s;
  s.add_model();
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  s.face->members().join(fake, "another", {"x"});
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + s.create() + "/go", R"({"n":2})").code(),
            "NO_COMPUTE_MEMBER_FOR_TAG");
  EXPECT_TRUE(fake->calls().empty());
}

}  // namespace
}  // namespace pawl::entities
