#pragma once
// The public keys of an OpenID provider. They are fetched when the server starts, then at an
// interval, and soon after a token names a key that is not known yet. A provider that does not
// answer changes nothing: the keys that are known stay in use.

#include <atomic>
#include <functional>
#include <string>

#include "server/auth/auth.h"

namespace pawl::server {

struct IssuerOptions {
  // The `iss` of the provider's tokens, and the URL below which its document
  // /.well-known/openid-configuration names the keys.
  std::string issuer{};
  std::string jwks_url{};  // the keys themselves; empty: from the document
  Time refresh = 300 * kSecond;
};

class IssuerKeys {
 public:
  // Fetches are at least this far apart, however many tokens with unknown keys come.
  static constexpr Time kMinInterval = 10 * kSecond;
  // Returns the body of a 200 answer.
  using Get = std::function<Result<std::string>(const std::string& url)>;

  // `now` never goes back. The authenticator must outlive this object.
  IssuerKeys(IssuerOptions options, Authenticator& authenticator, Get get,
             std::function<Time()> now);

  // Fetches the keys if it is time. Returns when to call it again. For a BackgroundLoop.
  Time step();
  // A token names an unknown key: the next step fetches as soon as kMinInterval allows.
  void want() { wanted_ = true; }

 private:
  Result<void> fetch();
  Result<std::string> jwks_url() const;

  const IssuerOptions options_;
  Authenticator& authenticator_;
  const Get get_;
  const std::function<Time()> now_;
  std::atomic<bool> wanted_ = true;
  Time earliest_ = 0;  // of the next fetch
  Time due_ = 0;
};

}  // namespace pawl::server
