// Steps: what one delivery does to its cell.

#include <gtest/gtest.h>

#include "faces/worlds/world_test.h"

namespace pawl::worlds {
namespace {

using Step = WorldTest;

// case 183
TEST_F(Step, a_new_world_has_its_manifest_and_a_baseline_snapshot) {
  EXPECT_EQ(stage.kinds("w"), (Words{"manifest", "snapshot"}));
}

// case 88, case 121, case 154, case 187
TEST_F(Step, an_event_is_recorded_with_its_stamp_and_steps_its_cell) {
  auto sent = go("a");
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(log("a"), Words{"Do"});
  EXPECT_EQ(stage.kinds("w"), (Words{"manifest", "snapshot", "domain_event"}));
  const Value r = last("domain_event");
  EXPECT_EQ(r.find("key")->bytes(), key_of("a"));
  EXPECT_EQ(r.find("entropy")->bytes().size(), 64u);
  EXPECT_EQ(r.find("journal_height")->as_uint64(), 2u);
  EXPECT_EQ(main("a").last_seq, 2u);
  EXPECT_EQ(main("a").status, InstanceStatus::running);
}

// case 58
TEST_F(Step, state_is_kept_canonical_and_must_fit_its_schema) {
  StepOutput loose = output({});
  loose.state = *unhex("bf636c6f679f6178ffff");  // {log: ["x"]} in indefinite lengths
  ASSERT_TRUE(go("a", loose));
  EXPECT_EQ(*main("a").state, state_of({"x"}));
  loose.state = cbor::encode(cbor::Map{{"other", 1}});
  ASSERT_TRUE(go("a", loose));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  EXPECT_EQ(*main("a").state, state_of({"x"}));
  EXPECT_EQ(last("step_failed").text_or("error_code"), "workflow.output_invalid");
}

// case 91, case 155
TEST_F(Step, a_null_state_deletes_the_cell_and_the_next_event_sees_none) {
  ASSERT_TRUE(go("a"));
  StepOutput gone;
  ASSERT_TRUE(go("a", gone));
  EXPECT_FALSE(main("a").state);
  EXPECT_EQ(main("a").status, InstanceStatus::completed);
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(log("a"), Words{"Do"});
  EXPECT_EQ(main("a").status, InstanceStatus::running);
}

TEST_F(Step, an_output_may_say_completed_and_keep_its_state) {
  ASSERT_TRUE(go("a", output({"begin"}, {timer(1)})));
  StepOutput done = output({"end"});
  done.completed = true;
  ASSERT_TRUE(go("a", done));
  EXPECT_EQ(main("a").status, InstanceStatus::completed);
  EXPECT_EQ(log("a"), Words{"end"});
  EXPECT_EQ(stage.head("w").inflight, 0u);
  EXPECT_TRUE(stage.open.empty());
}

// case 132, case 210
TEST_F(Step, a_poison_event_fails_its_cell_and_nothing_else) {
  ASSERT_TRUE(stage.send("w", "t/Boom@1", tell("a")));
  EXPECT_EQ(stage.cell("w", "t/boom@1", key_of("a")).status, InstanceStatus::failed);
  EXPECT_EQ(last("step_failed").text_or("error_code"), "wasm.error");
  ASSERT_TRUE(go("b"));
  EXPECT_EQ(log("b"), Words{"Do"});
  EXPECT_EQ(stage.head("w").steps_failed, 1u);
}

TEST_F(Step, garbage_from_a_module_is_a_failed_step) {
  Value event = cbor::Map{{"id", "a"}, {"out", cbor::octets("\x01garbage")}};
  ASSERT_TRUE(stage.send("w", "t/Do@1", event));
  EXPECT_EQ(main("a").status, InstanceStatus::failed);
  ASSERT_TRUE(
      stage.send("w", "t/Do@1", Value(cbor::Map{{"id", "b"}, {"out", cbor::octets("\xa0")}})));
  EXPECT_NE(last("step_failed").text_or("error_message").find("missing field `state`"),
            std::string_view::npos);
}

// case 38, case 39, case 40
TEST_F(Step, limits_are_64_effects_256_events_and_a_mebibyte) {
  ASSERT_TRUE(go("a", output({}, std::vector<EmittedEffect>(64, timer(5)))));
  EXPECT_EQ(stage.pending("w").size(), 64u);
  ASSERT_TRUE(go("b", output({}, std::vector<EmittedEffect>(65, timer(5)))));
  EXPECT_NE(last("step_failed").text_or("error_message").find("max effects per tick: 65 > 64"),
            std::string_view::npos);
  ASSERT_TRUE(go("c", output({}, {}, std::vector<Event>(256, event_to("t/Lonely@1", "x")))));
  EXPECT_EQ(main("c").status, InstanceStatus::failed);  // t/Lonely@1 has no fields
  std::vector<Event> lonely(256, Event{"t/Lonely@1", "\xa0", {}});
  ASSERT_TRUE(go("d", output({}, {}, lonely)));
  EXPECT_EQ(main("d").status, InstanceStatus::running);
  lonely.push_back(lonely[0]);
  ASSERT_TRUE(go("e", output({}, {}, lonely)));
  EXPECT_NE(
      last("step_failed").text_or("error_message").find("max domain events per tick: 257 > 256"),
      std::string_view::npos);
  StepOutput large = output({});
  large.annotations = Bytes(kMaxOutputBytes - large.state->size(), 'x');
  ASSERT_TRUE(go("f", large));
  EXPECT_EQ(main("f").status, InstanceStatus::running);
  *large.annotations += "x";
  ASSERT_TRUE(go("g", large));
  EXPECT_NE(last("step_failed")
                .text_or("error_message")
                .find("max output bytes per tick: 1048577 > 1048576"),
            std::string_view::npos);
}

// case 33, case 46
TEST_F(Step, a_step_with_one_bad_effect_leaves_no_trace) {
  ASSERT_TRUE(go("a", output({"kept"})));
  ASSERT_TRUE(go("a", output({"lost"}, {timer(5), {"sys/vault.put@1", "\xa0", {}, {}}},
                             {event_to("t/Tell@1", "x")})));
  EXPECT_EQ(log("a"), Words{"kept"});
  EXPECT_TRUE(stage.pending("w").empty());
  EXPECT_TRUE(stage.open.empty());
  EXPECT_TRUE(stage.log("w", "t/teller@1", "").empty());
  EXPECT_EQ(last("step_failed").text_or("error_message"),
            "invalid workflow output: workflow 't/main@1' emitted undeclared effect "
            "'sys/vault.put@1'; declare the effect in workflow.effects_emitted");
}

TEST_F(Step, the_context_has_exactly_its_fields) {
  auto context = [&](const std::string& id) { return *cbor::decode(*unhex(log(id).back())); };
  const Value ask = cbor::Map{{"id", "a"}, {"word", "ctx"}};
  ASSERT_TRUE(stage.send("w", "t/Do@1", ask));
  const Value ctx = context("a");
  EXPECT_EQ(ctx.map().size(), 10u);
  EXPECT_EQ(ctx.find("key")->bytes(), key_of("a"));
  EXPECT_TRUE(ctx.find("cell_mode")->boolean());
  EXPECT_EQ(ctx.find("journal_height")->as_uint64(), 2u);
  EXPECT_EQ(ctx.find("now_ns")->as_uint64(), static_cast<uint64_t>(stage.clock));
  EXPECT_EQ(ctx.find("entropy")->bytes(), last("domain_event").find("entropy")->bytes());
  EXPECT_EQ(ctx.text_or("workflow"), "t/main@1");
  // An event that a workflow emits has a stamp of its own, recorded with it.
  ASSERT_TRUE(go(
      "b", output({}, {},
                  {Event{"t/Do@1", cbor::encode(cbor::Map{{"id", "c"}, {"word", "ctx"}}), {}}})));
  const Value emitted = context("c");
  EXPECT_EQ(emitted.find("journal_height")->as_uint64(), 4u);
  EXPECT_EQ(emitted.find("entropy")->bytes(), last("domain_event").find("entropy")->bytes());
  EXPECT_NE(emitted.find("entropy")->bytes(), ctx.find("entropy")->bytes());
}

}  // namespace
}  // namespace pawl::worlds
