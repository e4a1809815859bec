// The report of a shadow run, compared with the same events in a live world.

#include <gtest/gtest.h>

#include "faces/worlds/snapshot/cell_index.h"
#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// case 111: with what the run predicts, a fork of the world does the same.
TEST(shadow, the_effects_of_seed_events_are_listed_in_order) {
  Stage stage;
  ASSERT_TRUE(stage.create("w", test_air()));
  ASSERT_TRUE(stage.send("w", "t/Do@1", tell("a", output({"1"}))));
  const std::string base(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  ASSERT_TRUE(stage.govern("w", {.action = "propose",
                                 .patch = R"({"base_manifest_hash":")" + base +
                                          R"(","patches":[{"add_def":{"kind":"defschema",
      "node":{"$kind":"defschema","name":"t/New@1","type":{"nat":{}}}}}]})"}));
  ASSERT_EQ(stage.http("POST", "/v1/worlds/w/fork", R"({"world_id":"live"})").status, 201);
  const EmittedEffect charge{
      "t/charge@1", cbor::encode(cbor::Map{{"amount", uint64_t{5}}}), {}, Bytes("k")};
  const std::vector<Event> seeds{event_to("t/Do@1", "b", output({"2"}, {timer(77), charge})),
                                 event_to("t/Do@1", "a", output({"3"}, {timer(7)}))};
  Govern g{.action = "shadow"};
  g.seeds = seeds;
  auto report = stage.govern("w", g);
  ASSERT_TRUE(report) << report.error().message;

  for (const Event& seed : seeds)
    ASSERT_TRUE(stage.send("live", seed.schema, *cbor::decode(seed.value)));
  std::vector<std::string> live, predicted, ops;
  for (const Value& record : stage.records("live")) {
    if (record_kind(record) != "effect_intent") continue;
    const Value params = *cbor::decode(record.find("params_cbor")->bytes());
    live.push_back(std::string(record.text_or("effect")) + " " +
                   hex(*parse_digest_array(record.find("intent_hash"))) + " " +
                   json::print(plain_json(params)));
  }
  for (const json::Value& effect : report->find("effects_predicted")->array()) {
    ops.emplace_back(effect.string_or("op"));
    predicted.push_back(ops.back() + " " + std::string(effect.string_or("intent_hash")) + " " +
                        json::print(*effect.find("params_json")));
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"sys/timer.set@1", "t/charge@1", "sys/timer.set@1"}));
  EXPECT_EQ(predicted, live);
  EXPECT_EQ(stage.verify_all().difference, "");
}

}  // namespace
}  // namespace pawl::worlds
