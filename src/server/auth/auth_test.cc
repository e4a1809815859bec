#include "server/auth/auth.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace pawl::server {
namespace {

const RsaKey& our_key() {
  static const RsaKey key = RsaKey::generate();
  return key;
}
const RsaKey& other_key() {
  static const RsaKey key = RsaKey::generate();
  return key;
}

class AuthTest : public ::testing::Test {
 protected:
  std::unique_ptr<Authenticator> make(std::function<void(AuthOptions&)> change = {}) {
    AuthOptions options;
    options.mode = AuthMode::jwt;
    options.signing_key = our_key().private_pem();
    if (change) change(options);
    auto made = Authenticator::make(std::move(options), [this] { return now_ * kSecond; });
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  json::Value claims() const {
    return json::object({{"iss", "cyoda"},
                         {"sub", "client"},
                         {"caas_org_id", "acme"},
                         {"caas_user_id", "ann"},
                         {"user_roles", json::Array{"ROLE_A", "ROLE_B"}},
                         {"iat", now_},
                         {"exp", now_ + 60}});
  }
  json::Value with(std::string_view name, json::Value value) const {
    json::Value out = claims();
    out.object().set(std::string(name), std::move(value));
    return out;
  }
  json::Value without(std::string_view name) const {
    json::Value out = claims();
    out.object().erase(name);
    return out;
  }
  static std::string bearer(const json::Value& claims) {
    return "Bearer " + sign_token(our_key(), our_key().kid(), claims);
  }
  int64_t now_ = 1'800'000'000;
};

TEST_F(AuthTest, a_good_token_names_tenant_user_and_roles) {
  auto auth = make();
  auto caller = auth->caller(bearer(claims()));
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->tenant, "acme");
  EXPECT_EQ(caller->user, "ann");
  EXPECT_EQ(caller->roles, "ROLE_A,ROLE_B");
  EXPECT_EQ(auth->caller(bearer(without("caas_user_id")))->user, "client");
  json::Value scoped = without("user_roles");
  scoped.object().set("scopes", json::Array{"ROLE_M2M"});
  EXPECT_EQ(auth->caller(bearer(scoped))->roles, "ROLE_M2M");
}

TEST_F(AuthTest, claims_are_checked_within_the_leeway) {
  auto auth = make();
  EXPECT_TRUE(auth->caller(bearer(with("exp", now_ - 29))));
  EXPECT_TRUE(auth->caller(bearer(with("iat", now_ + 29))));
  EXPECT_TRUE(auth->caller(bearer(with("nbf", now_ + 29))));
  const json::Value bad[] = {
      with("exp", now_ - 31), with("iat", now_ + 31),  with("nbf", now_ + 31),
      without("exp"),         without("iat"),          with("exp", "soon"),
      with("exp", 1e300),     with("iss", "other"),    without("iss"),
      without("caas_org_id"), with("caas_org_id", ""), with("caas_org_id", 7)};
  for (const auto& value : bad)
    EXPECT_FALSE(auth->caller(bearer(value))) << json::print(value);
}

TEST_F(AuthTest, the_audience_counts_only_when_configured) {
  EXPECT_TRUE(make()->caller(bearer(with("aud", "else"))));
  auto auth = make([](AuthOptions& options) { options.audience = "pawl"; });
  EXPECT_FALSE(auth->caller(bearer(claims())));
  EXPECT_FALSE(auth->caller(bearer(with("aud", "else"))));
  EXPECT_TRUE(auth->caller(bearer(with("aud", "pawl"))));
  EXPECT_TRUE(auth->caller(bearer(with("aud", json::Array{"else", "pawl"}))));
}

TEST_F(AuthTest, forged_tokens_are_refused_without_a_reason) {
  auto auth = make();
  std::string good = bearer(claims());
  auto handmade = [&](std::string_view head) {
    std::string text = base64url(head) + "." + base64url(json::print(claims()));
    return "Bearer " + text + "." + base64url(our_key().sign(text));
  };
  std::string kid = our_key().kid();
  std::string changed = good;
  changed[good.find('.') + 5] ^= 1;
  const std::string bad[] = {
      "",
      "Bearer",
      "Bearer ",
      "Basic abc",
      "Bearer a.b.c",
      "Bearer a.b",
      "Bearer ....",
      "Bearer " + std::string(100'000, 'a'),
      changed,
      good.substr(0, good.size() - 4),
      good.substr(0, good.rfind('.') + 1),
      "Bearer " + sign_token(other_key(), kid, claims()),
      "Bearer " + sign_token(our_key(), "unknown", claims()),
      handmade(R"({"alg":"none","kid":")" + kid + "\"}"),
      handmade(R"({"alg":"HS256","kid":")" + kid + "\"}"),
      handmade(R"({"alg":"RS512","kid":")" + kid + "\"}"),
      handmade(R"({"alg":"RS256"})"),
      handmade(R"({"alg":"RS256","crit":["x"],"kid":")" + kid + "\"}"),
      handmade("[]"),
  };
  for (const auto& header : bad) {
    auto caller = auth->caller(header);
    ASSERT_FALSE(caller) << header.substr(0, 100);
    EXPECT_EQ(caller.error().code, Code::unauthenticated);
    EXPECT_EQ(caller.error().message, auth->caller("").error().message);
  }
  EXPECT_TRUE(auth->caller(handmade(R"({"alg":"RS256","kid":")" + kid + "\"}")));
}

TEST_F(AuthTest, a_cached_token_still_expires) {
  auto auth = make();
  std::string token = bearer(claims());
  EXPECT_TRUE(auth->caller(token));
  now_ += 89;
  EXPECT_TRUE(auth->caller(token));
  now_ += 2;
  EXPECT_FALSE(auth->caller(token));
}

