#pragma once
// A request that this node cannot answer goes to the node that owns its shard, over the link
// between the two, and the answer comes back the same way: whole, as a stream, or as a WebSocket.
// The node at the door has authenticated the caller and checked its permission; the link says which
// node sends, so the owner asks neither again.

#include <map>

#include "net/peer/peers.h"
#include "wire/message.h"

namespace pawl::server {

// The method of the calls on a link.
inline constexpr std::string_view kForwardedHttp = "http";

// A request on its way, with the shard that it is for and the address of its sender.
struct Forwarded {
  uint32_t shard = 0;
  wire::Request request;
  std::string address{};
};
Bytes encode(const Forwarded& forwarded);
Result<Forwarded> decode_forwarded(BytesView bytes);

// Sends the request to the node. `respond` gets its answer. When none came, `refuse` words the
// answer; an error with the reason PEER_UNREACHABLE means that the node has not seen the request.
// A client that leaves ends the call. `request.peer` is used before this function returns only.
using Refuse = std::function<wire::Response(const Error& why)>;
void forward(net::Peers& peers, const std::string& node, uint32_t shard, wire::Request request,
             wire::Respond respond, Refuse refuse);

// The owner's side: runs a forwarded request on the calling thread and sends its answer back.
// Returns what the call's receiver does.
using RunForwarded =
    std::function<void(uint32_t shard, wire::Request request, wire::Respond respond)>;
net::PeerReceiver answer_forwarded(BytesView first, const std::shared_ptr<net::PeerCall>& call,
                                   const RunForwarded& run);

}  // namespace pawl::server
