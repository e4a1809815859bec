#pragma once
// An engine is Pawl in your own process: it opens a data directory, replays what it must and keeps
// what it has acknowledged. No sockets. One process at a time may have a directory open.

#include <memory>
#include <string>

#include "pawl/lifecycle/error.h"

namespace pawl {

struct EngineOptions {
  // The data directory; empty keeps everything in memory and forgets it at the end.
  std::string data{};
  // Whose instances: the default is the tenant of a server that runs without authentication, so
  // that a directory may be served and embedded in turn.
  std::string tenant = "mock-tenant";
  std::string user = "embedded";
  std::size_t cache_bytes = 64u << 20;
  bool unflushed = false;  // throw-away data only: nothing survives a power cut
};

class Engine {
 public:
  static lifecycle::result<std::unique_ptr<Engine>> open(EngineOptions options = {});
  // Finishes what was accepted, then closes. Managers on it, and their watches, must be gone
  // before.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineOptions& options() const;
  std::uint64_t last() const;  // the number of the newest durable write
  // Runs every recorded turn again and compares the bytes: the count, or what differs. A directory
  // that a server has put other things into is `unsupported`: `pawl verify` knows them all.
  lifecycle::result<std::size_t> verify() const;

  struct Parts;  // for the library itself
  Parts& parts() { return *parts_; }

 private:
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl
