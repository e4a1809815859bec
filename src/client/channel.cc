#include "client/channel.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace pawl::client {

namespace {

constexpr int kMaxBytes = 64 << 20;
constexpr int kHandshakeMs = 5'000;
constexpr int kFirstPauseMs = 100, kMaxPauseMs = 1'000;
// Finds a peer that vanished. More often than every five minutes is rude to a gRPC server.
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
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   kHandshakeMs);  // in truth the limit of one attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxPauseMs);
  auto credentials = secure ? grpc::SslCredentials({}) : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

bool connected(const std::shared_ptr<grpc::Channel>& channel, int ms) {
  return channel->WaitForConnected(std::chrono::system_clock::now() +
                                   std::chrono::milliseconds(ms));
}

Reply<void> identify(grpc::ClientContext& context, const Token& token, bool fresh) {
  auto text = token.get(fresh);
  if (!text) return std::unexpected(text.error());
  if (!text->empty()) context.AddMetadata("authorization", "Bearer " + *text);
  return {};
}

}  // namespace pawl::client
