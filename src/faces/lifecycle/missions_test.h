#pragma once
// The fixture of the lifecycle tests: the types Mission and Capture, and a manager on an engine in
// memory that keeps its warnings.

#include <gtest/gtest.h>

#include <mutex>

#include "pawl/lifecycle.h"

namespace pawl::lifecycle {

struct Mission {
  std::string entity_id{}, phase = "planning", owner{}, drone{};
  std::uint32_t waypoint = 0;
  std::int64_t retries = 0;
  double battery = 0;
  bool armed = false;
  std::vector<std::string> labels{};
  std::string note{}, internal{}, parent{};
  bool operator==(const Mission&) const = default;

  static constexpr std::string_view workflow = "drone-survey", bucket = "MISSIONS";
  static std::string kv_key(std::string_view id) { return "mission." + std::string(id); }
  static constexpr auto fields = lifecycle::fields(
      field<&Mission::entity_id>("entity_id", lifecycle::id),
      field<&Mission::phase>("phase", lifecycle::phase | readonly),
      field<&Mission::owner>("owner_org_id", operator_writable),
      field<&Mission::drone>("drone_id", operator_writable | indexable | omitempty),
      field<&Mission::waypoint>("waypoint_index", operator_writable),
      field<&Mission::retries>("retries", operator_writable),
      field<&Mission::battery>("battery_pct", operator_writable),
      field<&Mission::armed>("armed", operator_writable),
      field<&Mission::labels>("tags", operator_writable | omitempty),
      field<&Mission::note>("note", operator_writable | omitempty),
      field<&Mission::internal>("internal_state", omitempty),
      field<&Mission::parent>("parent_mission", lifecycle::parent | omitempty));
  static constexpr auto transitions = table(
      from("planning", "flying", "aborted"), from("flying", "capturing", "landing", "aborted"),
      from("capturing", "flying"), from("landing", "completed", "failed"), terminal("completed"),
      terminal("failed"), terminal("aborted"));
};

struct Capture {
  std::string entity_id{}, phase = "queued", mission{}, assignee{};
  std::int64_t priority = 0;

  static constexpr std::string_view workflow = "capture-task", bucket = "CAPTURES";
  static constexpr auto fields =
      lifecycle::fields(field<&Capture::entity_id>("entity_id", lifecycle::id),
                        field<&Capture::phase>("phase", lifecycle::phase),
                        field<&Capture::mission>("mission_id", lifecycle::parent),
                        field<&Capture::assignee>("assignee", operator_writable | omitempty),
                        field<&Capture::priority>("priority", operator_writable | indexable));
  static constexpr auto transitions =
      table(from("queued", "running", "cancelled"),
            from("running", "queued", "done", "failed", "cancelled"), terminal("done"),
            terminal("failed"), terminal("cancelled"));
};

// Keeps the warnings of one manager.
struct Warnings {
  std::mutex mutex;
  std::vector<std::string> all;
  manager_options options() {
    return {[this](std::string_view text) {
      std::lock_guard lock(mutex);
      all.emplace_back(text);
    }};
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return all.size();
  }
};

struct Missions : testing::Test {
  std::unique_ptr<Engine> engine = *Engine::open();
  Warnings warnings;
  manager m{*engine, warnings.options()};

  void SetUp() override {
    ASSERT_TRUE(m.register_type<Mission>());
    ASSERT_TRUE(m.register_type<Capture>());
  }
  void TearDown() override {
    auto verified = engine->verify();
    EXPECT_TRUE(verified) << verified.error().message();
  }
  void make(std::string id, std::string phase = "planning", std::string owner = "acme") {
    auto made = m.create(
        Mission{.entity_id = std::move(id), .phase = std::move(phase), .owner = std::move(owner)});
    ASSERT_TRUE(made) << made.error().message();
  }
  std::string phase_of(std::string_view id) { return m.get<Mission>(id)->phase; }
  // Makes an instance in a phase that its type does not declare: update() does not check phases.
  void drift(const std::string& id, const std::string& to) {
    make(id);
    ASSERT_TRUE(m.update<Mission>(id, [&](Mission& x) { x.phase = to; }));
  }
};

#define EXPECT_ERRC(call, code)                                                         \
  do {                                                                                  \
    auto got_ = (call);                                                                 \
    ASSERT_FALSE(got_);                                                                 \
    EXPECT_TRUE(got_.error() == (code)) << #call << " said " << got_.error().message(); \
  } while (false)

}  // namespace pawl::lifecycle
