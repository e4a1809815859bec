// Rules: the three actions, the variables in their texts, the fields that they may set, and what
// triggers them.

#include <chrono>
#include <thread>

#include "embed/engine_parts.h"
#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/missions_test.h"
#include "faces/lifecycle/rule/cron.h"
#include "faces/lifecycle/rule/rules.h"
#include "faces/lifecycle/rule/substitute.h"
#include "json/text.h"

namespace pawl::lifecycle {

using namespace std::chrono_literals;

// Fields of small kinds, to reach the ends of their ranges.
struct Counter {
  std::string entity_id{}, phase = "a";
  std::uint8_t small = 0;
  std::int32_t number = 0;
  double amount = 0;
  std::string word{};
  static constexpr std::string_view workflow = "counter", bucket = "COUNTERS";
  static constexpr auto fields =
      lifecycle::fields(field<&Counter::entity_id>("entity_id", lifecycle::id),
                        field<&Counter::phase>("phase", lifecycle::phase),
                        field<&Counter::small>("small", operator_writable),
                        field<&Counter::number>("number", operator_writable),
                        field<&Counter::amount>("amount", operator_writable),
                        field<&Counter::word>("word", operator_writable));
  static constexpr auto transitions = table(from("a", "b"), from("b", "a"));
};

struct rules : Missions {
  void SetUp() override {
    Missions::SetUp();
    make("m1");
    ASSERT_TRUE(m.register_type<Counter>());
    ASSERT_TRUE(m.create(Counter{.entity_id = "c1"}));
  }
  result<revision> run(std::string_view id, std::string action, rule_context context = {}) {
    return m.run_action(id, action, context);
  }
  result<revision> set(std::string members, rule_context context = {}) {
    return run("c1", R"({"type":"lifecycle_transition","phase":"b","set":{)" + members + "}}",
               context);
  }
  bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 500; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
};

TEST_F(rules, variables_cannot_fill_the_memory) {
  const std::string message = R"({"x":")" + std::string(1'000'000, 'x') + "\"}";
  std::string reason;
  for (int i = 0; i < 10'000; ++i)
    reason += "$message.x";
  EXPECT_ERRC(
      run("m1", R"({"type":"lifecycle_fail","reason":")" + reason + "\"}", {.message = message}),
      errc::invalid_rule);
  EXPECT_TRUE(run("m1", R"({"type":"lifecycle_transition","phase":"flying","reason":"for $now"})",
                  {.message = message}));
}

