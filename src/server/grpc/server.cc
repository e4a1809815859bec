// The only file that configures grpc++.

#include "server/grpc/server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/support/server_interceptor.h>

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/log.h"
#include "runtime/monotonic.h"
#include "server/grpc/acceptor.h"
#include "server/grpc/stream_watch.h"

namespace pawl::server {
namespace {

Result<std::string> read_pem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::invalid, "BAD_CERTIFICATE", "cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<std::shared_ptr<grpc::ServerCredentials>> credentials_of(const net::TlsFiles& tls) {
  if (!tls.on()) return grpc::InsecureServerCredentials();
  TRY(std::string certificate, read_pem(tls.certificate));
  TRY(std::string key, read_pem(tls.key));
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({std::move(key), std::move(certificate)});
  return grpc::SslServerCredentials(options);
}

// The messages of the gRPC library go to our log.
void log_for_grpc(gpr_log_func_args* args) {
  static constexpr Level kLevels[] = {Level::debug, Level::debug,
                                      Level::warn};  // debug, info, error
  log(kLevels[args->severity], "grpc", {{"says", args->message}});
}

void set_arguments(grpc::ServerBuilder& builder) {
  int size = static_cast<int>(limits::kGrpcMessageBytes);
  builder.SetMaxReceiveMessageSize(size);
  builder.SetMaxSendMessageSize(size);
  // Compute members keep idle streams open and send keep-alive pings often.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

// The library answers UNIMPLEMENTED for a request that it cannot parse, as if the call did not
// exist. This says what is wrong instead.
class ParseWatch final : public grpc::experimental::Interceptor {
 public:
  explicit ParseWatch(const char* method) : method_(method) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    using Hook = grpc::experimental::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_MESSAGE))
      unreadable_ = batch->GetRecvMessage() == nullptr;
    if (unreadable_ && batch->QueryInterceptionHookPoint(Hook::PRE_SEND_STATUS))
      batch->ModifySendStatus({grpc::StatusCode::INVALID_ARGUMENT,
                               "the request of " + method_ +
                                   " cannot be parsed: is the client's .proto the server's?"});
    batch->Proceed();
  }

 private:
  const std::string method_;
  bool unreadable_ = false;
};

class ParseWatches final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    if (info->type() != grpc::experimental::ServerRpcInfo::Type::UNARY) return nullptr;
    return new ParseWatch(info->method());
  }
};

}  // namespace

struct GrpcServer::Running {
  Running(Authenticator* authenticator, const GrpcOptions& options)
      : streams(authenticator),
        stalled_ms(options.stalled_ms),
        open(options.open ? *options.open : own_connections) {
    open.set_max(options.connections);
  }
  OpenStreams streams;
  const int64_t stalled_ms;
  GrpcConnections own_connections;
  GrpcConnections& open;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<GrpcAcceptor> acceptor;  // last: it gives connections to the server
};

GrpcServer::GrpcServer(std::unique_ptr<Running> running, Address address)
    : running_(std::move(running)), address_(std::move(address)) {}

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const GrpcOptions& options) {
  TRY(std::shared_ptr<grpc::ServerCredentials> credentials, credentials_of(options.tls));
  // These are process-wide switches of the library. Setting them twice is harmless.
  gpr_set_log_function(log_for_grpc);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_arguments(builder);
  if (options.memory_bytes)
    builder.SetResourceQuota(grpc::ResourceQuota("pawl").Resize(options.memory_bytes));
  using Kind = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  bool tokens = options.authenticator && options.authenticator->mode() == AuthMode::jwt;
  auto running = std::make_unique<Running>(tokens ? options.authenticator : nullptr, options);
  running->connections =
      builder.experimental().AddExternalConnectionAcceptor(Kind::FROM_FD, credentials);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> watches;
  watches.push_back(std::make_unique<ParseWatches>());
  watches.push_back(watch_streams(running->streams));
  builder.experimental().SetInterceptorCreators(std::move(watches));
  for (grpc::Service* service : options.services)
    builder.RegisterService(service);
  TRY(Listener listener, listen_on(options.address));
  running->server = builder.BuildAndStart();
  if (!running->server) {
    close(listener.fd);
    return fail(
        Code::unavailable, "CANNOT_LISTEN",
        "cannot serve gRPC on " + options.address.text() + "; check the certificate and key");
  }
  Address address = listener.address;
  auto take = [&connections = *running->connections](int listening, int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters made;
    made.listener_fd = listening;
    made.fd = fd;
    connections.HandleNewConnection(&made);
  };
  running->acceptor =
      std::make_unique<GrpcAcceptor>(std::move(listener), running->open, std::move(take));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(running), std::move(address)));
}

void GrpcServer::set_healthy(bool healthy) {
  if (auto* health = running_->server->GetHealthCheckService()) health->SetServingStatus(healthy);
}

void GrpcServer::tend() {
  running_->streams.end_stalled(running_->stalled_ms);
  running_->open.sweep(monotonic_ms());
}

void GrpcServer::stop(int64_t deadline_ms) {
  set_healthy(false);
  running_->acceptor.reset();
  running_->server->Shutdown(std::chrono::system_clock::now() +
                             std::chrono::milliseconds(deadline_ms));
  running_->server->Wait();
}

GrpcServer::~GrpcServer() { stop(0); }

std::optional<std::string> grpc_metadata(const grpc::ServerContextBase& context,
                                         std::string_view key) {
  const auto& metadata = context.client_metadata();
  auto found = metadata.find(grpc::string_ref(key.data(), key.size()));
  if (found == metadata.end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

Result<Caller> grpc_caller(const grpc::ServerContextBase& context, Authenticator& authenticator) {
  return authenticator.caller(grpc_metadata(context, "authorization").value_or(""));
}

}  // namespace pawl::server