TEST_F(AuthTest, cached_tokens_are_bounded) {
  auto auth = make([](AuthOptions& options) { options.remembered = 4; });
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(auth->caller(bearer(with("jti", i))));
  EXPECT_FALSE(auth->caller(bearer(without("exp"))));
  EXPECT_EQ(auth->remembered(), 3u);  // refused tokens are not cached
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(auth->caller(bearer(with("jti", 100 + i))));
    EXPECT_LE(auth->remembered(), 4u);
  }
}

TEST_F(AuthTest, tokens_of_trusted_keys_are_accepted_until_the_key_is_removed) {
  auto auth = make();
  std::string token = "Bearer " + sign_token(other_key(), "partner", claims());
  EXPECT_FALSE(auth->caller(token));
  auto key = RsaKey::from_pem(other_key().public_pem());
  ASSERT_TRUE(key);
  EXPECT_FALSE(key->is_private());
  auth->trust("partner", *key);
  EXPECT_TRUE(auth->caller(token));
  EXPECT_TRUE(auth->distrust("partner"));
  EXPECT_FALSE(auth->caller(token));
  EXPECT_FALSE(auth->distrust("partner"));
}

TEST_F(AuthTest, key_pairs_rotate_and_belong_to_their_tenant) {
  auto auth = make();
  auto claims_of = [](std::string_view tenant) {
    return json::object({{"caas_org_id", tenant}, {"sub", "x"}});
  };
  auto token = [&](std::string_view tenant) { return "Bearer " + *auth->issue(claims_of(tenant)); };
  auto row = [&](json::Value made, std::string_view tenant, bool active) {
    made.object().set("tenantId", tenant);
    made.object().set("active", active);
    made.object().set("createdAt", rfc3339(now_ * kSecond));
    return made;
  };
  std::string old = token("acme");
  json::Value made = *auth->make_pair();
  EXPECT_EQ(made.string_or("pem").find("-----BEGIN PRIVATE KEY"), std::string::npos);
  ASSERT_TRUE(auth->use_pair(row(made, "acme", true)));
  EXPECT_EQ(auth->signing_pair("acme")->kid, made.string_or("kid"));
  EXPECT_EQ(auth->signing_pair("other")->kid, our_key().kid());
  std::string fresh = token("acme");
  EXPECT_TRUE(auth->caller(old) && auth->caller(fresh));
  // A pair of one tenant does not verify tokens of another.
  json::Value forged = claims();
  forged.object().set("caas_org_id", "other");
  auto pair = auth->key_pair(made.string_or("kid"));
  EXPECT_FALSE(auth->caller("Bearer " + sign_token(pair->key, pair->kid, forged)));
  ASSERT_TRUE(auth->use_pair(row(made, "acme", false)));
  EXPECT_FALSE(auth->caller(fresh));
  EXPECT_EQ(auth->signing_pair("acme")->kid, our_key().kid());
  EXPECT_EQ(json::parse(auth->jwks())->find("keys")->array().size(), 1u);
  ASSERT_TRUE(auth->use_pair(row(made, "acme", true)));
  EXPECT_TRUE(auth->caller(fresh));
  // The row works after a restart; under another signing key it cannot be decrypted.
  EXPECT_TRUE(make()->use_pair(row(made, "acme", true)));
  auto stranger =
      make([](AuthOptions& options) { options.signing_key = other_key().private_pem(); });
  EXPECT_FALSE(stranger->use_pair(row(made, "acme", true)));
  // The configured key can be switched off, by a row without its private half.
  ASSERT_TRUE(auth->use_pair(row(json::object({{"kid", our_key().kid()}}), "", false)));
  EXPECT_FALSE(auth->caller(old));
  EXPECT_FALSE(auth->issue(claims_of("other")));
}

TEST_F(AuthTest, our_jwks_document_verifies_our_tokens) {
  auto issuer = make();
  std::string token =
      "Bearer " + *issuer->issue(json::object({{"caas_org_id", "acme"}, {"sub", "x"}}));
  auto verifier = make([&](AuthOptions& options) {
    options.signing_key.clear();
    options.jwks = issuer->jwks();
  });
  EXPECT_EQ(verifier->caller(token)->tenant, "acme");
  auto parsed = json::parse(issuer->jwks());
  ASSERT_TRUE(parsed);
  const json::Value& key = parsed->find("keys")->array().at(0);
  EXPECT_EQ(key.string_or("kid"), our_key().kid());
  EXPECT_EQ(key.string_or("kid").size(), 32u);
  EXPECT_EQ(key.string_or("e"), "AQAB");
  EXPECT_FALSE(verifier->issue(json::object({})));
}

TEST_F(AuthTest, keys_are_read_from_pem_or_base64_of_pem) {
  EXPECT_EQ(RsaKey::from_pem(base64(our_key().private_pem()))->kid(), our_key().kid());
  EXPECT_FALSE(RsaKey::from_pem("nonsense!"));
  EXPECT_FALSE(RsaKey::from_pem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
  AuthOptions options;
  options.mode = AuthMode::jwt;
  auto made = Authenticator::make(options, [] { return Time{0}; });
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("--jwt-key"), std::string::npos);
}

TEST(exposure, mode_none_is_refused_on_open_addresses) {
  std::vector<Address> local{*parse_address("127.0.0.1:1"), *parse_address("[::1]:2")};
  std::vector<Address> open{*parse_address("127.0.0.1:1"), *parse_address(":2")};
  EXPECT_TRUE(check_exposure(AuthMode::none, false, local));
  EXPECT_TRUE(check_exposure(AuthMode::jwt, false, open));
  EXPECT_TRUE(check_exposure(AuthMode::none, true, open));
  auto refused = check_exposure(AuthMode::none, false, open);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("0.0.0.0:2"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
