// Limits of a turn, a cell and a blob. A world that reaches one goes on.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// Emits an event of one megabyte when it is told to go.
struct Flooding final : NativeModule {
  Result<Bytes> step(std::string_view, BytesView input) const override {
    TRY(StepInput in, decode_input(input));
    TRY(Value event, cbor::decode(in.event.value));
    const Value* inner = event.find("$value");
    StepOutput out = output({});
    if (inner && inner->text_or("word") == "go")
      out.events.push_back(
          {"t/Deaf@1",
           cbor::encode(cbor::Map{{"id", "leaf"}, {"word", std::string(1'000'000, 'x')}}),
           {}});
    return encode_output(out);
  }
};

struct Bounds : testing::Test {
  Bounds() {
    json::Value air = test_air();
    for (json::Value& node : air.array()) {
      if (node.string_or("name") == "t/deaf@1") *node.find("impl")->find("module") = "t/flood@1";
      if (node.string_or("$kind") == "manifest")
        node.find("modules")->array().push_back(json::object({{"name", "t/flood@1"}}));
    }
    air.array().insert(
        air.array().begin(),
        *json::parse(
            R"({"$kind":"defmodule","name":"t/flood@1","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}})"));
    stage.modules.add("t/flood@1", std::make_unique<Flooding>());
    auto made = stage.create("w", air);
    if (!made) ADD_FAILURE() << made.error().message;
  }
  ~Bounds() override { EXPECT_EQ(stage.verify_all().difference, ""); }
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {}) {
    return stage.send("w", "t/Do@1", tell(id, out));
  }
  std::vector<std::string> failures() {
    std::vector<std::string> out;
    for (const Value& r : stage.records("w"))
      if (record_kind(r) == "step_failed") out.emplace_back(r.text_or("error_message"));
    return out;
  }
  void fork_is_equal() {
    auto r = stage.http("POST", "/v1/worlds/w/fork", R"({"world_id":"f"})");
    ASSERT_EQ(r.status, 201) << r.body;
    EXPECT_EQ(stage.dump("f"), stage.dump("w"));
  }
  Stage stage;
};

TEST_F(Bounds, a_key_that_is_too_long_is_refused) {
  const std::string max(kMaxCellNameBytes - std::string("t/main@1").size() - 6, 'k');
  ASSERT_TRUE(go(max));
  EXPECT_EQ(stage.log("w", "t/main@1", key_of(max)).size(), 1u);
  EXPECT_EQ(go(max + "k").error().reason, "manifest.error");
  ASSERT_TRUE(go("a", output({"1"}, {}, {event_to("t/Do@1", max + "k")})));
  ASSERT_EQ(failures().size(), 1u);
  EXPECT_NE(failures()[0].find("it may have 3600"), std::string::npos);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_TRUE(go(max));
  fork_is_equal();
}

TEST_F(Bounds, a_step_with_too_many_waiting_bytes_fails) {
  std::vector<Event> all;
  for (int i = 0; i < 100; ++i)
    all.push_back(
        {"t/Deaf@1", cbor::encode(cbor::Map{{"id", std::to_string(i)}, {"word", "go"}}), {}});
  auto sent = go("a", output({}, {}, all));
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(stage.head("w").queued, 0u);
  ASSERT_GT(failures().size(), 30u);
  EXPECT_LT(failures().size(), 60u);
  EXPECT_NE(failures()[0].find("would wait for their steps"), std::string::npos);
  ASSERT_TRUE(go("b"));
}

TEST_F(Bounds, an_internal_answer_with_too_many_waiting_bytes_fails) {
  std::vector<EmittedEffect> gets;
  for (char c = 'a'; c < 'j'; ++c)
    gets.push_back(
        {"sys/blob.get@1",
         cbor::encode(cbor::Map{
             {"blob_ref", stage.say("put_blob", Bytes(9'000'000, c))->string_or("hash")}}),
         {},
         {}});
  ASSERT_TRUE(go("a", output({}, gets)));
  std::vector<std::string> statuses;
  for (const Value& r : stage.records("w"))
    if (record_kind(r) == "effect_receipt") statuses.emplace_back(r.text_or("status"));
  EXPECT_EQ(statuses,
            (std::vector<std::string>{"ok", "ok", "ok", "ok", "ok", "ok", "ok", "error", "error"}));
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")).size(), 9u);
  EXPECT_EQ(stage.head("w").queued, 0u);
}

TEST_F(Bounds, a_snapshot_holds_more_open_intents_than_fit_in_a_blob) {
  const EmittedEffect large{"sys/http.request@1",
                            cbor::encode(cbor::Map{{"method", "GET"},
                                                   {"url", std::string(900'000, 'u')},
                                                   {"headers", cbor::Map{}},
                                                   {"body_ref", Value()}}),
                            {},
                            {}};
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(go(std::to_string(i), output({}, {large})));
  auto taken = stage.say("snapshot", "w");
  ASSERT_TRUE(taken) << taken.error().message;
  Bytes no_grace;
  Writer(no_grace).sint(0);
  stage.clock += kSecond;
  ASSERT_TRUE(stage.say("collect", no_grace));
  fork_is_equal();
  EXPECT_EQ(stage.pending("f").size(), 20u);
}

TEST_F(Bounds, a_shadow_report_is_bounded) {
  auto proposed = stage.govern(
      "w", {.action = "propose",
            .patch = R"({"base_manifest_hash":")" +
                     std::string(json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)
                                     ->string_or("manifest_hash")) +
                     R"(","patches":[]})"});
  ASSERT_TRUE(proposed) << proposed.error().message;
  Govern g{.action = "shadow"};
  g.seeds.push_back({"t/Do@1", cbor::encode(tell("", output({std::string(20'000, 'x')}))), {}});
  for (int i = 0; i < 600; ++i)
    g.seeds.push_back(
        {"t/Do@1", cbor::encode(tell(std::to_string(i), output({std::string(10'000, 'x')}))), {}});
  auto report = stage.govern("w", g);
  ASSERT_TRUE(report) << report.error().message;
  const json::Array& deltas = report->find("state_deltas")->array();
  EXPECT_GT(deltas.size(), 100u);
  EXPECT_LT(deltas.size(), 600u);
  EXPECT_TRUE(deltas[0].find("after")->is_null());
  EXPECT_EQ(deltas[0].string_or("after_hash"),
            hash_text(sha256(state_of({std::string(20'000, 'x')}))));
  EXPECT_FALSE(deltas[1].find("after")->is_null());
  ASSERT_TRUE(stage.say("snapshot", "w"));
}

}  // namespace
}  // namespace pawl::worlds
