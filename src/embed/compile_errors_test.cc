// A struct that contradicts itself does not compile, and the compiler's message names the reason.
// The case numbers are those of tests/cases/lifecycle.md.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace pawl::lifecycle {

// The headers, precompiled once for all structs below.
static const std::string& compiled_headers() {
  static const std::string header = [] {
    std::string path = testing::TempDir() + "/pawl-compile-" + std::to_string(getpid()) + ".h";
    std::ofstream(path) << "#include <pawl/lifecycle.h>\n";
    EXPECT_EQ(std::system(("g++ -std=c++20 -Iinclude -x c++-header " + path).c_str()), 0);
    return path;
  }();
  return header;
}

struct Headers : testing::Environment {
  void TearDown() override {
    std::system(("rm -f " + testing::TempDir() + "/pawl-compile-" + std::to_string(getpid()) + ".*")
                    .c_str());
  }
};
static testing::Environment* const headers = testing::AddGlobalTestEnvironment(new Headers);

// The compiler's message for a struct with these fields and this table; empty when it compiles.
// `members` are further members of the struct, `use` is the expression that main() evaluates.
static std::string compile(std::string_view members, std::string_view fields,
                           std::string_view table, std::string_view use = "m.register_type<S>()") {
  std::string path = testing::TempDir() + "/pawl-compile-" + std::to_string(getpid()) + ".cc";
  std::ofstream(path)
      << "namespace lc = pawl::lifecycle;\nstruct Elsewhere { std::string y{}; };\nstruct S {\n  "
         "std::string id{}, phase{}, x{};\n  int n = 0;\n"
      << members
      << "\n  static constexpr std::string_view workflow = \"s\", bucket = \"B\";\n  static "
         "constexpr auto fields = lc::fields("
      << fields << ");\n  static constexpr auto transitions = lc::table(" << table
      << ");\n};\nstruct NotOne { int n = 0; };\nint main() { lc::manager m; return " << use
      << " ? 0 : 1; }\n";
  std::string said;
  FILE* out = popen(("g++ -std=c++20 -fsyntax-only -Iinclude -include " + compiled_headers() + " " +
                     path + " 2>&1")
                        .c_str(),
                    "r");
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof part, out)) > 0;)
    said.append(part, n);
  int status = pclose(out);
  return status == 0 ? "" : said;
}

#define ID "lc::field<&S::id>(\"id\", lc::id)"
#define PHASE "lc::field<&S::phase>(\"phase\", lc::phase)"
static constexpr std::string_view kGoodTable = R"(lc::from("a", "b"), lc::terminal("b"))";

struct Bad {
  const char* name;
  std::string_view members, fields, table, says, use = "m.register_type<S>()";
};
class compile_error_of : public testing::TestWithParam<Bad> {};

