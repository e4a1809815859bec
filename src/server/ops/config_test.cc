#include "server/ops/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pawl::server {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pawl_config_XXXXXX";
    folder_ = mkdtemp(name);
    sources_.variable = [this](const std::string& name) -> std::optional<std::string> {
      auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(std::string name, std::string_view text) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal() {
    auto config = Config::load(sources_);
    return config ? "" : config.error().message;
  }
  std::string folder_;
  std::map<std::string, std::string> variables_;
  ConfigSources sources_;
};

TEST_F(ConfigTest, a_flag_wins_over_a_variable_over_the_file_over_the_default) {
  EXPECT_EQ(Config::load(sources_)->text("http"), "127.0.0.1:8080");
  sources_.file = file("pawl.toml",
                       "http = \":1\"\nthreads = 4\n[entities]\nkeepalive_interval = "
                       "\"5s\"\n[cors]\norigins = [\"a\", \"b\"]\n");
  auto config = Config::load(sources_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->text("http"), ":1");
  EXPECT_EQ(config->number("threads"), 4);
  EXPECT_EQ(config->duration("keepalive-interval"), 5 * kSecond);
  EXPECT_EQ(config->text("cors-origins"), "a,b");
  variables_["CYODA_HTTP_PORT"] = "8081";
  EXPECT_EQ(Config::load(sources_)->text("http"), "127.0.0.1:8081");
  variables_["PAWL_HTTP"] = ":2";
  EXPECT_EQ(Config::load(sources_)->text("http"), ":2");
  sources_.flags["http"] = ":3";
  EXPECT_EQ(Config::load(sources_)->text("http"), ":3");
}

TEST_F(ConfigTest, secrets_may_come_from_files_and_are_not_shown) {
  variables_["CYODA_BOOTSTRAP_CLIENT_SECRET_FILE"] = file("secret", "hush\n");
  auto config = Config::load(sources_);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->text("bootstrap-secret"), "hush");
  std::string shown = config->print();
  EXPECT_EQ(shown.find("hush"), std::string::npos);
  EXPECT_NE(shown.find("***  (CYODA_BOOTSTRAP_CLIENT_SECRET_FILE)"), std::string::npos);
  EXPECT_NE(shown.find("127.0.0.1:8080  (default)"), std::string::npos);
  variables_["CYODA_BOOTSTRAP_CLIENT_SECRET_FILE"] = folder_ + "/missing";
  EXPECT_NE(refusal().find("missing"), std::string::npos);
}

TEST_F(ConfigTest, an_unknown_key_is_answered_with_the_nearest) {
  sources_.file = file("pawl.toml", "[log]\nlevl = \"debug\"\n");
  EXPECT_NE(refusal().find("did you mean log.level?"), std::string::npos) << refusal();
  sources_.file = file("bad.toml", "http = \n");
  EXPECT_NE(refusal().find("bad.toml:1"), std::string::npos) << refusal();
  sources_.file.clear();
  sources_.flags["htpp"] = "x";
  EXPECT_NE(refusal().find("did you mean --http?"), std::string::npos);
}

TEST_F(ConfigTest, a_bad_value_names_where_it_came_from) {
  variables_["PAWL_THREADS"] = "many";
  EXPECT_NE(refusal().find("threads (from PAWL_THREADS) is 'many'"), std::string::npos)
      << refusal();
  variables_.clear();
  variables_["PAWL_HTTP"] = "nowhere";
  EXPECT_NE(refusal().find("PAWL_HTTP"), std::string::npos);
  variables_.clear();
  variables_["PAWL_INSECURE"] = "maybe";
  EXPECT_NE(refusal().find("true or false"), std::string::npos);
}

TEST_F(ConfigTest, a_value_outside_its_list_is_refused) {
  for (auto [flag, value, allowed] :
       {std::tuple("auth", "basic", "none, jwt or mock"),
        std::tuple("log-level", "loud", "debug, info, warn, error or off"),
        std::tuple("log-format", "xml", "json, text or auto"),
        std::tuple("error-mode", "chatty", "sanitized or verbose")}) {
    sources_.flags = {{flag, value}};
    EXPECT_EQ(refusal(),
              std::string(flag) + " (from --" + flag + ") is '" + value + "'; allowed: " + allowed);
  }
}

TEST_F(ConfigTest, a_setting_of_a_later_version_is_unknown) {
  for (const char* flag : {"journal", "node"}) {
    sources_.flags = {{flag, "4"}};
    EXPECT_NE(refusal().find("there is no flag --" + std::string(flag)), std::string::npos);
  }
}

TEST_F(ConfigTest, durations_have_units) {
  EXPECT_EQ(*parse_setting_duration("500ms"), 500 * kMillisecond);
  EXPECT_EQ(*parse_setting_duration("10"), 10 * kSecond);
  EXPECT_EQ(*parse_setting_duration("2m"), 120 * kSecond);
  EXPECT_EQ(*parse_setting_duration("PT1M"), 60 * kSecond);
  for (const char* bad : {"", "s", "-1s", "1d", "99999999999999999h", "1.5s"})
    EXPECT_FALSE(parse_setting_duration(bad)) << bad;
}

TEST_F(ConfigTest, cells_of_a_workflow_are_a_whole_number) {
  auto load = [](const std::string& text) {
    return Config::load({.flags = {{"workflow-cells", text}}});
  };
  EXPECT_EQ(Config::load({})->number("workflow-cells"), 4096);
  for (int64_t good : {0, 1, 100'000})
    EXPECT_EQ(load(std::to_string(good))->number("workflow-cells"), good);
  for (const char* bad : {"", "-1", "many", "1.5", "4096 ", "99999999999999999999"}) {
    auto refused = load(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().reason, "BAD_SETTING");
  }
}

TEST_F(ConfigTest, every_setting_is_named_once_and_documented) {
  std::set<std::string_view> seen;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(seen.insert(setting.flag).second) << setting.flag;
    EXPECT_TRUE(seen.insert(setting.variable).second) << setting.variable;
    EXPECT_FALSE(setting.doc.empty()) << setting.flag;
    EXPECT_NE(settings_reference().find("| `--" + std::string(setting.flag)), std::string::npos);
    EXPECT_TRUE(normal_value(setting.type, setting.default_value)) << setting.flag;
  }
  // The reference page is printed from the table and must not fall behind.
  std::ifstream page("docs/reference/server.md");
  ASSERT_TRUE(page) << "run from the top of the tree";
  std::string text((std::istreambuf_iterator<char>(page)), {});
  EXPECT_NE(text.find(settings_reference()), std::string::npos)
      << "docs/reference/server.md must hold:\n"
      << settings_reference();
}

TEST(variables, a_tenant_reads_only_what_the_operator_allowed_it) {
  ::setenv("WORLD_TOKEN", "t0ken", 1);
  ::setenv("PAWL_OWN", "own", 1);
  const std::vector<std::string> allowed{"acme:WORLD_TOKEN", "*:PAWL_OWN", "broken"};
  EXPECT_EQ(allowed_variable(allowed, "acme", "WORLD_TOKEN"), "t0ken");
  EXPECT_EQ(allowed_variable(allowed, "other", "WORLD_TOKEN"), std::nullopt);
  EXPECT_EQ(allowed_variable({"*:WORLD_TOKEN"}, "other", "WORLD_TOKEN"), "t0ken");
  EXPECT_EQ(allowed_variable({}, "acme", "WORLD_TOKEN"), std::nullopt);
  EXPECT_EQ(allowed_variable(allowed, "acme", "PAWL_OWN"), std::nullopt) << "the server's own";
  EXPECT_EQ(allowed_variable(allowed, "acme", ""), std::nullopt);
}

TEST(variables, secrets_leave_the_environment_and_its_memory) {
  ::setenv("PAWL_JWT_KEY", "a secret", 1);
  ::setenv("PAWL_LOG_LEVEL", "info", 1);
  const char* value = std::getenv("PAWL_JWT_KEY");
  forget_secret_variables();
  EXPECT_EQ(std::getenv("PAWL_JWT_KEY"), nullptr);
  EXPECT_EQ(std::string(value, 8), std::string(8, '\0'));
  EXPECT_NE(std::getenv("PAWL_LOG_LEVEL"), nullptr);
  ::unsetenv("PAWL_LOG_LEVEL");
}

}  // namespace
}  // namespace pawl::server
