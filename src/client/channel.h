#pragma once
// The gRPC channel to the server, and what calls on it have in common.

#include <memory>
#include <string>

#include "pawl/client.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace pawl::client {

// `address` is "127.0.0.1:9090", or "https://pawl.example:9443" for TLS. gRPC wants channels
// shared.
std::shared_ptr<grpc::Channel> open_channel(std::string address);
// Waits at most `ms` for a connection and returns whether there is one.
bool connected(const std::shared_ptr<grpc::Channel>& channel, int ms);
// Adds the caller's token to a call. Fails when no token can be had. `fresh` asks for a new token,
// after the server did not accept the last one.
Result<void> identify(grpc::ClientContext& context, const Token& token, bool fresh = false);
// The error for a status other than OK. Statuses that may pass by themselves are retryable.
Error error_of(const grpc::Status& status);

}  // namespace pawl::client
