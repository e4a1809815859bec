// The fuel of a turn. All steps of a turn draw on it, those that fail included.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"
#include "wasm/test_module.h"

namespace pawl::worlds {
namespace {

// A runner whose steps use all their fuel. A step for t/Do@1 emits the events that were set; every
// other step fails, as an endless loop does.
struct Greedy final : wasm::Runner {
  Result<wasm::Outcome> call(BytesView, const wasm::Fetch&, std::string_view entrypoint,
                             BytesView input, const wasm::Limits& limits,
                             wasm::UsedFuel& used) override {
    seen = limits;
    used.fuel = limits.fuel;
    ++calls;
    TRY(StepInput in, decode_input(input));
    if (in.event.schema != "t/Event@1" && entrypoint == "step")
      return fail(Code::unprocessable, "wasm.error", "wasm runtime error: step used up its fuel");
    return wasm::Outcome{encode_output(output({}, {}, emitted)), limits.fuel};
  }
  Result<bool> has_export(BytesView, const wasm::Fetch&, std::string_view) override {
    return false;
  }
  std::string version() const override { return "greedy"; }

  wasm::Limits seen{};
  size_t calls = 0;
  std::vector<Event> emitted{};
};

struct Fuel : testing::Test {
  void make(const std::string& limits) {
    auto r = stage.http("POST", "/v1/worlds",
                        R"({"world_id":"w","limits":)" + limits + R"(,"air":)" +
                            json::print(test_air()) + R"(,"modules":{"t/scripted@1":")" +
                            base64(wasm::step_and_trap()) + "\"}}");
    ASSERT_EQ(r.status, 201) << r.body;
  }
  Event event(const std::string& id) { return {"t/Do@1", cbor::encode(tell(id, {})), {}}; }
  ~Fuel() override { EXPECT_EQ(stage.verify_all().difference, ""); }
  Greedy runner;
  Stage stage{&runner, false};
};

TEST_F(Fuel, a_step_gets_no_more_than_the_server_allows) {
  make(R"({"fuel":100000000000,"memory_bytes":4294967296})");
  ASSERT_TRUE(stage.send("w", "t/Do@1", tell("a", {})));
  EXPECT_EQ(runner.seen.fuel, kMaxFuelPerStep);
  EXPECT_EQ(runner.seen.memory_bytes, kMaxMemoryPerStep);
}

TEST_F(Fuel, a_world_may_ask_for_less) {
  make(R"({"fuel":5000,"memory_bytes":65536})");
  ASSERT_TRUE(stage.send("w", "t/Do@1", tell("a", {})));
  EXPECT_EQ(runner.seen.fuel, 5000u);
  EXPECT_EQ(runner.seen.memory_bytes, 65536u);
}

TEST_F(Fuel, a_batch_that_uses_more_than_a_turn_has_is_refused) {
  make(R"({"fuel":1000000000})");
  const uint64_t height = stage.head("w").height;
  std::vector<Event> batch;
  for (int i = 0; i < 5; ++i)
    batch.push_back(event(std::to_string(i)));
  auto sent = stage.say("events", encode(SendEvents{"w", batch}));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::exhausted);
  EXPECT_TRUE(sent.error().is(kFuelUsedUp)) << sent.error().message;
  EXPECT_EQ(runner.calls, 2u);
  EXPECT_EQ(stage.head("w").height, height) << "nothing of the batch is accepted";
}

// Each of the 16 deliveries loops until its fuel is gone. In one turn they would take 3.2 seconds.
TEST_F(Fuel, steps_that_fail_use_the_fuel_of_the_turn) {
  make(R"({"fuel":200000000})");
  stage.holds = true;
  runner.emitted.assign(16, event_to("t/Deaf@1", "sink"));
  ASSERT_TRUE(stage.send("w", "t/Do@1", tell("a", {})));
  EXPECT_EQ(runner.calls, kMaxFuelPerTurn / 200'000'000);
  EXPECT_EQ(stage.head("w").queued, 17 - runner.calls);
  stage.holds = false;
  while (stage.head("w").queued > 0)
    stage.deliver_next();
  EXPECT_EQ(runner.calls, 17u) << "the rest ran in a further turn";
}

}  // namespace
}  // namespace pawl::worlds
