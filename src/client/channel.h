#pragma once
// A gRPC channel to the server, and what a call on it carries.

#include <memory>
#include <string>

#include "pawl/client.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace pawl::client {

// "127.0.0.1:9090", or "https://pawl.example:9443" for TLS. Shared as grpc wants it.
std::shared_ptr<grpc::Channel> open_channel(std::string address);
// True once there is a connection; waits at most `ms` for one.
bool connected(const std::shared_ptr<grpc::Channel>& channel, int ms);
// Names the caller; fails when there is no token to be had.
Reply<void> identify(grpc::ClientContext& context, const Token& token, bool fresh = false);

}  // namespace pawl::client
