#include "server/auth/call_gate.h"

namespace pawl::server {

std::string address_of_peer(std::string_view peer) {
  for (std::string_view scheme : {"ipv4:", "ipv6:"})
    if (peer.starts_with(scheme))
      return wire::host_and_port(wire::percent_decode(peer.substr(scheme.size()), false), "").host;
  return std::string(peer);
}

Result<Admitted> CallGate::caller_of(const wire::Call& call) const {
  Result<Admitted> admitted = authenticator_.admit(call.authorization);
  if (admitted || !call.peer) return admitted;
  TRY_OK(authenticator_.tenants().count_stranger(network_of(address_of_peer(call.peer()))));
  return admitted;
}

// A tenant that stores too much may still delete.
static bool deletes(std::string_view operation) {
  return operation.find("Delete") != std::string_view::npos;
}

Result<void> CallGate::check_limits(const wire::Call& call, const Admitted& admitted,
                                    Permission needs) const {
  Tenants& tenants = authenticator_.tenants();
  TRY_OK(tenants.count_request(admitted.tenant));
  if (connections_ && call.peer && (call.stream || connections_->crowded()) &&
      !connections_->claim(peer_of(call.peer()), admitted.tenant))
    return fail(tenants.refuse(Limit::connections));
  if (admitted.tenant->stores_too_much() && adds_data(needs) && !deletes(call.operation))
    return fail(tenants.refuse(Limit::bytes));
  if (!before_poll_ || !leases_jobs(call.operation)) return {};
  auto good = before_poll_(admitted.caller);
  if (!good) tenants.count_refusal(good.error());
  return good;
}

Result<wire::AdmittedCall> CallGate::admit(const wire::Call& call) const {
  if (auto fault = guard_.check_host(call.authority)) return fail(std::move(fault->error));
  TRY(Admitted admitted, caller_of(call));
  TRY(Permission needs, permissions_.check(call.operation, admitted.granted));
  TRY_OK(check_limits(call, admitted, needs));
  wire::AdmittedCall out;
  if (call.stream) {
    TRY(out.seat, authenticator_.tenants().open_stream(admitted.tenant));
  }
  out.caller = std::move(admitted.caller);
  return out;
}

}  // namespace pawl::server
