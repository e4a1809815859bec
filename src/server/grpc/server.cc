// The only file that configures grpc++.

#include "server/grpc/server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/support/server_interceptor.h>

#include <fstream>
#include <sstream>

#include "base/log.h"

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
  // gRPC shares ports by default: a second server on the same port would take half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Compute members keep idle streams open and send keep-alive pings often.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

// Knows the machine client of one bidirectional stream, and cancels the stream when the tokens of
// the client end. It lives as long as the call.
class StreamWatch final : public grpc::experimental::Interceptor {
 public:
  StreamWatch(Authenticator& authenticator, grpc::ServerContextBase& context)
      : authenticator_(authenticator), context_(context) {}
  ~StreamWatch() override {
    if (id_) authenticator_.streams().remove(id_);
  }
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    using Hook = grpc::experimental::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_INITIAL_METADATA) && !id_) watch(*batch);
    batch->Proceed();
  }

 private:
  // A token that is refused is left to the service, which words the refusal.
  void watch(grpc::experimental::InterceptorBatchMethods& batch) {
    auto* metadata = batch.GetRecvInitialMetadata();
    if (!metadata) return;
    auto found = metadata->find("authorization");
    if (found == metadata->end()) return;
    auto admitted = authenticator_.admit({found->second.data(), found->second.size()});
    if (!admitted || admitted->client.empty()) return;
    id_ = authenticator_.streams().add(admitted->client,
                                       [&context = context_] { context.TryCancel(); });
  }

  Authenticator& authenticator_;
  grpc::ServerContextBase& context_;
  uint64_t id_ = 0;
};

class StreamWatches final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit StreamWatches(Authenticator& authenticator) : authenticator_(authenticator) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    if (info->type() != grpc::experimental::ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    return new StreamWatch(authenticator_, *info->server_context());
  }

 private:
  Authenticator& authenticator_;
};

void watch_streams(grpc::ServerBuilder& builder, Authenticator& authenticator) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<StreamWatches>(authenticator));
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace

struct GrpcServer::Running {
  std::unique_ptr<grpc::Server> server;
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
  int port = 0;
  builder.AddListeningPort(options.address.text(), credentials, &port);
  bool tokens = options.authenticator && options.authenticator->mode() == AuthMode::jwt;
  if (tokens) watch_streams(builder, *options.authenticator);
  for (grpc::Service* service : options.services)
    builder.RegisterService(service);
  auto running = std::make_unique<Running>();
  running->server = builder.BuildAndStart();
  if (!running->server || port == 0) {
    return fail(Code::unavailable, "CANNOT_LISTEN",
                "cannot serve gRPC on " + options.address.text() +
                    "; choose a free port, or check the certificate and key");
  }
  Address address = options.address;
  address.port = static_cast<uint16_t>(port);
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(running), std::move(address)));
}

void GrpcServer::set_healthy(bool healthy) {
  if (auto* health = running_->server->GetHealthCheckService()) health->SetServingStatus(healthy);
}

void GrpcServer::stop(int64_t deadline_ms) {
  set_healthy(false);
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
