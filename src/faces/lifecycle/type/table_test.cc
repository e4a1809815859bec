// Transitions tables, field lists and the registration of types: the checks and their order.

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/missions_test.h"
#include "faces/lifecycle/type/shapes.h"
#include "faces/lifecycle/type/workflow_type.h"
#include "json/text.h"

namespace pawl::lifecycle {

static dynamic_type drone() { return describe<Mission>(); }

static dynamic_type with_table(
    std::vector<std::pair<std::string, std::vector<std::string>>> transitions) {
  dynamic_type out = drone();
  out.transitions = std::move(transitions);
  return out;
}

static errc code_of(const Result<void>& got) { return got ? errc{} : errc_of(got.error()); }

// case 1
TEST(table, the_drone_survey_is_valid) { EXPECT_TRUE(validate_table(drone())); }
// case 2
TEST(table, an_empty_table_is_refused) {
  EXPECT_EQ(code_of(validate_table(with_table({}))), errc::invalid_transitions_table);
}
// case 3
TEST(table, an_edge_to_an_undeclared_phase_is_refused_by_name) {
  auto got = validate_table(with_table({{"a", {"nowhere"}}}));
  EXPECT_EQ(code_of(got), errc::invalid_transitions_table);
  EXPECT_NE(got.error().message.find("nowhere"), std::string::npos);
}
// case 4
TEST(table, a_target_twice_from_one_phase_is_refused) {
  EXPECT_EQ(code_of(validate_table(with_table({{"a", {"b", "b"}}, {"b", {}}}))),
            errc::invalid_transitions_table);
}
// case 5
TEST(table, an_empty_phase_name_is_refused) {
  EXPECT_EQ(code_of(validate_table(with_table({{"", {}}}))), errc::invalid_transitions_table);
}
// case 6
TEST(table, an_empty_target_name_is_refused) {
  EXPECT_EQ(code_of(validate_table(with_table({{"a", {""}}}))), errc::invalid_transitions_table);
}
// case 7
TEST(table, a_cycle_without_an_end_is_valid) {
  EXPECT_TRUE(validate_table(with_table({{"flying", {"capturing"}}, {"capturing", {"flying"}}})));
}
// case 8
TEST(table, a_self_edge_is_valid) { EXPECT_TRUE(validate_table(with_table({{"a", {"a"}}}))); }
// case 9
TEST(table, unreachable_phases_and_several_entries_are_valid) {
  EXPECT_TRUE(
      validate_table(with_table({{"a", {"end"}}, {"b", {"end"}}, {"island", {}}, {"end", {}}})));
}

// case 10
TEST(table, terminal_phases_have_no_way_out) {
  for (auto phase_name : {"completed", "failed", "aborted"})
    EXPECT_TRUE(Mission::transitions.is_terminal(phase_name));
  for (auto phase_name : {"planning", "flying"})
    EXPECT_FALSE(Mission::transitions.is_terminal(phase_name));
}
// case 11
TEST(table, an_undeclared_phase_counts_as_terminal) {
  EXPECT_TRUE(Mission::transitions.is_terminal("never-declared"));
  EXPECT_TRUE(drone().is_terminal("never-declared"));
}
// case 12
TEST(table, declared_edges_are_allowed) {
  static_assert(Mission::transitions.allows("planning", "flying") &&
                Mission::transitions.allows("capturing", "flying"));
  EXPECT_TRUE(drone().allows("landing", "completed"));
}
// case 13
TEST(table, undeclared_edges_are_refused) {
  static_assert(!Mission::transitions.allows("planning", "completed") &&
                !Mission::transitions.allows("completed", "flying"));
  EXPECT_FALSE(drone().allows("unknown", "flying"));
  EXPECT_FALSE(drone().allows("flying", "unknown"));
}
// case 14
TEST(table, phases_are_sorted) {
  std::vector<std::string> all{"aborted", "capturing", "completed", "failed",
                               "flying",  "landing",   "planning"};
  EXPECT_EQ(Mission::transitions.phases(), all);
  EXPECT_EQ(drone().phases(), all);
}
// case 15
TEST(table, terminal_phases_are_sorted) {
  std::vector<std::string> ends{"aborted", "completed", "failed"};
  EXPECT_EQ(Mission::transitions.phases(true), ends);
  EXPECT_EQ(drone().phases(true), ends);
}

// Describing a type.
static Result<void> data_type(std::string_view fields_json) {
  auto body = js::parse(R"({"bucket":"B","fields":)" + std::string(fields_json) +
                        R"(,"transitions":{"a":[]}})");
  if (!body) return fail(body.error());
  auto def = parse_type("t", *body);
  if (!def) return fail(def.error());
  return validate(*def);
}
#define ID R"({"name":"id","type":"string","tags":["id"]})"
#define PHASE R"({"name":"phase","type":"string","tags":["phase"]})"

// case 16
TEST(describe, the_writable_list_is_exactly_the_tagged_fields_sorted) {
  dynamic_type t = describe<Capture>();
  EXPECT_EQ(t.operator_writable_fields(), (std::vector<std::string>{"assignee", "priority"}));
}
// case 17
TEST(describe, a_missing_id_is_named) {
  EXPECT_EQ(code_of(data_type("[" PHASE "]")), errc::missing_id_field);
}
// case 18
TEST(describe, a_missing_phase_is_named) {
  EXPECT_EQ(code_of(data_type("[" ID "]")), errc::missing_phase_field);
}
// case 19
TEST(describe, a_missing_id_is_reported_first) {
  EXPECT_EQ(code_of(data_type("[]")), errc::missing_id_field);
}
// case 20
TEST(describe, two_ids_are_refused) {
  EXPECT_EQ(
      code_of(data_type("[" ID R"(,{"name":"id2","type":"string","tags":["id"]},)" PHASE "]")),
      errc::invalid_definition);
}
// case 21
TEST(describe, two_phases_are_refused) {
  EXPECT_EQ(
      code_of(data_type("[" ID "," PHASE R"(,{"name":"p2","type":"string","tags":["phase"]}])")),
      errc::invalid_definition);
}
// case 22
TEST(describe, an_unknown_tag_is_refused_by_name) {
  auto got = data_type("[" ID "," PHASE R"(,{"name":"x","type":"string","tags":["shiny"]}])");
  EXPECT_EQ(code_of(got), errc::invalid_definition);
  EXPECT_NE(got.error().message.find("shiny"), std::string::npos);
}
// case 23
TEST(describe, a_writable_id_is_refused) {
  EXPECT_EQ(code_of(data_type(
                R"([{"name":"id","type":"string","tags":["id","operator_writable"]},)" PHASE "]")),
            errc::invalid_definition);
}
// case 24
TEST(describe, a_writable_phase_is_refused) {
  EXPECT_EQ(
      code_of(data_type(
          "[" ID R"(,{"name":"phase","type":"string","tags":["phase","operator_writable"]}])")),
      errc::invalid_definition);
}
// case 25
TEST(describe, readonly_and_writable_contradict) {
  EXPECT_EQ(code_of(data_type(
                "[" ID "," PHASE
                R"(,{"name":"x","type":"string","tags":["readonly","operator_writable"]}])")),
            errc::invalid_definition);
}
// case 26
TEST(describe, two_fields_of_one_name_are_refused_naming_both) {
  auto got =
      data_type("[" ID "," PHASE R"(,{"name":"x","type":"string"},{"name":"x","type":"bool"}])");
  EXPECT_EQ(code_of(got), errc::invalid_definition);
  EXPECT_NE(got.error().message.find("fields 3 and 4"), std::string::npos) << got.error().message;
}
// case 27
TEST(describe, a_tag_list_with_blanks_and_a_trailing_comma_is_accepted) {
  EXPECT_TRUE(
      data_type("[" ID "," PHASE
                R"(,{"name":"x","type":"string","tags":" operator_writable , indexable, "}])"));
}
// case 28
TEST(describe, a_phase_is_readonly_by_default) {
  EXPECT_TRUE(describe<Capture>().is_readonly("phase"));
}
// case 29
TEST(describe, id_and_phase_must_be_strings) {
  EXPECT_EQ(code_of(data_type(R"([{"name":"id","type":"int64","tags":["id"]},)" PHASE "]")),
            errc::invalid_definition);
  EXPECT_EQ(code_of(data_type("[" ID R"(,{"name":"phase","type":"bool","tags":["phase"]}])")),
            errc::invalid_definition);
}
// case 30
TEST(describe, one_field_cannot_be_id_and_phase) {
  EXPECT_EQ(code_of(data_type(R"([{"name":"id","type":"string","tags":["id","phase"]}])")),
            errc::invalid_definition);
}
TEST(describe, every_type_of_the_row_is_a_type) {
  for (std::string_view name : document::kField["type"].choices)
    EXPECT_TRUE(
        data_type("[" ID "," PHASE R"(,{"name":"more","type":")" + std::string(name) + R"("}])"))
        << name;
}
TEST(describe, names_fields_and_phases_have_limits) {
  dynamic_type t = drone();
  t.name = std::string(limits::kNameBytes, 'n');
  EXPECT_TRUE(validate(t));
  t.name.push_back('n');
  EXPECT_EQ(code_of(validate(t)), errc::invalid_definition);
  t = drone();
  while (t.fields.size() < limits::kFields)
    t.fields.push_back({"f" + std::to_string(t.fields.size()), kind::boolean, none});
  EXPECT_TRUE(validate(t));
  t.fields.push_back({"last", kind::boolean, none});
  EXPECT_EQ(code_of(validate(t)), errc::invalid_definition);
  t = drone();
  while (t.transitions.size() < limits::kPhases)
    t.transitions.push_back({"p" + std::to_string(t.transitions.size()), {}});
  EXPECT_TRUE(validate(t));
  t.transitions.push_back({"last", {}});
  EXPECT_EQ(code_of(validate(t)), errc::invalid_transitions_table);
  t = with_table({{std::string(limits::kNameBytes + 1, 'p'), {}}});
  EXPECT_EQ(code_of(validate(t)), errc::invalid_transitions_table);
}
TEST(describe, a_definition_survives_its_json) {
  dynamic_type t = drone();
  auto back = parse_type(t.name, type_json(t));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, t);
  EXPECT_EQ(t.key_prefix, "mission.");
}

