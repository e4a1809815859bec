#pragma once
// The links of one node: a listener for the others, and one kept connection to each of them.

#include <functional>
#include <list>
#include <map>

#include "net/peer/link.h"

namespace pawl::net {

// Called on a link's reading thread for each call of another node. It must not wait.
using OnPeerCall =
    std::function<PeerReceiver(const std::string& node, std::string_view method, BytesView first,
                               const std::shared_ptr<PeerCall>& call)>;

class PeerListener {
 public:
  // `socket` listens; the listener takes it.
  PeerListener(int socket, PeerIdentity identity, std::shared_ptr<const PeerTls> tls,
               OnPeerCall on_call);
  ~PeerListener();  // breaks all links that others made

 private:
  struct Guest;
  void accept_loop();
  void serve(Guest& guest, int socket);
  void sweep();  // joins guests that have left; needs mutex_

  const int socket_;
  const PeerIdentity identity_;
  const std::shared_ptr<const PeerTls> tls_;
  const OnPeerCall on_call_;
  std::mutex mutex_;
  std::list<Guest> guests_;
  std::atomic<bool> ending_{false};
  std::thread accepter_;  // last
};

// Thread-safe.
class Peers {
 public:
  Peers(PeerIdentity identity, std::shared_ptr<const PeerTls> tls);
  ~Peers();  // every open call fails

  // The nodes that this node should be connected to, with their addresses. Connections to others
  // are closed.
  void set(const std::map<std::string, std::string>& addresses);
  // Opens a call. When there is no connection yet, the call waits for the attempt to make one. A
  // call that cannot be sent fails with PEER_UNREACHABLE, perhaps before this function returns.
  std::shared_ptr<PeerCall> open(const std::string& node, std::string_view method, Bytes first,
                                 PeerReceiver receiver);
  // One answer to one message: the pieces of the answer together.
  using Done = std::function<void(Result<Bytes>)>;
  void ask(const std::string& node, std::string_view method, Bytes message, Done done);
  bool is_connected(const std::string& node) const;

 private:
  class LateCall;
  struct Peer;
  using PeerPtr = std::shared_ptr<Peer>;
  void keep(const PeerPtr& peer);
  static void attach(Peer& peer);
  static void refuse_waiting(Peer& peer, const Error& why);
  static void end(const PeerPtr& peer);

  const PeerIdentity identity_;
  const std::shared_ptr<const PeerTls> tls_;
  mutable std::mutex mutex_;
  std::map<std::string, PeerPtr> peers_;
};

}  // namespace pawl::net
