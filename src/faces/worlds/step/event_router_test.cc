// Routes of events, and the order in which deliveries run.

#include <gtest/gtest.h>

#include "faces/worlds/world_test.h"

namespace pawl::worlds {
namespace {

// Notes each step before it is run: the schema of the workflow's event, and the event's word.
struct Noting final : NativeModule {
  explicit Noting(std::shared_ptr<Words> to) : steps(std::move(to)) {}
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    TRY(StepInput in, decode_input(input));
    TRY(Value event, cbor::decode(in.event.value));
    const Value* inner = event.find("$value");
    steps->push_back(in.event.schema + " " + std::string(inner->text_or("word", "-")));
    return Scripted().step(entrypoint, input);
  }
  std::shared_ptr<Words> steps;  // shared with the test
};

struct Routing : WorldTest {
  // Steps in the order in which they ran. The journal is run again at the end, after the members of
  // the test are gone, so the module shares them.
  std::shared_ptr<Words> steps = std::make_shared<Words>();
  void note_steps() { stage.modules.add("t/scripted@1", std::make_unique<Noting>(steps)); }
};

using Mailbox = Routing;

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

// case 141
TEST_F(Routing, subscribers_of_one_event_run_in_the_order_of_the_manifest) {
  note_steps();
  for (const bool teller_first : {false, true}) {
    json::Value air = test_air();
    json::Array& routes = air.array().back().find("routing")->find("subscriptions")->array();
    const json::Value to_teller = *json::parse(R"({"event":"t/Do@1","workflow":"t/teller@1"})");
    routes.insert(teller_first ? routes.begin() : routes.end(), to_teller);
    const std::string world = teller_first ? "first" : "last";
    ASSERT_TRUE(stage.create(world, air));
    steps->clear();
    ASSERT_TRUE(stage.send(world, "t/Do@1", tell("a")));
    EXPECT_EQ(*steps, teller_first ? (Words{"t/TellEvent@1 -", "t/Event@1 -"})
                                   : (Words{"t/Event@1 -", "t/TellEvent@1 -"}));
    EXPECT_EQ(stage.log(world, "t/main@1", key_of("a")), Words{"Do"});
    EXPECT_EQ(stage.log(world, "t/teller@1", ""), Words{"Do"});
  }
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
  note_steps();
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
  EXPECT_EQ(*steps, (Words{"t/Event@1 -", "t/HalfEvent@1 f0", "t/DeafEvent@1 d", "t/HalfEvent@1 f1",
                           "t/HalfEvent@1 f2", "t/HalfEvent@1 f3", "t/HalfEvent@1 f4"}));
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
