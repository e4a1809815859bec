#pragma once
// The gRPC listener: services of the faces, health and reflection on one address. The heavy headers
// stay in grpc.cc.

#include <memory>
#include <vector>

#include "base/limits.h"
#include "net/tls.h"
#include "server/auth/auth.h"

namespace grpc {
class Service;
class ServerContextBase;
}  // namespace grpc

namespace pawl::server {

struct GrpcOptions {
  Address address;
  TlsFiles tls{};
  std::vector<grpc::Service*> services{};  // must outlive the server
};

class GrpcServer {
 public:
  static Result<std::unique_ptr<GrpcServer>> start(const GrpcOptions& options);
  ~GrpcServer();

  const Address& address() const { return address_; }  // with the real port
  // Health answers SERVING from the start; false makes it NOT_SERVING.
  void set_healthy(bool healthy);
  // No new calls; calls under way may end until the deadline, then they are cancelled.
  void stop(int64_t deadline_ms = limits::kStopSeconds * 1000);

 private:
  struct Running;
  GrpcServer(std::unique_ptr<Running> running, Address address);
  std::unique_ptr<Running> running_;
  const Address address_;
};

// Who calls, from the metadata `authorization`.
Result<Caller> grpc_caller(const grpc::ServerContextBase& context, Authenticator& authenticator);
// The first value of a metadata key; nothing when absent.
std::optional<std::string> grpc_metadata(const grpc::ServerContextBase& context,
                                         std::string_view key);

}  // namespace pawl::server