TEST_F(rules, conditions_that_read_a_large_record_again_and_again_are_refused) {
  ASSERT_TRUE(m.update<Counter>("c1", [](Counter& c) { c.word = std::string(1'000'000, 'x'); }));
  std::string conditions;
  for (int i = 0; i < 10'000; ++i)
    conditions += (i ? "," : "") + std::string(R"({"field":"number","value":0})");
  EXPECT_ERRC(
      run("c1", R"({"type":"lifecycle_transition","phase":"b","when":[)" + conditions + "]}"),
      errc::invalid_rule);
}

// case 167
TEST_F(rules, a_rules_transition_names_the_rule) {
  ASSERT_TRUE(
      run("m1", R"({"type":"lifecycle_transition","workflow":"drone-survey","phase":"flying"})"));
  EXPECT_EQ(phase_of("m1"), "flying");
  EXPECT_EQ((*m.history<Mission>("m1"))[1].triggered, source::rule);
}
// case 168
TEST_F(rules, an_action_without_workflow_is_found_by_id) {
  EXPECT_TRUE(run("m1", R"({"type":"lifecycle_transition","phase":"flying"})"));
}
// case 169
TEST_F(rules, a_phase_may_come_from_the_message) {
  rule_context context;
  context.message = R"({"next_phase":"flying"})";
  EXPECT_TRUE(
      run("m1", R"({"type":"lifecycle_transition","phase":"$message.next_phase"})", context));
  EXPECT_ERRC(run("m1", R"({"type":"lifecycle_transition","phase":"$message.other"})", context),
              errc::unresolved_template);
  EXPECT_EQ(phase_of("m1"), "flying");
}
// case 170
TEST_F(rules, blanks_around_a_phase_are_trimmed) {
  EXPECT_TRUE(run("m1", R"({"type":"lifecycle_transition","phase":" flying "})"));
  EXPECT_FALSE(run("m1", R"({"type":"lifecycle_transition","phase":"  "})"));
}
// case 171
TEST_F(rules, an_action_needs_a_managed_entity) {
  for (auto type : {"lifecycle_transition", "lifecycle_complete", "lifecycle_fail"}) {
    std::string action = R"({"type":")" + std::string(type) + R"(","phase":"flying","reason":"x"})";
    EXPECT_ERRC(run("", action), errc::bad_id);
    EXPECT_ERRC(run("nobody", action), errc::entity_not_found);
  }
}
// case 172
TEST_F(rules, set_fields_and_phase_are_one_revision) {
  ASSERT_TRUE(m.update<Counter>("c1", [](Counter& c) { c.small = 5; }));
  revision before = m.get_with_revision<Counter>("c1")->second;
  ASSERT_TRUE(set(
      R"("word":"acme","number":{"op":"increment"},"small":{"op":"decrement"},"amount":{"op":"set","value":2.5})"));
  auto [now, at] = *m.get_with_revision<Counter>("c1");
  EXPECT_EQ(at, before + 1);
  EXPECT_EQ(now.word, "acme");
  EXPECT_EQ(now.number, 1);
  EXPECT_EQ(now.small, 4);
  EXPECT_EQ(now.amount, 2.5);
  EXPECT_EQ(now.phase, "b");
}
// case 173
TEST_F(rules, a_decrement_stops_at_zero_only_for_unsigned) {
  ASSERT_TRUE(set(R"("small":{"op":"decrement"},"number":{"op":"decrement"})"));
  EXPECT_EQ(m.get<Counter>("c1")->small, 0);
  EXPECT_EQ(m.get<Counter>("c1")->number, -1);
}
// case 174
TEST_F(rules, protected_fields_stop_the_action_before_the_transition) {
  for (auto name : {"entity_id", "phase", "nothing"})
    EXPECT_ERRC(set("\"" + std::string(name) + R"(":"x")"), errc::field_not_operator_writable);
  EXPECT_ERRC(
      run("m1", R"({"type":"lifecycle_transition","phase":"flying","set":{"internal_state":"x"}})"),
      errc::field_not_operator_writable);
  EXPECT_EQ(phase_of("m1"), "planning");
}
// case 175
TEST_F(rules, impossible_increments_store_nothing) {
  EXPECT_ERRC(set(R"("word":{"op":"increment"})"), errc::type_mismatch);
  EXPECT_ERRC(set(R"("number":{"op":"multiply"})"), errc::invalid_rule);
  EXPECT_ERRC(set(R"("number":{"op":"Increment"})"), errc::invalid_rule);
  EXPECT_EQ(m.get<Counter>("c1")->phase, "a");
}
// case 176
TEST_F(rules, null_sets_the_zero) {
  ASSERT_TRUE(m.update<Counter>("c1", [](Counter& c) { c.word = "x"; }));
  ASSERT_TRUE(set(R"("word":null)"));
  EXPECT_EQ(m.get<Counter>("c1")->word, "");
}
// case 177
TEST_F(rules, numbers_are_never_rounded_or_wrapped) {
  for (auto members : {R"("number":5.9)", R"("small":300)", R"("small":-1)"})
    EXPECT_ERRC(set(members), errc::type_mismatch);
  ASSERT_TRUE(m.update<Counter>("c1", [](Counter& c) { c.small = 255; }));
  EXPECT_ERRC(set(R"("small":{"op":"increment"})"), errc::type_mismatch);
}
// case 178
TEST_F(rules, a_number_from_the_message_is_a_number) {
  rule_context context;
  context.message = R"({"k":42,"text":"7"})";
  ASSERT_TRUE(set(R"("number":"$message.k","small":"$message.text","word":"$message.k")", context));
  EXPECT_EQ(m.get<Counter>("c1")->number, 42);
  EXPECT_EQ(m.get<Counter>("c1")->small, 7);
  EXPECT_EQ(m.get<Counter>("c1")->word, "42");
}
// case 179
TEST_F(rules, an_unresolved_variable_is_never_stored) {
  EXPECT_ERRC(set(R"("word":"hello $message.who")"), errc::unresolved_template);
  EXPECT_EQ(m.get<Counter>("c1")->phase, "a");
}
// case 180
TEST_F(rules, fail_needs_a_reason_and_substitutes_it) {
  make("m2", "landing");
  EXPECT_FALSE(run("m2", R"({"type":"lifecycle_fail"})"));
  EXPECT_FALSE(run("m2", R"({"type":"lifecycle_fail","reason":"  "})"));
  rule_context context;
  context.caller = R"({"id":"bob"})";
  ASSERT_TRUE(run("m2", R"({"type":"lifecycle_fail","reason":"denied by $caller.id"})", context));
  EXPECT_EQ((*m.history<Mission>("m2"))[1].note, "denied by bob");
}
// case 181
TEST_F(rules, the_reason_of_a_transition_is_substituted_too) {
  ASSERT_TRUE(run(
      "m1",
      R"({"type":"lifecycle_transition","phase":"flying","reason":"from $entity.lifecycle.phase of $entity.id"})"));
  EXPECT_EQ((*m.history<Mission>("m1"))[1].note, "from planning of m1");
}
// case 182
TEST_F(rules, a_rule_can_complete) {
  make("m2", "landing");
  ASSERT_TRUE(run("m2", R"({"type":"lifecycle_complete"})"));
  EXPECT_EQ(phase_of("m2"), "completed");
}
// case 183
TEST_F(rules, each_lifecycle_variable_has_its_own_value) {
  EXPECT_EQ(
      *m.substitute(
          "m1", "$entity.lifecycle.workflow|$entity.lifecycle.phase|$entity.lifecycle.terminal."),
      "drone-survey|planning|false.");
  EXPECT_NE(m.substitute("m1", "$entity.lifecycle.workflow_def")->find("\"transitions\""),
            std::string::npos);
  EXPECT_EQ(*m.substitute("nobody", "$entity.lifecycle.workflow_def $entity.lifecycle.workflow"),
            "$entity.lifecycle.workflow_def $entity.lifecycle.workflow");
  make("acme.fleet.survey.gcs.mission.m9");
  EXPECT_EQ(
      *m.substitute("acme.fleet.survey.gcs.mission.m9", "$entity.org/$entity.instance costs $5"),
      "acme/m9 costs $5");
}
// case 184
TEST(substitution, looks_up_once_and_only_when_needed) {
  int asked = 0;
  Variables v;
  v.entity_id = "m1";
  v.lookup = [&]() -> std::shared_ptr<const ManagedEntity> {
    ++asked;
    return nullptr;
  };
  EXPECT_EQ(substitute("$entity.id and $now", v).text, "m1 and 1970-01-01T00:00:00Z");
  EXPECT_EQ(asked, 0);
  (void)substitute("$entity.lifecycle.phase $entity.lifecycle.workflow", v);
  (void)substitute("$entity.lifecycle.terminal", v);
  EXPECT_EQ(asked, 1);
}

TEST_F(rules, entering_a_phase_triggers_its_rule) {
  ASSERT_TRUE(m.put_rule(
      "land", R"({"workflow":"drone-survey","on":{"phase":"landing"},"when":{"armed":true},
    "then":[{"type":"lifecycle_complete"}]})"));
  make("calm", "flying");
  ASSERT_TRUE(m.create(Mission{.entity_id = "hot", .phase = "flying", .armed = true}));
  ASSERT_TRUE(m.transition<Mission>("calm", "landing"));
  ASSERT_TRUE(m.transition<Mission>("hot", "landing"));
  EXPECT_TRUE(eventually([&] { return phase_of("hot") == "completed"; }));
  EXPECT_EQ(phase_of("calm"), "landing");
  auto log = *m.history<Mission>("hot");
  EXPECT_EQ(log[2].triggered, source::rule);
  EXPECT_EQ(log[2].caller, "rule:land");
}
// A watch resumes after the number of a frame. If one frame held several changes of a type, a
// client that is disconnected between them would lose some.
TEST_F(rules, a_frame_changes_one_instance_of_a_type_whatever_rules_do) {
  ASSERT_TRUE(m.create(Capture{.entity_id = "m1"}));
  ASSERT_TRUE(m.put_rule(
      "both",
      R"({"workflow":"drone-survey","on":{"phase":"flying"},"then":[{"type":"lifecycle_transition","phase":"capturing"},
    {"type":"lifecycle_transition","phase":"flying"},{"type":"lifecycle_transition","phase":"running","workflow":"capture-task"},
    {"type":"lifecycle_transition","phase":"landing"},{"type":"lifecycle_transition","phase":"queued","workflow":"capture-task"}]})"));
  ASSERT_TRUE(m.transition<Mission>("m1", "flying"));
  ASSERT_TRUE(eventually([&] { return phase_of("m1") == "landing"; }));
  size_t of_both = 0;
  ASSERT_TRUE(engine->parts().shard->frames(1, [&](const Frame& frame) -> Result<bool> {
    size_t missions =
        changes_of(frame, instance_prefix(engine->options().tenant, "drone-survey")).size();
    size_t captures =
        changes_of(frame, instance_prefix(engine->options().tenant, "capture-task")).size();
    EXPECT_LE(std::max(missions, captures), 1u);
    of_both += missions + captures == 2;
    return true;
  }));
  EXPECT_EQ(of_both, 1u);
}
// case 185
TEST_F(rules, a_condition_may_use_lifecycle_variables) {
  ASSERT_TRUE(m.put_rule("ask", R"({"workflow":"drone-survey","on":{"phase":"flying"},
    "when":[{"field":"$entity.lifecycle.phase","value":"flying"},{"field":"$entity.lifecycle.terminal","value":false}],
    "then":[{"type":"lifecycle_transition","phase":"landing"}]})"));
  ASSERT_TRUE(m.transition<Mission>("m1", "flying"));
  EXPECT_TRUE(eventually([&] { return phase_of("m1") == "landing"; }));
}
// case 185
TEST(condition, an_unmanaged_entity_is_false_and_an_error_when_required) {
  Variables v;
  v.entity_id = "stray";
  v.lookup = []() -> std::shared_ptr<const ManagedEntity> { return nullptr; };
  Condition c{"$entity.lifecycle.phase", true, js::Value("flying"), false};
  auto plain = holds({c}, nullptr, {}, v);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(*plain);
  c.required = true;
  auto required = holds({c}, nullptr, {}, v);
  ASSERT_FALSE(required);
  for (auto word : {"$entity.lifecycle.phase", "'stray'", "not managed", "required"})
    EXPECT_NE(required.error().message.find(word), std::string::npos) << required.error().message;
  auto type = std::make_shared<const WorkflowType>(make_type(describe<Mission>()));
  Variables managed;
  managed.entity_id = "m1";
  managed.lookup = [&] {
    return std::make_shared<const ManagedEntity>(ManagedEntity{type, "flying"});
  };
  EXPECT_TRUE(*holds({c}, type.get(), {}, managed));
  c.wanted = js::Value("landing");
  EXPECT_FALSE(*holds({c}, type.get(), {}, managed));
}
TEST_F(rules, a_cycle_of_rules_ends) {
  ASSERT_TRUE(m.put_rule(
      "ab",
      R"({"workflow":"counter","on":{"phase":"b"},"then":[{"type":"lifecycle_transition","phase":"a","set":{"number":{"op":"increment"}}}]})"));
  ASSERT_TRUE(m.put_rule(
      "ba",
      R"({"workflow":"counter","on":{"phase":"a"},"then":[{"type":"lifecycle_transition","phase":"b","set":{"number":{"op":"increment"}}}]})"));
  ASSERT_TRUE(m.transition("counter", "c1", "b"));
  int32_t before = -1;
  EXPECT_TRUE(eventually([&] {
    std::this_thread::sleep_for(30ms);
    int32_t now = m.get<Counter>("c1")->number;
    return std::exchange(before, now) == now && now > 10;
  }));
  EXPECT_LE(before, 64);
}
TEST_F(rules, max_iterations_bounds_the_firings_of_one_instance) {
  ASSERT_TRUE(m.put_rule(
      "back",
      R"({"workflow":"counter","on":{"phase":"b"},"max_iterations":2,"then":[{"type":"lifecycle_transition","phase":"a","set":{"number":{"op":"increment"}}}]})"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(m.transition("counter", "c1", "b"));
    ASSERT_TRUE(eventually([&] { return m.get<Counter>("c1")->phase == "a"; }));
  }
  ASSERT_TRUE(m.transition("counter", "c1", "b"));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(m.get<Counter>("c1")->phase, "b");
}
// case 186
TEST_F(rules, a_schedule_acts_on_every_matching_instance) {
  make("m2");
  make("m3", "landing");
  ASSERT_TRUE(m.put_rule(
      "sweep", R"({"workflow":"drone-survey","on":{"every":"PT1S"},"when":{"phase":"planning"},
    "then":[{"type":"lifecycle_transition","phase":"flying","reason":"swept at $schedule.fire_time"}]})"));
  EXPECT_TRUE(eventually([&] { return phase_of("m1") == "flying" && phase_of("m2") == "flying"; }));
  EXPECT_EQ(phase_of("m3"), "landing");
  EXPECT_TRUE((*m.history<Mission>("m1"))[1].note.starts_with("swept at 20"));
}
TEST_F(rules, a_schedule_spans_several_turns) {
  const size_t many = limits::kSweepPage * 2 + 5;
  for (size_t i = 0; i < many; ++i)
    ASSERT_TRUE(m.create(Counter{.entity_id = "n" + std::to_string(i)}));
  ASSERT_TRUE(m.put_rule("all", R"({"workflow":"counter","on":{"every":"PT1S"},"when":{"phase":"a"},
    "then":[{"type":"lifecycle_transition","phase":"b","set":{"number":{"op":"increment"}}}]})"));
  query<Counter> left;
  left.phase = "a";
  EXPECT_TRUE(eventually([&] { return m.list(left)->empty(); }));
  for (const Counter& one : *m.list<Counter>())
    EXPECT_EQ(one.number, 1) << one.entity_id;
}
TEST_F(rules, an_action_may_have_a_guard_and_a_limit_of_its_own) {
  ASSERT_TRUE(m.put_rule("guarded", R"({"workflow":"counter","on":{"phase":"b"},"then":[
    {"type":"lifecycle_transition","phase":"a","set":{"number":{"op":"increment"}},"when":{"word":"go"},"max_iterations":1},
    {"type":"lifecycle_transition","phase":"a","set":{"amount":1},"when":{"word":"stop"}}]})"));
  for (auto [word, number, amount] : {std::tuple{"go", 1, 0.0}, std::tuple{"stop", 1, 1.0}}) {
    ASSERT_TRUE(m.operator_patch<Counter>("c1", R"({"word":")" + std::string(word) + "\"}"));
    ASSERT_TRUE(m.transition("counter", "c1", "b"));
    ASSERT_TRUE(eventually([&] { return m.get<Counter>("c1")->phase == "a"; }));
    EXPECT_EQ(m.get<Counter>("c1")->number, number);
    EXPECT_EQ(m.get<Counter>("c1")->amount, amount);
  }
  // The action has reached its limit, so the phase stays.
  ASSERT_TRUE(m.operator_patch<Counter>("c1", R"({"word":"go"})"));
  ASSERT_TRUE(m.transition("counter", "c1", "b"));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(m.get<Counter>("c1")->phase, "b");
}
TEST_F(rules, rules_per_phase_and_actions_per_rule_are_limited) {
  std::string rule =
      R"({"workflow":"counter","on":{"phase":"b"},"then":[{"type":"lifecycle_complete"}]})";
  for (size_t i = 0; i < limits::kRulesOfType; ++i)
    ASSERT_TRUE(m.put_rule("r" + std::to_string(i), rule));
  EXPECT_ERRC(m.put_rule("one-more", rule), errc::invalid_rule);
  std::string then = R"({"type":"lifecycle_complete"})";
  for (size_t i = 1; i < limits::kActions; ++i)
    then += R"(,{"type":"lifecycle_complete"})";
  auto with = [](const std::string& actions) {
    return R"({"workflow":"counter","on":{"every":"PT1H"},"then":[)" + actions + "]}";
  };
  EXPECT_TRUE(m.put_rule("full", with(then)));
  EXPECT_ERRC(m.put_rule("fuller", with(then + R"(,{"type":"lifecycle_complete"})")),
              errc::invalid_rule);
}
// case 186
TEST_F(rules, a_cron_rule_fires) {
  ASSERT_TRUE(m.put_rule(
      "tick", R"({"workflow":"drone-survey","on":{"cron":"* * * * * *"},"when":{"phase":"planning"},
    "then":[{"type":"lifecycle_transition","phase":"flying","reason":"$cron_fire_time_unix"}]})"));
  EXPECT_TRUE(eventually([&] { return phase_of("m1") == "flying"; }));
}
TEST_F(rules, a_wrong_rule_is_refused_when_it_is_stored) {
  EXPECT_ERRC(
      m.put_rule(
          "r", R"({"workflow":"ghost","on":{"phase":"x"},"then":[{"type":"lifecycle_complete"}]})"),
      errc::workflow_not_registered);
  EXPECT_ERRC(
      m.put_rule(
          "r",
          R"({"workflow":"counter","on":{"phase":"x"},"then":[{"type":"lifecycle_complete"}]})"),
      errc::invalid_transition);
  EXPECT_ERRC(
      m.put_rule(
          "r",
          R"({"workflow":"counter","on":{"cron":"61 * * * *"},"then":[{"type":"lifecycle_complete"}]})"),
      errc::invalid_rule);
  EXPECT_ERRC(
      m.put_rule(
          "r",
          R"({"workflow":"counter","on":{"every":"soon"},"then":[{"type":"lifecycle_complete"}]})"),
      errc::invalid_rule);
  EXPECT_ERRC(
      m.put_rule("r", R"({"workflow":"counter","on":{"phase":"a"},"then":[{"type":"explode"}]})"),
      errc::invalid_rule);
  EXPECT_ERRC(m.put_rule("r", R"({"workflow":"counter","on":{"phase":"a"},"then":[]})"),
              errc::invalid_rule);
  EXPECT_ERRC(
      m.put_rule(
          "r",
          R"({"workflow":"counter","on":{"phase":"a"},"then":[{"type":"lifecycle_transition","phase":"b","set":{"phase":"b"}}]})"),
      errc::field_not_operator_writable);
}

