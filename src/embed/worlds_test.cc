// Worlds of an embedded engine, with modules in C++.

#include "pawl/worlds.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "pawl/engine.h"

namespace pawl::worlds {
namespace {

// Adds `inc`; asks for a charge when the event is 7; fails when it is 0; is done at 100.
struct Adder final : JsonModule {
  Result<JsonOutput> run(std::string_view, const JsonInput& in) const override {
    JsonOutput out;
    if (in.schema == "t/Event@1" && in.event.find("Receipt") != std::string::npos) {
      out.state = "1000";
      return out;
    }
    const auto inc = std::stoull(in.event.substr(in.event.rfind(':') + 1));
    if (inc == 0) return std::unexpected(Error{Code::invalid, "ZERO", "nothing to add"});
    const auto before = in.state.empty() ? 0 : std::stoull(in.state);
    out.state = std::to_string(before + inc);
    if (inc == 7) out.effects.push_back({"t/charge@1", R"({"amount": 7})", "key"});
    if (inc == 9) out.events.push_back({"t/Nine@1", "not JSON"});
    out.completed = before + inc >= 100;
    return out;
  }
};

constexpr std::string_view kAir = R"([
  {"$kind": "defschema", "name": "t/State@1", "type": {"nat": {}}},
  {"$kind": "defschema", "name": "t/Add@1", "type": {"nat": {}}},
  {"$kind": "defschema", "name": "t/Nine@1", "type": {"nat": {}}},
  {"$kind": "defschema", "name": "t/Params@1", "type": {"record": {"amount": {"nat": {}}}}},
  {"$kind": "defschema", "name": "t/Receipt@1", "type": {"record": {"code": {"nat": {}}}}},
  {"$kind": "defschema", "name": "t/Event@1", "type": {"variant": {"Add": {"ref": "t/Add@1"},
    "Receipt": {"ref": "sys/EffectReceiptEnvelope@1"}}}},
  {"$kind": "defeffect", "name": "t/charge@1", "params": "t/Params@1", "receipt": "t/Receipt@1",
   "impl": {"module": "sys/builtin_effects@1", "entrypoint": "charge"}},
  {"$kind": "defmodule", "name": "t/adder@1",
   "runtime": {"kind": "wasm", "artifact": {"kind": "wasm_module"}}},
  {"$kind": "defworkflow", "name": "t/add@1", "state": "t/State@1", "event": "t/Event@1",
   "effects_emitted": ["t/charge@1"], "impl": {"module": "t/adder@1", "entrypoint": "step"}},
  {"$kind": "manifest", "air_version": "2",
   "schemas": [{"name": "t/State@1"}, {"name": "t/Add@1"}, {"name": "t/Nine@1"},
               {"name": "t/Params@1"}, {"name": "t/Receipt@1"}, {"name": "t/Event@1"}],
   "modules": [{"name": "t/adder@1"}], "workflows": [{"name": "t/add@1"}],
   "effects": [{"name": "t/charge@1"}],
   "routing": {"subscriptions": [{"event": "t/Add@1", "workflow": "t/add@1"}]}}])";

std::unique_ptr<Engine> open(const std::string& data = {}) {
  auto options = std::make_shared<WorldsOptions>();
  options->modules["t/adder@1"] = std::make_shared<Adder>();
  auto engine = Engine::open({.data = data, .unflushed = true, .worlds = options});
  if (!engine) return nullptr;
  return std::move(*engine);
}

TEST(embedded_worlds, a_native_module_runs_and_its_turns_verify) {
  auto engine = open();
  Worlds worlds(*engine);
  ASSERT_TRUE(worlds.create("w", kAir));
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "40"));
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "2"));
  EXPECT_EQ(worlds.state("w", "t/add@1").value(), "42");
  auto verified = engine->verify();
  ASSERT_TRUE(verified) << verified.error().message();
  EXPECT_GE(*verified, 3u);
}

TEST(embedded_worlds, a_failed_step_keeps_the_state) {
  auto engine = open();
  Worlds worlds(*engine);
  ASSERT_TRUE(worlds.create("w", kAir));
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "40"));
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "0"));  // accepted; its step fails
  EXPECT_EQ(worlds.state("w", "t/add@1").value(), "40");
  EXPECT_NE(worlds.call("GET", "/v1/worlds/w/journal")->find("nothing to add"), std::string::npos);
}

TEST(embedded_worlds, output_that_is_not_json_fails_the_step) {
  auto engine = open();
  Worlds worlds(*engine);
  ASSERT_TRUE(worlds.create("w", kAir));
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "9"));
  EXPECT_EQ(worlds.state("w", "t/add@1").error().code, Code::not_found);
  EXPECT_NE(worlds.call("GET", "/v1/worlds/w/journal")->find("is not JSON"), std::string::npos);
}

TEST(embedded_worlds, effects_are_polled_and_settled_in_process) {
  auto engine = open();
  Worlds worlds(*engine);
  ASSERT_TRUE(worlds.create("w", kAir));
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "7"));
  auto work = worlds.call("POST", "/v1/effects/poll", R"({"effects": ["t/charge@1"]})");
  ASSERT_TRUE(work) << work.error().message;
  const size_t at = work->find("sha256:");
  ASSERT_NE(at, std::string::npos) << *work;
  const std::string intent = work->substr(at, 71);
  auto settled = worlds.call(
      "POST", "/v1/worlds/w/receipts",
      R"({"intent_hash": ")" + intent + R"(", "status": "ok", "payload": {"code": 1}})");
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(worlds.state("w", "t/add@1").value(), "1000");
}

TEST(embedded_worlds, a_world_survives_the_engine) {
  const std::string data = testing::TempDir() + "embedded-worlds";
  std::filesystem::remove_all(data);
  {
    auto engine = open(data);
    Worlds worlds(*engine);
    ASSERT_TRUE(worlds.create("w", kAir));
    ASSERT_TRUE(worlds.send("w", "t/Add@1", "5"));
  }
  auto engine = open(data);
  Worlds worlds(*engine);
  EXPECT_EQ(worlds.create("w", kAir).error().code, Code::conflict);
  ASSERT_TRUE(worlds.send("w", "t/Add@1", "6"));
  EXPECT_EQ(worlds.state("w", "t/add@1").value(), "11");
  engine.reset();
  std::filesystem::remove_all(data);
}

TEST(embedded_worlds, bad_requests_are_errors_with_their_reason) {
  auto engine = open();
  Worlds worlds(*engine);
  EXPECT_EQ(worlds.send("w", "t/Add@1", "1").error().code, Code::not_found);
  ASSERT_TRUE(worlds.create("w", kAir));
  EXPECT_EQ(worlds.send("w", "t/Add@1", "{").error().code, Code::invalid);
  EXPECT_FALSE(worlds.send("w", "t/Add@1", "\"x\""));
  EXPECT_EQ(worlds.state("w", "t/add@1").error().code, Code::not_found);
  EXPECT_EQ(worlds.call("GET", "/v1/worlds/w/journal/stream").error().code, Code::unsupported);
  EXPECT_EQ(worlds.call("GET", "/nowhere").error().code, Code::not_found);
}

TEST(embedded_worlds, an_engine_without_worlds_says_so) {
  auto engine = Engine::open();
  ASSERT_TRUE(engine);
  EXPECT_EQ(Worlds(**engine).call("GET", "/v1/worlds").error().code, Code::unsupported);
}

}  // namespace
}  // namespace pawl::worlds
