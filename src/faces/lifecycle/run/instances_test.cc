// Creating, reading and updating instances, drift included.

#include <thread>

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/missions_test.h"

namespace pawl::lifecycle {

struct instances : Missions {};

// case 40
TEST_F(instances, a_created_instance_is_read_back) {
  Mission one{.entity_id = "m1",
              .owner = "acme",
              .drone = "d7",
              .waypoint = 3,
              .retries = -2,
              .battery = 12.5,
              .armed = true,
              .labels = {"x", "y"},
              .note = "n",
              .internal = "i",
              .parent = "p"};
  ASSERT_TRUE(m.create(one));
  EXPECT_EQ(*m.get<Mission>("m1"), one);
}
// case 41
TEST_F(instances, an_unregistered_type_has_none) {
  manager bare(*engine);
  EXPECT_ERRC(bare.get<Mission>("m1"), errc::workflow_not_registered);
}
// case 42
TEST_F(instances, an_unknown_id_is_not_found) {
  EXPECT_ERRC(m.get<Mission>("nobody"), errc::entity_not_found);
}
// case 43
TEST_F(instances, a_duplicate_id_is_refused_and_changes_nothing) {
  make("m1");
  EXPECT_ERRC(m.create(Mission{.entity_id = "m1", .owner = "other"}), errc::already_exists);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "acme");
}
// case 44
TEST_F(instances, an_undeclared_initial_phase_is_refused) {
  EXPECT_ERRC(m.create(Mission{.entity_id = "m1", .phase = "exploded"}), errc::invalid_transition);
  EXPECT_ERRC(m.get<Mission>("m1"), errc::entity_not_found);
}
// case 45
TEST_F(instances, the_initial_phase_is_checked_before_the_id) {
  make("m1");
  EXPECT_ERRC(m.create(Mission{.entity_id = "m1", .phase = "exploded"}), errc::invalid_transition);
}
// case 46
TEST_F(instances, a_terminal_initial_phase_is_allowed) { make("m1", "completed"); }
// case 47
TEST_F(instances, an_id_need_not_have_six_parts) { make("just-one"); }
// case 48
TEST_F(instances, impossible_ids_are_refused) {
  for (std::string bad : {std::string(), std::string("a b"), std::string("a*"),
                          std::string(10'000, 'x'), std::string("a\nb")}) {
    EXPECT_ERRC(m.create(Mission{.entity_id = bad}), errc::bad_id);
    EXPECT_ERRC(m.get<Mission>(bad), errc::bad_id);
  }
}
TEST_F(instances, an_id_is_text_of_at_most_1024_bytes) {
  make(std::string(limits::kIdBytes, 'x'));
  EXPECT_ERRC(m.create(Mission{.entity_id = std::string(limits::kIdBytes + 1, 'x')}), errc::bad_id);
  make("caf\xc3\xa9");
  EXPECT_ERRC(m.create(Mission{.entity_id = "caf\xe9"}), errc::bad_id);
}
TEST_F(instances, an_id_may_have_slashes_and_zero_like_bytes) {
  make("a/b/c");
  EXPECT_EQ(phase_of("a/b/c"), "planning");
  EXPECT_ERRC(m.get<Mission>("a/b"), errc::entity_not_found);
}
// case 49
TEST_F(instances, a_read_state_is_a_copy) {
  make("m1");
  Mission copy = *m.get<Mission>("m1");
  copy.owner = "changed";
  EXPECT_EQ(m.get<Mission>("m1")->owner, "acme");
}
// case 51
TEST_F(instances, only_omitempty_fields_are_left_out) {
  make("m1");
  std::string shown = m.get_json("drone-survey", "m1")->json;
  EXPECT_EQ(shown.find("drone_id"), std::string::npos);
  EXPECT_NE(shown.find("\"waypoint_index\":0"), std::string::npos) << shown;
}
// case 52
TEST_F(instances, a_removed_instance_may_be_created_again) {
  make("m1");
  ASSERT_TRUE(m.remove<Mission>("m1"));
  EXPECT_ERRC(m.get<Mission>("m1"), errc::entity_not_found);
  EXPECT_ERRC(m.remove<Mission>("m1"), errc::entity_not_found);
  make("m1");
}
// case 39
TEST(engine, a_restart_finds_everything_again) {
  std::string folder = testing::TempDir() + "/pawl-engine-" + std::to_string(getpid());
  for (int run = 0; run < 3; ++run) {
    auto engine = Engine::open({.data = folder});
    ASSERT_TRUE(engine) << engine.error().message();
    manager m(**engine);
    ASSERT_TRUE(m.register_type<Mission>());
    if (run == 0) {
      ASSERT_TRUE(m.create(Mission{.entity_id = "m1", .owner = "acme"}));
    }
    ASSERT_TRUE(m.update<Mission>("m1", [](Mission& x) { ++x.waypoint; }));
    EXPECT_EQ(m.get<Mission>("m1")->waypoint, static_cast<uint32_t>(run + 1));
    EXPECT_EQ(m.history<Mission>("m1")->size(), 1u);
    EXPECT_TRUE((*engine)->verify());
  }
  std::system(("rm -rf " + folder).c_str());
}
TEST(engine, a_folder_has_one_owner_at_a_time) {
  std::string folder = testing::TempDir() + "/pawl-owned-" + std::to_string(getpid());
  {
    auto first = Engine::open({.data = folder});
    ASSERT_TRUE(first);
    manager m(**first);
    ASSERT_TRUE(m.register_type<Mission>());
    ASSERT_TRUE(m.create(Mission{.entity_id = "m1"}));
    auto second = Engine::open({.data = folder});
    EXPECT_FALSE(second);
    ASSERT_TRUE(m.transition<Mission>("m1", "flying"));
    EXPECT_EQ(m.list<Mission>()->size(), 1u);
  }
  EXPECT_TRUE(Engine::open({.data = folder}));
  std::system(("rm -rf " + folder).c_str());
}
TEST(engine, a_folder_that_is_not_a_data_directory_is_refused) {
  std::string folder = testing::TempDir() + "/pawl-not-data-" + std::to_string(getpid());
  std::system(("mkdir -p " + folder + " && touch " + folder + "/something").c_str());
  auto engine = Engine::open({.data = folder});
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().detail.find("NOT_A_DATA_DIR"), std::string::npos)
      << engine.error().detail;
  std::system(("rm -rf " + folder).c_str());
}

TEST(engine, a_folder_that_cannot_be_created_is_refused) {
  auto engine = Engine::open({.data = "/proc/pawl/data"});
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().detail.find("cannot make /proc/pawl/data: "), std::string::npos)
      << engine.error().detail;
}

