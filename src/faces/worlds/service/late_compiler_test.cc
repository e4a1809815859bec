// Modules that are in no cache are compiled beside the turns.

#include "faces/worlds/service/late_compiler.h"

#include <condition_variable>
#include <future>

#include "faces/worlds/stage_test.h"
#include "wasm/test_module.h"

namespace pawl::worlds {
namespace {

// Echoes nothing and compiles slowly: has_export() stands for the compiler and waits for the gate.
struct SlowRunner final : wasm::Runner {
  Result<wasm::Outcome> call(BytesView hash, const wasm::Fetch& fetch, std::string_view, BytesView,
                             const wasm::Limits&, wasm::UsedFuel&) override {
    if (!is_ready(hash)) {
      ++compiled_in_turns;
      TRY_OK(fetch());
    }
    return wasm::Outcome{encode_output(output({"stepped"})), 1};
  }
  Result<bool> has_export(BytesView hash, const wasm::Fetch&, std::string_view) override {
    std::unique_lock lock(mutex);
    ++compilations;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
    ready.insert(Bytes(hash));
    return false;
  }
  bool is_ready(BytesView hash) override {
    std::lock_guard lock(mutex);
    return ready.contains(Bytes(hash));
  }
  std::string version() const override { return "slow"; }
  void set_gate(bool opened) {
    std::lock_guard lock(mutex);
    open = opened;
    changed.notify_all();
  }
  bool wait_for_compilations(int n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(10), [&] { return compilations >= n; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::set<Bytes> ready;
  bool open = true;
  int compilations = 0, compiled_in_turns = 0;
};

struct Late : testing::Test {
  void make(const std::string& world, const std::string& module) {
    auto r = stage.http("POST", "/v1/worlds",
                        R"({"world_id":")" + world + R"(","air":)" + json::print(test_air()) +
                            R"(,"modules":{"t/scripted@1":")" + base64(module) + "\"}}");
    ASSERT_EQ(r.status, 201) << r.body;
  }
  // Another process: nothing is compiled, and the first module takes long.
  void restart() {
    std::lock_guard lock(runner.mutex);
    runner.ready.erase(Bytes(view(sha256(kSlow))));
    runner.compilations = 0;
    runner.open = false;
  }
  std::future<wire::Response> send(const std::string& world, const std::string& id) {
    return std::async(std::launch::async, [this, world, id] {
      return stage.http("POST", "/v1/worlds/" + world + "/events",
                        R"({"schema":"t/Do@1","value":{"id":")" + id + "\"}}");
    });
  }
  static bool is_over(const std::future<wire::Response>& f, std::chrono::milliseconds wait) {
    return f.wait_for(wait) == std::future_status::ready;
  }
  const Bytes kSlow = wasm::step_and_trap("slow"), kOther = wasm::step_and_trap("other");
  SlowRunner runner;
  Stage stage{&runner, false};
};

TEST_F(Late, a_turn_does_not_wait_for_the_compiler) {
  make("slow", kSlow);
  make("other", kOther);
  restart();
  auto first = send("slow", "a");
  ASSERT_TRUE(runner.wait_for_compilations(1));
  auto second = send("slow", "b");
  // Others go on.
  for (int i = 0; i < 3; ++i) {
    auto other = send("other", "x" + std::to_string(i));
    ASSERT_TRUE(is_over(other, std::chrono::seconds(10)));
    EXPECT_EQ(other.get().status, 202);
  }
  EXPECT_FALSE(is_over(first, std::chrono::milliseconds(50)));
  EXPECT_FALSE(is_over(second, std::chrono::milliseconds(50)));
  const uint64_t before = stage.head("slow").height;
  runner.set_gate(true);
  EXPECT_EQ(first.get().status, 202);
  EXPECT_EQ(second.get().status, 202);
  EXPECT_EQ(stage.log("slow", "t/main@1", key_of("a")), std::vector<std::string>{"stepped"});
  EXPECT_EQ(stage.log("slow", "t/main@1", key_of("b")), std::vector<std::string>{"stepped"});
  EXPECT_EQ(stage.head("slow").height, before + 2) << "a turn that waited has left nothing";
  EXPECT_EQ(runner.compilations, 1) << "both waited for one compilation";
  EXPECT_EQ(runner.compiled_in_turns, 0);
  EXPECT_EQ(stage.verify_all().difference, "");
}

TEST_F(Late, inputs_that_wait_are_answered_when_the_server_stops) {
  make("slow", kSlow);
  restart();
  auto first = send("slow", "a");
  ASSERT_TRUE(runner.wait_for_compilations(1));
  // Until the first answer has come back, the input is not among those that wait.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  auto stopped = std::async(std::launch::async, [&] { stage.face->stop(); });
  ASSERT_TRUE(is_over(first, std::chrono::seconds(10)));
  EXPECT_EQ(first.get().status, 503);
  runner.set_gate(true);
  stopped.get();
}

}  // namespace
}  // namespace pawl::worlds
