#pragma once
// The gRPC listener serves the faces' services, health and reflection on one address. Only
// server.cc includes the headers of grpc++.

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

class GrpcConnections;

struct GrpcOptions {
  Address address;
  net::TlsFiles tls{};
  std::vector<grpc::Service*> services{};  // must outlive the server
  // Ends streams when their tokens end. Must outlive the server; may be null.
  Authenticator* authenticator = nullptr;
  // A stream whose reader has let a message wait for so long is ended.
  int64_t stalled_ms = limits::kStalledSeconds * 1000;
  // Memory that the library may use for messages that arrive; it refuses calls beyond. 0: no limit.
  size_t memory_bytes = 0;
  size_t connections = limits::kConnections;  // further ones are closed
  // The open connections, which a CallGate may know too. Must outlive the server; null: its own.
  GrpcConnections* open = nullptr;
};

class GrpcServer {
 public:
  static Result<std::unique_ptr<GrpcServer>> start(const GrpcOptions& options);
  ~GrpcServer();

  const Address& address() const { return address_; }  // with the real port
  // The health service answers SERVING from the start, and NOT_SERVING after set_healthy(false).
  void set_healthy(bool healthy);
  // Ends the streams whose readers do not read, and counts the open connections. Call it about once
  // a second.
  void tend();
  // Refuses new calls. Running calls may finish until the deadline; then they are cancelled.
  void stop(int64_t deadline_ms = limits::kStopSeconds * 1000);

 private:
  struct Running;
  GrpcServer(std::unique_ptr<Running> running, Address address);
  std::unique_ptr<Running> running_;
  const Address address_;
};

// The caller named by the metadata `authorization`.
Result<Caller> grpc_caller(const grpc::ServerContextBase& context, Authenticator& authenticator);
// The first value of a metadata key, or nothing when the key is absent.
std::optional<std::string> grpc_metadata(const grpc::ServerContextBase& context,
                                         std::string_view key);

}  // namespace pawl::server
