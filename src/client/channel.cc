#include "client/channel.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace pawl::client {

namespace {

// The server's own limit on a message (limits::kGrpcMessageBytes).
constexpr int kMaxBytes = 64 << 20;
constexpr int kHandshakeMs = 5'000;
// Pauses between attempts to connect, which gRPC doubles up to the second one.
constexpr int kFirstPauseMs = 100, kMaxPauseMs = 1'000;
// Pings find a peer that vanished. gRPC servers refuse more than one in five minutes.
constexpr int kPingMs = 330'000;
constexpr std::string_view kTls = "https://";

}  // namespace

std::shared_ptr<grpc::Channel> open_channel(std::string address) {
  bool secure = address.starts_with(kTls);
  if (secure) address.erase(0, kTls.size());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxBytes);
  arguments.SetMaxSendMessageSize(kMaxBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstPauseMs);
  // Despite its name, this is the time limit of one attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kHandshakeMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxPauseMs);
  auto credentials = secure ? grpc::SslCredentials({}) : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

bool connected(const std::shared_ptr<grpc::Channel>& channel, int ms) {
  return channel->WaitForConnected(std::chrono::system_clock::now() +
                                   std::chrono::milliseconds(ms));
}

Result<void> identify(grpc::ClientContext& context, const Token& token, bool fresh) {
  // A caller without a token sends no header: a server without authentication accepts it.
  auto text = token.get(fresh);
  if (!text) return std::unexpected(text.error());
  if (!text->empty()) context.AddMetadata("authorization", "Bearer " + *text);
  return {};
}

// Statuses outside the table, such as UNAVAILABLE and the OK of a stream that the server has ended,
// are `unavailable` and retryable.
Error error_of(const grpc::Status& status) {
  struct Row {
    grpc::StatusCode grpc;
    Code code;
  };
  static constexpr Row kFinal[] = {{grpc::StatusCode::INVALID_ARGUMENT, Code::invalid},
                                   {grpc::StatusCode::UNAUTHENTICATED, Code::unauthenticated},
                                   {grpc::StatusCode::PERMISSION_DENIED, Code::denied},
                                   {grpc::StatusCode::UNIMPLEMENTED, Code::unsupported}};
  Error out{Code::unavailable,
            "GRPC_" + std::to_string(status.error_code()),
            status.error_message(),
            {},
            true};
  for (const Row& row : kFinal) {
    if (row.grpc != status.error_code()) continue;
    out.code = row.code;
    out.retryable = false;
  }
  return out;
}

}  // namespace pawl::client
