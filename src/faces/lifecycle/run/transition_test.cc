// Transitions: the order of the checks, where complete and fail lead, and operator patches.

#include <thread>

#include "faces/lifecycle/missions_test.h"

namespace pawl::lifecycle {

struct transitions : Missions {};

// case 78
TEST_F(transitions, a_declared_edge_moves_the_phase_and_nothing_else) {
  make("m1");
  Mission before = *m.get<Mission>("m1");
  ASSERT_TRUE(m.transition<Mission>("m1", "flying"));
  before.phase = "flying";
  EXPECT_EQ(*m.get<Mission>("m1"), before);
}
// case 79
TEST_F(transitions, an_undeclared_target_is_refused) {
  make("m1");
  EXPECT_ERRC(m.transition<Mission>("m1", "exploded"), errc::invalid_transition);
}
// case 80
TEST_F(transitions, a_missing_edge_is_refused_naming_both_phases) {
  make("m1");
  auto got = m.transition<Mission>("m1", "completed");
  EXPECT_ERRC(got, errc::invalid_transition);
  EXPECT_NE(got.error().detail.find("planning"), std::string::npos);
  EXPECT_NE(got.error().detail.find("completed"), std::string::npos);
}
// case 81
TEST_F(transitions, a_terminal_phase_has_no_way_out) {
  make("m1", "aborted");
  EXPECT_ERRC(m.transition<Mission>("m1", "planning"), errc::terminal_phase);
}
// case 82
TEST_F(transitions, the_target_is_checked_before_the_state) {
  make("m1", "aborted");
  EXPECT_ERRC(m.transition<Mission>("m1", "exploded"), errc::invalid_transition);
}
// case 83
TEST_F(transitions, terminal_beats_a_missing_edge) {
  make("m1", "aborted");
  EXPECT_ERRC(m.transition<Mission>("m1", "capturing"), errc::terminal_phase);
}
// case 84
TEST_F(transitions, the_target_is_checked_before_the_entity) {
  EXPECT_ERRC(m.transition<Mission>("nobody", "exploded"), errc::invalid_transition);
  EXPECT_ERRC(m.transition<Mission>("nobody", "flying"), errc::entity_not_found);
}
// case 85
TEST_F(transitions, the_same_phase_needs_a_declared_self_edge) {
  make("m1", "flying");
  EXPECT_ERRC(m.transition<Mission>("m1", "flying"), errc::invalid_transition);
  dynamic_type t = describe<Mission>();
  t.name = "circling";
  t.transitions = {{"round", {"round"}}};
  ASSERT_TRUE(m.register_type(t));
  ASSERT_TRUE(m.create_json("circling", "c1", R"({"phase":"round"})"));
  EXPECT_TRUE(m.transition("circling", "c1", "round"));
}
// case 92
TEST_F(transitions, two_at_once_are_serialised) {
  for (int i = 0; i < 20; ++i) {
    std::string name = "m" + std::to_string(i);
    make(name);
    result<revision> flying = lifecycle::fail(errc::cancelled),
                     aborted = lifecycle::fail(errc::cancelled);
    std::thread a([&] { flying = m.transition<Mission>(name, "flying"); });
    std::thread b([&] { aborted = m.transition<Mission>(name, "aborted"); });
    a.join();
    b.join();
    EXPECT_TRUE(aborted);
    if (!flying) {
      EXPECT_TRUE(flying.error() == errc::terminal_phase);
    }
    EXPECT_EQ(phase_of(name), "aborted");
  }
}
// case 93
TEST_F(transitions, source_and_note_are_kept) {
  make("m1");
  ASSERT_TRUE(m.transition<Mission>("m1", "flying", {source::op, "cleared by tower"}));
  auto log = *m.history<Mission>("m1");
  EXPECT_EQ(log[1].triggered, source::op);
  EXPECT_EQ(log[1].note, "cleared by tower");
  EXPECT_EQ(log[1].caller, "embedded");
}
// case 94
TEST_F(transitions, a_source_outside_the_four_is_refused) {
  make("m1");
  EXPECT_ERRC(m.transition<Mission>("m1", "flying", {static_cast<source>(9), ""}),
              errc::invalid_transition);
  EXPECT_EQ(phase_of("m1"), "planning");
}

struct endings : Missions {};

// case 95
TEST_F(endings, complete_takes_the_first_terminal_target_and_warns_of_others) {
  make("m1", "landing");
  ASSERT_TRUE(m.complete<Mission>("m1"));
  EXPECT_EQ(phase_of("m1"), "completed");
  ASSERT_EQ(warnings.count(), 1u);
  EXPECT_NE(warnings.all[0].find("failed"), std::string::npos);
}
// case 96
TEST_F(endings, complete_with_one_candidate_does_not_warn) {
  make("m1", "planning");
  ASSERT_TRUE(m.complete<Mission>("m1"));
  EXPECT_EQ(phase_of("m1"), "aborted");
  EXPECT_EQ(warnings.count(), 0u);
}
// case 97
TEST_F(endings, complete_without_a_terminal_target_is_refused) {
  make("m1", "capturing");
  auto got = m.complete<Mission>("m1");
  EXPECT_ERRC(got, errc::invalid_transition);
  EXPECT_NE(got.error().detail.find("terminal phase"), std::string::npos);
}
// case 98
TEST_F(endings, complete_in_a_terminal_phase_is_refused) {
  make("m1", "aborted");
  EXPECT_ERRC(m.complete<Mission>("m1"), errc::terminal_phase);
}
// case 99
TEST_F(endings, an_unreachable_terminal_phase_is_not_chosen) {
  dynamic_type t = describe<Mission>();
  t.name = "loop";
  t.transitions = {{"start", {"middle"}}, {"middle", {"start"}}, {"completed", {}}};
  ASSERT_TRUE(m.register_type(t));
  ASSERT_TRUE(m.create_json("loop", "l1", R"({"phase":"start"})"));
  EXPECT_ERRC(m.complete("loop", "l1"), errc::invalid_transition);
}
// case 100
TEST_F(endings, complete_of_an_unknown_id_is_not_found) {
  EXPECT_ERRC(m.complete<Mission>("nobody"), errc::entity_not_found);
}
// case 101
TEST_F(endings, an_explicit_target_must_be_terminal) {
  make("m1", "planning");
  EXPECT_ERRC(m.complete<Mission>("m1", "flying"), errc::invalid_transition);
  make("m2", "landing");
  ASSERT_TRUE(m.complete<Mission>("m2", "failed"));
  EXPECT_EQ(phase_of("m2"), "failed");
}
TEST_F(endings, a_phase_marked_success_is_preferred_silently) {
  dynamic_type t = describe<Mission>();
  t.name = "marked";
  t.transitions = {{"work", {"aborted", "done"}}, {"aborted", {}}, {"done", {}}};
  t.success = {"done"};
  ASSERT_TRUE(m.register_type(t));
  ASSERT_TRUE(m.create_json("marked", "w1", R"({"phase":"work"})"));
  ASSERT_TRUE(m.run_action("w1", R"({"type":"lifecycle_complete"})"));
  EXPECT_EQ(m.lookup("w1")->phase, "done");
  EXPECT_EQ(warnings.count(), 0u);
}
// case 102
TEST_F(endings, fail_moves_to_failed) {
  make("m1", "landing");
  ASSERT_TRUE(m.fail<Mission>("m1", "engine"));
  EXPECT_EQ(phase_of("m1"), "failed");
}
// case 103
TEST_F(endings, a_missing_reason_is_reported_first) {
  manager bare(*engine);
  EXPECT_ERRC(bare.fail<Mission>("m1", ""), errc::reason_required);
}
// case 104
TEST_F(endings, fail_needs_an_edge) {
  make("m1");
  EXPECT_ERRC(m.fail<Mission>("m1", "x"), errc::invalid_transition);
}
// case 105
TEST_F(endings, fail_needs_a_phase_of_that_name) {
  dynamic_type t = describe<Mission>();
  t.name = "no-failed";
  t.transitions = {{"a", {}}};
  ASSERT_TRUE(m.register_type(t));
  ASSERT_TRUE(m.create_json("no-failed", "n1", R"({"phase":"a"})"));
  EXPECT_ERRC(m.fail("no-failed", "n1", "x"), errc::invalid_transition);
}
// case 106
TEST_F(endings, failed_need_not_be_terminal) {
  dynamic_type t = describe<Mission>();
  t.name = "retrying";
  t.transitions = {{"work", {"failed"}}, {"failed", {"work"}}};
  ASSERT_TRUE(m.register_type(t));
  ASSERT_TRUE(m.create_json("retrying", "r1", R"({"phase":"work"})"));
  EXPECT_TRUE(m.fail("retrying", "r1", "x"));
  EXPECT_EQ(m.lookup("r1")->phase, "failed");
}
// case 107
TEST_F(endings, fail_in_a_terminal_phase_is_refused) {
  make("m1", "completed");
  EXPECT_ERRC(m.fail<Mission>("m1", "x"), errc::terminal_phase);
}
// case 108
TEST_F(endings, the_reason_is_in_the_history) {
  make("m1", "landing");
  ASSERT_TRUE(m.fail<Mission>("m1", "engine"));
  auto log = *m.history<Mission>("m1");
  EXPECT_EQ(log[1].note, "engine");
  EXPECT_EQ(log[1].triggered, source::framework);
}

struct patches : Missions {
  void SetUp() override {
    Missions::SetUp();
    make("m1");
  }
  revision rev() { return m.get_with_revision<Mission>("m1")->second; }
};

// case 109
TEST_F(patches, a_writable_field_is_set_and_the_rest_stays) {
  Mission wanted = *m.get<Mission>("m1");
  ASSERT_TRUE(m.operator_patch<Mission>("m1", R"({"owner_org_id":"globex"})"));
  wanted.owner = "globex";
  EXPECT_EQ(*m.get<Mission>("m1"), wanted);
}
// case 110
TEST_F(patches, phase_id_and_untagged_fields_are_protected) {
  for (auto body : {R"({"phase":"flying"})", R"({"entity_id":"x"})", R"({"internal_state":"x"})"})
    EXPECT_ERRC(m.operator_patch<Mission>("m1", body), errc::field_not_operator_writable);
  EXPECT_EQ(phase_of("m1"), "planning");
  EXPECT_EQ(m.get<Mission>("m1")->internal, "");
}
// case 111
TEST_F(patches, one_protected_key_refuses_all) {
  EXPECT_ERRC(m.operator_patch<Mission>("m1", R"({"note":"x","phase":"flying"})"),
              errc::field_not_operator_writable);
  EXPECT_EQ(m.get<Mission>("m1")->note, "");
}
// case 112
TEST_F(patches, an_unknown_field_is_named) {
  auto got = m.operator_patch<Mission>("m1", R"({"noote":"x"})");
  EXPECT_ERRC(got, errc::unknown_field);
  EXPECT_NE(got.error().detail.find("noote"), std::string::npos);
}
// case 113
TEST_F(patches, a_number_is_not_a_text) {
  EXPECT_ERRC(m.operator_patch<Mission>("m1", R"({"note":7})"), errc::type_mismatch);
  EXPECT_EQ(m.get<Mission>("m1")->note, "");
}
// case 114
TEST_F(patches, integers_are_taken_in_their_range) {
  ASSERT_TRUE(m.operator_patch<Mission>("m1", R"({"waypoint_index":4,"retries":-1})"));
  EXPECT_EQ(m.get<Mission>("m1")->waypoint, 4u);
  EXPECT_EQ(m.get<Mission>("m1")->retries, -1);
  for (auto body : {R"({"waypoint_index":-1})", R"({"waypoint_index":1.5})",
                    R"({"waypoint_index":4294967296})", R"({"waypoint_index":1e400})"})
    EXPECT_ERRC(m.operator_patch<Mission>("m1", body), errc::type_mismatch);
  EXPECT_EQ(m.get<Mission>("m1")->waypoint, 4u);
}
// case 115
TEST_F(patches, null_is_the_zero) {
  ASSERT_TRUE(m.operator_patch<Mission>("m1", R"({"owner_org_id":null,"armed":null})"));
  EXPECT_EQ(m.get<Mission>("m1")->owner, "");
}
// case 116
TEST_F(patches, an_empty_patch_writes_nothing) {
  revision before = rev();
  auto got = m.operator_patch<Mission>("m1", "{}");
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, before);
  EXPECT_EQ(rev(), before);
}
// case 117
TEST_F(patches, an_empty_patch_of_an_unknown_id_is_not_found) {
  EXPECT_ERRC(m.operator_patch<Mission>("nobody", "{}"), errc::entity_not_found);
  EXPECT_ERRC(m.operator_patch("ghost", "m1", "{}"), errc::workflow_not_registered);
}
// case 118
TEST_F(patches, a_protected_field_is_reported_before_a_missing_entity_and_a_wrong_type) {
  EXPECT_ERRC(m.operator_patch<Mission>("nobody", R"({"phase":"x"})"),
              errc::field_not_operator_writable);
  EXPECT_ERRC(m.operator_patch<Mission>("nobody", R"({"note":7})"), errc::entity_not_found);
}
// case 119
TEST_F(patches, an_instance_in_a_terminal_phase_may_be_patched) {
  make("done", "completed");
  EXPECT_TRUE(m.operator_patch<Mission>("done", R"({"note":"post mortem"})"));
}
TEST_F(patches, a_patch_that_is_no_object_is_the_callers_error) {
  for (auto no_json : {"[", "", "[]"}) {
    EXPECT_ERRC(m.operator_patch<Mission>("m1", no_json), errc::type_mismatch);
    EXPECT_ERRC(m.put_rule("r", no_json), errc::invalid_rule);
    EXPECT_ERRC(m.run_action("m1", no_json), errc::invalid_rule);
  }
}
// case 120
TEST_F(patches, rules_may_write_operator_writable_fields) {
  EXPECT_TRUE(m.rule_writable("drone-survey", "owner_org_id"));
  for (auto name : {"entity_id", "phase", "internal_state", "nothing"})
    EXPECT_ERRC(m.rule_writable("drone-survey", name), errc::field_not_operator_writable);
  EXPECT_ERRC(m.rule_writable("ghost", "owner_org_id"), errc::workflow_not_registered);
}
// case 121
TEST_F(patches, field_types_are_visible_only_for_writable_fields) {
  EXPECT_EQ(*m.field_type("drone-survey", "waypoint_index"), kind::uint32);
  EXPECT_ERRC(m.field_type("drone-survey", "phase"), errc::field_not_operator_writable);
}

}  // namespace pawl::lifecycle
