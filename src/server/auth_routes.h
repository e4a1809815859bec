#pragma once
// The token endpoint: machine clients exchange id and secret for a token of ours, and everyone may
// read the public keys.

#include <functional>
#include <optional>

#include "server/auth.h"
#include "wire/route.h"

namespace pawl::server {

struct MachineClient {
  std::string id;
  std::string secret;
  Caller caller;
};

// Finds a client by its id; safe from any thread.
using FindClient = std::function<std::optional<MachineClient>(std::string_view id)>;

// `prefix` is the context path ("/api"): PREFIX/oauth/token and PREFIX/.well-known/jwks.json. The
// authenticator must outlive the routes.
std::vector<wire::Route> auth_routes(Authenticator& authenticator, FindClient find, const std::string& prefix);

}  // namespace pawl::server
