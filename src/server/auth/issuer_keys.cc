#include "server/auth/issuer_keys.h"

#include "base/log.h"
#include "json/text.h"

namespace pawl::server {

IssuerKeys::IssuerKeys(IssuerOptions options, Authenticator& authenticator, Get get,
                       std::function<Time()> now)
    : options_(std::move(options)),
      authenticator_(authenticator),
      get_(std::move(get)),
      now_(std::move(now)) {}

Time IssuerKeys::step() {
  Time now = now_();
  if (now < due_ && !wanted_) return due_;
  if (now < earliest_) return earliest_;
  wanted_ = false;
  Result<void> fetched = fetch();
  if (!fetched)
    log(Level::warn, "the keys of the token issuer were not fetched; known keys stay in use",
        {{"issuer", options_.issuer}, {"why", fetched.error().message}});
  now = now_();
  earliest_ = now + kMinInterval;
  due_ = now + (fetched ? std::max(options_.refresh, kMinInterval) : kMinInterval);
  return wanted_ ? earliest_ : due_;
}

Result<std::string> IssuerKeys::jwks_url() const {
  if (!options_.jwks_url.empty()) return options_.jwks_url;
  std::string base = options_.issuer;
  if (base.ends_with('/')) base.pop_back();
  TRY(std::string text, get_(base + "/.well-known/openid-configuration"));
  TRY(json::Value document, json::parse(text));
  // A document that speaks for another issuer must not decide about this one.
  if (document.string_or("issuer") != options_.issuer)
    return fail(Code::invalid, "BAD_ISSUER",
                "the provider calls itself '" + std::string(document.string_or("issuer")) +
                    "'; --auth-issuer must be the same text");
  std::string url(document.string_or("jwks_uri"));
  if (url.empty())
    return fail(Code::invalid, "BAD_ISSUER", "the provider's document names no jwks_uri");
  if (options_.issuer.starts_with("https://") && !url.starts_with("https://"))
    return fail(Code::invalid, "BAD_ISSUER", "the provider's jwks_uri is not https: " + url);
  return url;
}

Result<void> IssuerKeys::fetch() {
  TRY(std::string url, jwks_url());
  TRY(std::string document, get_(url));
  TRY(auto keys, read_jwks(document, JwksReading::skip_bad_keys));
  if (keys.empty()) return fail(Code::invalid, "BAD_JWKS", url + " has no RSA key for signatures");
  authenticator_.set_issuer_keys(std::move(keys));
  return {};
}

}  // namespace pawl::server