struct drifting : Missions {};

// case 53
TEST_F(drifting, the_value_is_returned_with_one_warning_that_names_everything) {
  drift("m1", "lost");
  EXPECT_EQ(phase_of("m1"), "lost");
  ASSERT_EQ(warnings.count(), 1u);
  for (auto word : {"drone-survey", "m1", "lost", "aborted, capturing"})
    EXPECT_NE(warnings.all[0].find(word), std::string::npos) << warnings.all[0];
}
// case 54
TEST_F(drifting, a_hundred_reads_are_one_warning) {
  drift("m1", "lost");
  for (int i = 0; i < 100; ++i) {
    (void)m.get<Mission>("m1").has_value();
    (void)m.list<Mission>().has_value();
  }
  EXPECT_EQ(warnings.count(), 1u);
}
// case 55
TEST_F(drifting, each_undeclared_phase_is_warned_about) {
  drift("m1", "lost");
  (void)phase_of("m1");
  ASSERT_TRUE(m.update<Mission>("m1", [](Mission& x) { x.phase = "worse"; }));
  (void)phase_of("m1");
  EXPECT_EQ(warnings.count(), 2u);
}
TEST_F(drifting, links_warn_and_a_log_callback_may_call_the_manager) {
  std::unique_ptr<manager> asking;
  int warned = 0;
  asking = std::make_unique<manager>(*engine, manager_options{[&](std::string_view) {
    ++warned;
    EXPECT_TRUE(asking->get<Mission>("m1"));
  }});
  ASSERT_TRUE(asking->register_type<Mission>());
  drift("m1", "lost");
  EXPECT_TRUE(asking->lookup("m1"));
  EXPECT_TRUE(asking->get<Mission>("m1"));
  EXPECT_EQ(warned, 1);
  asking.reset();
}
// case 56
TEST_F(drifting, no_transition_leaves_an_undeclared_phase) {
  drift("m1", "lost");
  EXPECT_ERRC(m.transition<Mission>("m1", "flying"), errc::terminal_phase);
}
// case 57
TEST_F(drifting, complete_does_not_leave_an_undeclared_phase) {
  drift("m1", "lost");
  EXPECT_ERRC(m.complete<Mission>("m1"), errc::terminal_phase);
}
// case 58
TEST_F(drifting, an_undeclared_phase_is_listed_but_not_active) {
  drift("m1", "lost");
  query<Mission> q;
  EXPECT_EQ(m.list(q)->size(), 1u);
  q.active = true;
  EXPECT_EQ(m.list(q)->size(), 0u);
}
// case 59
TEST_F(drifting, an_update_to_a_declared_phase_heals) {
  drift("m1", "lost");
  ASSERT_TRUE(m.update<Mission>("m1", [](Mission& x) { x.phase = "flying"; }));
  EXPECT_TRUE(m.transition<Mission>("m1", "landing"));
}

}  // namespace pawl::lifecycle