// Registration.
struct registration : Missions {};

// case 32
TEST_F(registration, the_definition_has_name_table_bucket_and_sorted_writable_fields) {
  auto def = m.definition("drone-survey");
  ASSERT_TRUE(def);
  EXPECT_EQ(def->bucket, "MISSIONS");
  EXPECT_TRUE(def->allows("planning", "flying"));
  EXPECT_EQ(def->operator_writable_fields(),
            (std::vector<std::string>{"armed", "battery_pct", "drone_id", "note", "owner_org_id",
                                      "retries", "tags", "waypoint_index"}));
}
// case 33
TEST_F(registration, a_second_registration_is_refused) {
  EXPECT_ERRC(m.register_type<Mission>(), errc::workflow_already_registered);
}
// case 34
TEST_F(registration, an_empty_name_is_not_a_workflow) {
  dynamic_type t = drone();
  t.name.clear();
  EXPECT_ERRC(m.register_type(t), errc::workflow_not_registered);
}
// case 35
TEST_F(registration, a_bad_table_is_reported_before_a_duplicate) {
  dynamic_type t = drone();
  t.transitions = {{"a", {"b"}}};
  EXPECT_ERRC(m.register_type(t), errc::invalid_transitions_table);
}
// case 36
TEST_F(registration, definitions_are_sorted_by_name) {
  auto all = m.definitions();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "capture-task");
  EXPECT_EQ((*all)[1].name, "drone-survey");
}
// case 37
TEST_F(registration, an_unknown_name_has_no_definition) {
  EXPECT_ERRC(m.definition("ghost"), errc::workflow_not_registered);
}
// case 38
TEST_F(registration, reads_run_during_registration) {
  make("m1");
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done)
      EXPECT_TRUE(m.get<Mission>("m1"));
  });
  for (int i = 0; i < 50; ++i) {
    dynamic_type t = drone();
    t.name = "type-" + std::to_string(i);
    EXPECT_TRUE(m.register_type(t));
  }
  done = true;
  reader.join();
}
// case 39
TEST_F(registration, another_manager_on_the_same_store_finds_the_same_state) {
  make("m1");
  manager second(*engine);
  ASSERT_TRUE(second.register_type<Mission>());
  EXPECT_EQ(*second.get<Mission>("m1"), *m.get<Mission>("m1"));
}

// The same workflow in an earlier program: one field more, and one of another kind.
struct OlderMission {
  std::string entity_id{}, phase = "planning", legacy{};
  static constexpr std::string_view workflow = "drone-survey", bucket = "MISSIONS";
  static constexpr auto fields =
      lifecycle::fields(field<&OlderMission::entity_id>("entity_id", lifecycle::id),
                        field<&OlderMission::phase>("phase", lifecycle::phase),
                        field<&OlderMission::legacy>("legacy"));
  static constexpr auto transitions = Mission::transitions;
};

// case 50
TEST(evolution, unknown_members_survive_a_structs_writes) {
  auto engine = *Engine::open();
  manager old_one(*engine);
  ASSERT_TRUE(old_one.register_type<OlderMission>());
  ASSERT_TRUE(old_one.create(OlderMission{.entity_id = "m1", .legacy = "keep me"}));
  manager new_one(*engine);
  ASSERT_TRUE(new_one.register_type<Mission>());
  EXPECT_EQ(new_one.get<Mission>("m1")->owner, "");
  ASSERT_TRUE(new_one.update<Mission>("m1", [](Mission& x) { x.owner = "acme"; }));
  EXPECT_EQ(old_one.get<OlderMission>("m1")->legacy, "keep me");
}

struct MisfitMission {
  std::string entity_id{}, phase = "planning";
  bool retries = false;
  static constexpr std::string_view workflow = "drone-survey", bucket = "MISSIONS";
  static constexpr auto fields =
      lifecycle::fields(field<&MisfitMission::entity_id>("entity_id", lifecycle::id),
                        field<&MisfitMission::phase>("phase", lifecycle::phase),
                        field<&MisfitMission::retries>("retries"));
  static constexpr auto transitions = Mission::transitions;
};

// case 134
TEST(evolution, a_value_that_no_longer_fits_is_skipped_with_a_warning) {
  auto engine = *Engine::open();
  manager first(*engine);
  ASSERT_TRUE(first.register_type<Mission>());
  ASSERT_TRUE(first.create(Mission{.entity_id = "old"}));
  Warnings warnings;
  manager second(*engine, warnings.options());
  ASSERT_TRUE(second.register_type<MisfitMission>());
  ASSERT_TRUE(second.create(MisfitMission{.entity_id = "new"}));
  EXPECT_ERRC(second.get<MisfitMission>("old"), errc::corrupt_value);
  auto listed = second.list<MisfitMission>();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].entity_id, "new");
  EXPECT_EQ(listed->skipped, 1u);
  EXPECT_GE(warnings.count(), 1u);
  auto stream = second.watch<MisfitMission>();
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->next()->id, "new");
}

}  // namespace pawl::lifecycle
