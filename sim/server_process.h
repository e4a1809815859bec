#pragma once
// The parts of a simulated world that only its own files see: the process of the server, and a
// request that is under way.

#include "assembly/faces.h"
#include "faces/worlds/executors.h"
#include "runtime/clock.h"
#include "server/http/front.h"
#include "sim/false_stream.h"
#include "sim/world.h"

namespace pawl::sim {

// No world of the simulator has leave to send requests, so a call here is a bug.
class NoInternet final : public worlds::HttpClient {
 public:
  void send(worlds::HttpCall,
            std::move_only_function<void(Result<worlds::HttpReply>)> done) override {
    done(fail(Code::unavailable, "NO_INTERNET", "the simulated world has no internet"));
  }
};

// The client's end of a connection.
class FalsePeer final : public wire::Peer {
 public:
  void on_leave(std::function<void()> left) override { left_ = std::move(left); }
  std::string address() const override { return "10.0.0.1"; }
  void leave() {
    if (auto left = std::exchange(left_, nullptr)) left();
  }

 private:
  std::function<void()> left_;
};

// Limits of the simulated server.
inline constexpr size_t kServerMemory = 8 << 20;
inline constexpr size_t kTenantQueuedInputs = 60;
inline constexpr size_t kTenantOpenTurns = 8;
inline constexpr size_t kTenants = 2;  // of a server that asks for tokens

// One process, put together as in cli/host.cc. The members are destroyed in the reverse order.
struct World::Server {
  explicit Server(MemoryBudget& budget) : memory(budget) {}
  MemoryBudget& memory;
  NoInternet internet;
  server::Metrics metrics;
  std::unique_ptr<server::Authenticator> authenticator;
  // They outlive the shard: requests of a dead process that were never answered end with it.
  wire::Router router;
  std::unique_ptr<server::HttpFront> front;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<Workers> workers;
  std::unique_ptr<MutantOutbox> to_clock, to_workers;
  std::unique_ptr<assembly::Faces> faces;
  wire::Handler handle;
  std::unique_ptr<BackgroundLoop> housekeeping, streams;
  bool stopped = false;
  bool closed = false;  // no answer reaches a client any more

  void stop() {
    if (std::exchange(stopped, true)) return;
    housekeeping.reset();
    streams.reset();
    if (workers) workers->stop();
    if (faces) faces->stop();
    closed = true;  // the listeners close here
    if (faces) faces->end_reads();
    if (clock) clock->stop();
    if (shard) shard->stop();
  }
  ~Server() { stop(); }
};

struct World::Call {
  uint64_t id = 0;
  uint64_t life = 0;  // of the server that has the request
  Sent sent;
  Answered answered;
  std::vector<std::unique_ptr<FalsePeer>> peers;  // one for each copy of the request
  std::shared_ptr<FalseStream> stream;            // of an answer that is read piece by piece
};

}  // namespace pawl::sim