// case 17, 18, 19, 20, 21, 23, 24, 25, 26, 29, 30
TEST_P(compile_error_of, names_the_reason) {
  const Bad& bad = GetParam();
  std::string said = compile(bad.members, bad.fields, bad.table, bad.use);
  EXPECT_NE(said.find(bad.says), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    structs, compile_error_of,
    testing::Values(
        Bad{"no_id", "", PHASE, kGoodTable, "missing_id_field"},
        Bad{"no_phase", "", ID, kGoodTable, "missing_phase_field"},
        Bad{"neither", "", "lc::field<&S::x>(\"x\")", kGoodTable, "missing_id_field"},
        Bad{"two_ids", "", ID ", lc::field<&S::x>(\"x\", lc::id), " PHASE, kGoodTable,
            "two_fields_are_tagged_lc_id"},
        Bad{"two_phases", "", ID ", " PHASE ", lc::field<&S::x>(\"x\", lc::phase)", kGoodTable,
            "two_fields_are_tagged_lc_phase"},
        Bad{"writable_id", "", "lc::field<&S::id>(\"id\", lc::id | lc::operator_writable), " PHASE,
            kGoodTable, "the_id_field_cannot_be_operator_writable"},
        Bad{"writable_phase", "",
            ID ", lc::field<&S::phase>(\"phase\", lc::phase | lc::operator_writable)", kGoodTable,
            "the_phase_field_cannot_be_operator_writable"},
        Bad{"readonly_writable", "",
            ID ", " PHASE ", lc::field<&S::x>(\"x\", lc::readonly | lc::operator_writable)",
            kGoodTable, "a_readonly_field_cannot_be_operator_writable"},
        Bad{"one_name_twice", "", ID ", " PHASE ", lc::field<&S::x>(\"phase\")", kGoodTable,
            "two_fields_have_the_same_name"},
        Bad{"number_as_id", "", "lc::field<&S::n>(\"n\", lc::id), " PHASE, kGoodTable,
            "the_id_field_is_not_a_std_string"},
        Bad{"id_is_phase", "", "lc::field<&S::id>(\"id\", lc::id | lc::phase)", kGoodTable,
            "one_field_is_tagged_both"},
        Bad{"odd_type", "void* p = nullptr;", ID ", " PHASE ", lc::field<&S::p>(\"p\")", kGoodTable,
            "a field must be std::string"},
        Bad{"undeclared_target", "", ID ", " PHASE, R"(lc::from("a", "nowhere"))",
            "a_target_is_not_declared_as_a_phase"},
        Bad{"doubled_target", "", ID ", " PHASE, R"(lc::from("a", "b", "b"), lc::terminal("b"))",
            "a_target_is_named_twice"},
        Bad{"empty_table", "", ID ", " PHASE, "", "it_declares_no_phase"},
        Bad{"number_as_phase", "", ID ", lc::field<&S::n>(\"n\", lc::phase)", kGoodTable,
            "the_phase_field_is_not_a_std_string"},
        Bad{"number_as_parent", "", ID ", " PHASE ", lc::field<&S::n>(\"n\", lc::parent)",
            kGoodTable, "the_parent_field_is_not_a_std_string"},
        Bad{"id_is_parent", "", "lc::field<&S::id>(\"id\", lc::id | lc::parent), " PHASE,
            kGoodTable, "the_parent_field_cannot_be_the_id_or_the_phase"},
        Bad{"two_parents", "std::string y{};",
            ID ", " PHASE
               ", lc::field<&S::x>(\"x\", lc::parent), lc::field<&S::y>(\"y\", lc::parent)",
            kGoodTable, "two_fields_are_tagged_lc_parent"},
        Bad{"nameless_field", "", ID ", " PHASE ", lc::field<&S::x>(\"\")", kGoodTable,
            "a_field_has_an_empty_name"},
        Bad{"nameless_phase", "", ID ", " PHASE, R"(lc::terminal(""))",
            "a_phase_has_an_empty_name"},
        Bad{"nameless_target", "", ID ", " PHASE, R"(lc::from("a", ""))",
            "a_target_has_an_empty_name"},
        Bad{"doubled_phase", "", ID ", " PHASE, R"(lc::terminal("a"), lc::terminal("a"))",
            "a_phase_is_declared_twice"},
        Bad{"success_that_goes_on", "", ID ", " PHASE,
            R"(lc::edges<1>{"a", {"b"}, true}, lc::terminal("b"))",
            "a_success_phase_is_not_terminal"},
        Bad{"foreign_member", "", ID ", " PHASE ", lc::field<&Elsewhere::y>(\"y\")", kGoodTable,
            "lists a member of another struct", "m.create(S{})"},
        Bad{"mutator_of_another_struct", "", ID ", " PHASE, kGoodTable,
            "a mutator takes the struct by reference", "m.update<S>(\"x\", [](Elsewhere&) {})"},
        Bad{"mutator_that_returns_a_number", "", ID ", " PHASE, kGoodTable,
            "a mutator returns nothing or result<void>",
            "m.update<S>(\"x\", [](S&) { return 7; })"},
        Bad{"no_participant", "", ID ", " PHASE, kGoodTable, "the struct is not a participant",
            "m.register_type<NotOne>()"},
        Bad{"filter_by_an_unlisted_member", "", ID ", " PHASE, kGoodTable,
            "not in the struct's lc::fields list", "m.list(lc::query<S>().where<&S::x>(\"v\"))"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(compile_error, a_correct_struct_compiles) {
  EXPECT_EQ(compile("", ID ", " PHASE, kGoodTable), "");
}

}  // namespace pawl::lifecycle
