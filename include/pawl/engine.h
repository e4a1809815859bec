#pragma once
// An engine is Pawl in your own process. It opens a data directory, replays the journal and keeps
// every write that it has acknowledged. It opens no sockets. One process at a time may have a
// directory open.

#include <memory>
#include <string>

#include "pawl/lifecycle/error.h"

namespace pawl {

namespace worlds {
struct WorldsOptions;
}

struct EngineOptions {
  // The data directory; empty keeps everything in memory and forgets it at the end.
  std::string data{};
  // Owner of the instances. When empty, the tenant of a server without authentication, so that such
  // a server and this program may use the directory in turn.
  std::string tenant{};
  std::string user = "embedded";  // recorded as the caller of each write
  std::size_t cache_bytes = 64u << 20;
  bool unflushed = false;  // for throw-away data: writes do not survive a power cut
  // Set: the engine also runs worlds (pawl/worlds.h, which needs C++23). Shared, because this
  // header does not know the type.
  std::shared_ptr<const worlds::WorldsOptions> worlds{};
};

class Engine {
 public:
  static lifecycle::result<std::unique_ptr<Engine>> open(EngineOptions options = {});
  // Finishes the writes that were accepted, then closes. Destroy the managers on this engine and
  // their watches first.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineOptions& options() const;
  std::uint64_t last() const;  // number of the newest durable write
  // Runs every recorded turn again and compares the bytes. Returns the number of turns, or an error
  // that names the first difference. A directory in which a server has stored other data is
  // `unsupported`; use `pawl verify` there.
  lifecycle::result<std::size_t> verify() const;

  struct Parts;  // used by the library itself
  Parts& parts() { return *parts_; }

 private:
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl
