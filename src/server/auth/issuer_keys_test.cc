#include "server/auth/issuer_keys.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "json/text.h"

namespace pawl::server {
namespace {

const RsaKey& key_of(int i) {
  static const RsaKey keys[] = {RsaKey::generate(), RsaKey::generate(), RsaKey::generate()};
  return keys[i];
}

struct issuer_keys : testing::Test {
  std::map<std::string, std::string> pages;
  std::vector<std::string> asked;
  Time now = 0;
  int64_t wall_seconds = 1'800'000'000;
  std::unique_ptr<Authenticator> auth;
  std::optional<IssuerKeys> keys;

  void SetUp() override { log_level(Level::off); }
  void TearDown() override { log_level(Level::info); }

  void start(IssuerOptions options = {.issuer = "https://id.example"}) {
    AuthOptions given;
    given.mode = AuthMode::jwt;
    given.signing_key = key_of(0).private_pem();
    given.remote_issuer = options.issuer;
    auth = *Authenticator::make(given, [this] { return wall_seconds * kSecond; });
    keys.emplace(
        std::move(options), *auth,
        [this](const std::string& url) -> Result<std::string> {
          asked.push_back(url);
          if (auto found = pages.find(url); found != pages.end()) return found->second;
          return fail(Code::unavailable, "UNREACHABLE", "nobody answers");
        },
        [this] { return now; });
    auth->on_unknown_key([this] { keys->want(); });
  }
  void publish(std::vector<int> which) {
    pages["https://id.example/.well-known/openid-configuration"] =
        R"({"issuer":"https://id.example","jwks_uri":"https://id.example/keys"})";
    json::Array list;
    for (int i : which)
      list.push_back(key_of(i).jwk("k" + std::to_string(i)));
    list.push_back(json::object({{"kty", "EC"}, {"kid", "e"}}));
    list.push_back(json::object({{"kty", "RSA"}, {"kid", "short"}, {"n", "AQAB"}, {"e", "AQAB"}}));
    pages["https://id.example/keys"] = json::print(json::object({{"keys", std::move(list)}}));
  }
  bool opens(int i, std::string_view issuer = "https://id.example") {
    return auth
        ->admit("Bearer " + sign_token(key_of(i), "k" + std::to_string(i),
                                       json::object({{"iss", issuer},
                                                     {"sub", "ann"},
                                                     {"caas_org_id", "acme"},
                                                     {"iat", wall_seconds},
                                                     {"exp", wall_seconds + 60}})))
        .has_value();
  }
};

TEST_F(issuer_keys, are_found_by_discovery) {
  start();
  EXPECT_FALSE(opens(1));
  publish({1});
  Time next = keys->step();
  EXPECT_TRUE(opens(1));
  EXPECT_FALSE(opens(2));
  EXPECT_FALSE(opens(1, "cyoda"));  // the provider's key signs only the provider's tokens
  EXPECT_EQ(next, 300 * kSecond);
}

TEST_F(issuer_keys, the_own_key_does_not_sign_for_the_provider) {
  start();
  publish({1});
  keys->step();
  auto as = [&](std::string_view issuer) {
    json::Value claims = json::object({{"iss", issuer},
                                       {"sub", "ann"},
                                       {"caas_org_id", "acme"},
                                       {"iat", wall_seconds},
                                       {"exp", wall_seconds + 60}});
    return auth->admit("Bearer " + sign_token(key_of(0), key_of(0).kid(), claims)).has_value();
  };
  EXPECT_TRUE(as("cyoda"));
  EXPECT_FALSE(as("https://id.example"));
}

TEST_F(issuer_keys, an_unknown_key_is_fetched_soon_but_not_often) {
  start();
  publish({1});
  keys->step();
  publish({1, 2});
  size_t before = asked.size();
  EXPECT_FALSE(opens(2));
  EXPECT_EQ(keys->step(), IssuerKeys::kMinInterval);
  EXPECT_EQ(asked.size(), before);
  now = IssuerKeys::kMinInterval;
  keys->step();
  EXPECT_TRUE(opens(2));
  EXPECT_EQ(asked.size(), before + 2);
}

TEST_F(issuer_keys, a_withdrawn_key_ends_with_the_next_refresh) {
  start();
  publish({1, 2});
  keys->step();
  EXPECT_TRUE(opens(1));
  publish({2});
  now = 300 * kSecond;
  keys->step();
  EXPECT_FALSE(opens(1));
  EXPECT_TRUE(opens(2));
}

TEST_F(issuer_keys, a_provider_that_fails_changes_nothing) {
  start();
  publish({1});
  keys->step();
  for (std::string page : {"", "nonsense", R"({"keys":[]})", R"({"keys":7})"}) {
    pages["https://id.example/keys"] = page;
    now += 300 * kSecond;
    EXPECT_EQ(keys->step(), now + IssuerKeys::kMinInterval);
    EXPECT_TRUE(opens(1)) << page;
  }
  pages.clear();
  now += 300 * kSecond;
  keys->step();
  EXPECT_TRUE(opens(1));
}

TEST_F(issuer_keys, a_document_of_another_issuer_is_refused) {
  start();
  for (std::string document :
       {R"({"issuer":"https://evil.example","jwks_uri":"https://id.example/keys"})",
        R"({"issuer":"https://id.example","jwks_uri":"http://id.example/keys"})",
        R"({"issuer":"https://id.example"})", "[]"}) {
    publish({1});
    pages["https://id.example/.well-known/openid-configuration"] = document;
    pages["http://id.example/keys"] = pages["https://id.example/keys"];
    now += 300 * kSecond;
    keys->step();
    EXPECT_FALSE(opens(1)) << document;
  }
}

TEST_F(issuer_keys, a_url_of_the_keys_needs_no_document) {
  start({.issuer = "https://id.example", .jwks_url = "https://id.example/keys"});
  publish({1});
  keys->step();
  EXPECT_TRUE(opens(1));
  EXPECT_EQ(asked, std::vector<std::string>{"https://id.example/keys"});
}

}  // namespace
}  // namespace pawl::server
