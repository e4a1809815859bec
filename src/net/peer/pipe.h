#pragma once
// The connection under a link: a socket, with TLS when the cluster has certificates. It is made by
// connect_to() or accept_from(), which have checked who the other side is.

#include <memory>
#include <mutex>
#include <string>

#include "base/bytes.h"
#include "net/tls.h"

namespace pawl::net {

// How the nodes of a cluster know each other: they share a secret. With a certificate they also
// speak TLS, and each side must show a certificate of the authority.
struct PeerIdentity {
  std::string node;
  Bytes secret;
  TlsFiles tls{};
  std::string ca_file{};  // PEM; needed with tls
};

class PeerTls;

class Pipe {
 public:
  // Takes the socket.
  Pipe(int socket, std::unique_ptr<TlsSession> tls) : socket_(socket), tls_(std::move(tls)) {}
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // Does the handshake of TLS, if there is TLS. Call it once, before everything else.
  bool begin_tls(int milliseconds);
  // Appends what has arrived. Waits for it up to `milliseconds`. False: the connection is over.
  bool read(Bytes& into, int milliseconds);
  // Writes everything; waits while the socket is full. Only one thread at a time may write.
  bool write(BytesView bytes);
  // Writes what the socket takes at once and returns how much that was: nothing with TLS, and
  // nothing when the connection is over, which the next write() tells.
  size_t write_now(BytesView bytes);
  // Wakes a thread that waits in read() or write(): both return false from now on.
  void close();
  // Bytes that TLS wants to send wait for the next write().
  bool wants_to_write();
  const std::string& peer() const { return peer_; }  // the other node's name
  void set_peer(std::string name) { peer_ = std::move(name); }

 private:
  bool write_raw(BytesView bytes);
  bool encrypt(BytesView plain, Bytes& out);
  const int socket_;
  std::mutex tls_mutex_;  // guards tls_ and cipher_
  std::unique_ptr<TlsSession> tls_;
  Bytes cipher_;  // in the order in which it must be sent; only write() sends
  Bytes early_;   // plaintext that came with the handshake
  std::string peer_;
};

// Certificates, loaded once; null without TLS.
Result<std::shared_ptr<const PeerTls>> load_peer_tls(const PeerIdentity& identity);

// "host:port". Both do the handshake within a few seconds: TLS, then each side proves that it knows
// the secret by a MAC over fresh nonces and both names. An error has the reason PEER_UNREACHABLE or
// PEER_REFUSED.
Result<std::unique_ptr<Pipe>> connect_to(const std::string& address, const PeerIdentity& identity,
                                         const PeerTls* tls);
Result<std::unique_ptr<Pipe>> accept_from(int socket, const PeerIdentity& identity,
                                          const PeerTls* tls);

}  // namespace pawl::net
