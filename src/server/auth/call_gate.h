#pragma once
// The door of the gRPC calls: the host name that the client addresses, the caller, the permission
// of the operation, and the limits of the caller's tenant. HttpFront does the same for HTTP.

#include <functional>

#include "server/auth/auth.h"
#include "server/auth/operations.h"
#include "server/grpc/connections.h"
#include "server/http/browser_guard.h"
#include "wire/admit.h"

namespace pawl::server {

class CallGate {
 public:
  // `before_poll` is called before a call that leases jobs or waits for them: an error refuses it.
  // It may be empty. Calls claim their connection among `connections`, which may be null. The
  // authenticator and the connections must outlive the gate.
  CallGate(Authenticator& authenticator, BrowserRules rules,
           std::function<Result<void>(const Caller&)> before_poll = {},
           GrpcConnections* connections = nullptr)
      : authenticator_(authenticator),
        guard_(std::move(rules)),
        before_poll_(std::move(before_poll)),
        connections_(connections) {}
  Result<wire::AdmittedCall> admit(const wire::Call& call) const;

 private:
  Result<Admitted> caller_of(const wire::Call& call) const;
  Result<void> check_limits(const wire::Call& call, const Admitted& admitted,
                            Permission needs) const;
  Authenticator& authenticator_;
  const BrowserGuard guard_;
  const CallPermissions permissions_;
  const std::function<Result<void>(const Caller&)> before_poll_;
  GrpcConnections* const connections_;
};

// The address in gRPC's text for a peer, without the port: "ipv4:127.0.0.1:80", "ipv6:[::1]:80"
// with the brackets as %5B and %5D. Any other text is returned as it is.
std::string address_of_peer(std::string_view peer);

}  // namespace pawl::server
