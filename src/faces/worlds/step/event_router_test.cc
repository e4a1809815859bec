// Routes of events, and the order in which deliveries run.

#include <gtest/gtest.h>

#include "faces/worlds/world_test.h"

namespace pawl::worlds {
namespace {

using Routing = WorldTest;

using Mailbox = WorldTest;

// case 49, case 50, case 153
TEST_F(Routing, an_event_that_does_not_fit_its_schema_leaves_no_record) {
  auto bad = stage.send("w", "t/Do@1", Value(cbor::Map{{"x", 1}}));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message,
            "manifest loader error: event 't/Do@1' payload failed validation: value does not "
            "conform to schema: record missing field 'id'");
  EXPECT_EQ(stage.send("w", "t/None@1", Value(cbor::Map{})).error().message,
            "manifest loader error: event 't/None@1' payload failed validation: schema 't/None@1' "
            "not found");
  EXPECT_EQ(stage.send("w", "t/Do@1", tell("a"), key_of("b")).error().message,
            "manifest loader error: event 't/Do@1' carried key that differs from extracted key for "
            "workflow 't/main@1'");
  EXPECT_EQ(stage.kinds("w").size(), 2u);
}

// case 148
TEST_F(Routing, an_unrouted_event_is_recorded_and_runs_no_step) {
  ASSERT_TRUE(stage.send("w", "t/Lonely@1", Value(cbor::Map{})));
  EXPECT_EQ(stage.kinds("w").size(), 3u);
  EXPECT_EQ(stage.head("w").steps, 0u);
}

// case 68
TEST_F(Routing, receipts_cannot_be_forged_as_events) {
  auto forged = stage.send("w", "sys/EffectReceiptEnvelope@1", Value(cbor::Map{}));
  ASSERT_FALSE(forged);
  EXPECT_NE(forged.error().message.find("for receipts and frames only"), std::string::npos);
}

TEST_F(Routing, receipts_cannot_be_forged_inside_a_variant_or_by_a_workflow) {
  json::Value air = test_air();
  air.array().back().find("routing")->find("subscriptions")->array()[0] =
      *json::parse(R"({"event":"t/Event@1","workflow":"t/main@1","key_field":"$value.id"})");
  ASSERT_TRUE(stage.create("v", air));
  const Value receipt = cbor::Map{{"origin_module_id", "t/main@1"},
                                  {"intent_id", kNoHash},
                                  {"effect", "t/charge@1"},
                                  {"emitted_at_seq", 1},
                                  {"receipt_payload", cbor::octets("")},
                                  {"status", "ok"},
                                  {"signature", cbor::octets("")}};
  for (const Value& event : {Value(cbor::Map{{"Receipt", receipt}}),
                             Value(cbor::Map{{"$tag", "Receipt"}, {"$value", receipt}})}) {
    auto forged = stage.send("v", "t/Event@1", event);
    ASSERT_FALSE(forged);
    EXPECT_EQ(forged.error().reason, "invalid_request");
  }
  EXPECT_EQ(stage.kinds("v").size(), 2u);
  ASSERT_TRUE(
      go("a", output({"s"}, {}, {{"sys/EffectReceiptEnvelope@1", cbor::encode(receipt), {}}})));
  EXPECT_EQ(last("step_failed").text_or("error_code"), "workflow.output_invalid");
}

// case 51, case 145
TEST_F(Routing, short_and_tagged_forms_give_the_same_event) {
  json::Value air = test_air();
  air.array().back().find("routing")->find("subscriptions")->array()[0] =
      *json::parse(R"({"event":"t/Event@1","workflow":"t/main@1","key_field":"$value.id"})");
  ASSERT_TRUE(stage.create("v", air));
  ASSERT_TRUE(stage.send("v", "t/Event@1", Value(cbor::Map{{"Do", tell("a")}})));
  ASSERT_TRUE(
      stage.send("v", "t/Event@1", Value(cbor::Map{{"$tag", "Do"}, {"$value", tell("a")}})));
  ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a")));  // an arm of the variant reaches it too
  auto records = stage.records("v");
  EXPECT_EQ(*records[2].find("value"), *records[3].find("value"));
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), (Words{"Do", "Do", "Do"}));
}

// case 142
TEST_F(Routing, the_same_workflow_subscribed_twice_runs_twice) {
  json::Value air = test_air();
  json::Array& routes = air.array().back().find("routing")->find("subscriptions")->array();
  routes.push_back(routes[0]);
  ASSERT_TRUE(stage.create("v", air));
  ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a")));
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")), (Words{"Do", "Do"}));
}

// case 159
TEST_F(Mailbox, ready_cells_take_turns_and_each_keeps_its_order) {
  std::vector<Event> events;
  auto word = [](const std::string& schema, const std::string& id, const std::string& w) {
    return Event{schema, cbor::encode(cbor::Map{{"id", id}, {"word", w}}), {}};
  };
  for (int i = 0; i < 5; ++i)
    events.push_back(word("t/Half@1", "flood", "f" + std::to_string(i)));
  events.push_back(word("t/Deaf@1", "one", "d"));
  ASSERT_TRUE(go("a", output({}, {}, events)));
  EXPECT_EQ(log("flood", "t/half@1"), (Words{"f0", "f1", "f2", "f3", "f4"}));
  // The single event ran second: after one step of the flooded cell, not after five.
  EXPECT_EQ(stage.cell("w", "t/deaf@1", key_of("one")).status, InstanceStatus::running);
}

TEST_F(Mailbox, deliveries_beyond_a_turns_budget_run_in_further_turns) {
  // 80 events, each of which emits 16 to one cell: 1360 steps, more than one turn may take.
  StepOutput inner = output({}, {}, std::vector<Event>(16, event_to("t/Deaf@1", "sink")));
  StepOutput outer = output(
      {}, {}, std::vector<Event>(80, Event{"t/Half@1", cbor::encode(tell("mid", inner)), {}}));
  ASSERT_TRUE(go("a", outer));
  EXPECT_EQ(log("sink", "t/deaf@1").size(), 1280u);
  EXPECT_EQ(stage.head("w").queued, 0u);
  EXPECT_EQ(stage.head("w").chain, 0u);
  EXPECT_GT(stage.head("w").steps, kMaxStepsPerTurn);
}

TEST_F(Mailbox, each_event_of_a_batch_has_its_own_step_budget) {
  const Bytes value = cbor::encode(tell(
      "a",
      output({}, {}, std::vector<Event>(kMaxEvents, event_to("t/Deaf@1", "sink", output({}))))));
  const SendEvents batch{
      "w", std::vector<Event>(kMaxStepsPerInput / kMaxEvents + 2, Event{"t/Do@1", value, {}})};
  ASSERT_TRUE(stage.say("events", encode(batch)));
  EXPECT_GT(stage.head("w").steps, kMaxStepsPerInput);
  EXPECT_EQ(stage.head("w").steps_failed, 0u);
}

}  // namespace
}  // namespace pawl::worlds