TEST(cron, the_next_firing_is_the_first_match) {
  auto next = [](std::string_view line, std::string_view after) {
    return rfc3339(*next_after(*parse_cron(line), *parse_rfc3339(after)));
  };
  EXPECT_EQ(next("*/15 * * * *", "2026-11-15T14:07:30Z"), "2026-11-15T14:15:00Z");
  EXPECT_EQ(next("0 0 1 1 *", "2026-11-15T14:07:30Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next("30 9 * * mon-fri", "2026-11-14T10:00:00Z"), "2026-11-16T09:30:00Z");
  EXPECT_EQ(next("0 12 29 2 *", "2026-11-15T00:00:00Z"), "2028-02-29T12:00:00Z");
  EXPECT_EQ(next("10,20 * * * * *", "2026-11-15T14:07:15Z"), "2026-11-15T14:07:20Z");
  EXPECT_EQ(next("0 0 * * 7", "2026-11-12T00:00:00Z"), "2026-11-15T00:00:00Z");
  for (auto bad :
       {"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "a * * * *",
        "*/0 * * * *", "5-1 * * * *", "1-59/2147483647 * * * *", "99999999999 * * * *"})
    EXPECT_FALSE(parse_cron(bad)) << bad;
}

}  // namespace pawl::lifecycle
