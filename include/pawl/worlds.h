#pragma once
// Worlds in your own process: deterministic programs whose modules are C++ classes or WASM.
//
//   struct Counter final : pawl::worlds::JsonModule { ... };
//   auto options = std::make_shared<pawl::worlds::WorldsOptions>();
//   options->modules["demo/counter@1"] = std::make_shared<Counter>();
//   auto engine = pawl::Engine::open({.data = "counter-data", .worlds = options});
//   pawl::worlds::Worlds worlds(**engine);
//   worlds.send("demo", "demo/Add@1", R"({"id": "a", "inc": 2})");
//
// Values are JSON texts. examples/native_world is a whole program.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {
class Engine;
}

namespace pawl::worlds {

// A module in C++: a pure function from input envelope to output envelope, both in CBOR
// (docs/reference/worlds.md, "Modules"). An error is recorded as the failure of the step, so it
// must depend on the input alone: no clock, no random numbers, no state of its own. Called from
// several threads.
class NativeModule {
 public:
  virtual ~NativeModule() = default;
  virtual Result<std::string> step(std::string_view entrypoint, std::string_view input) const = 0;
  // True when `migrate` is an entrypoint: old state in, new state out.
  virtual bool migrates() const { return false; }
};

// The input of one step. Texts are JSON; an empty text means that there is none.
struct JsonInput {
  std::string state{};
  std::string schema{};  // name of the event's schema, not JSON
  std::string event{};   // of a variant: {"$tag": ARM, "$value": ...}
  std::string key{};
  std::string context{};
};
// The outcome of one step.
struct JsonOutput {
  struct Event {
    std::string schema, value;
  };
  struct Effect {
    std::string name, params;
    std::string idempotency_key{};  // bytes; empty: none
  };
  std::optional<std::string> state{};  // nothing: the cell is deleted
  std::vector<Event> events{};
  std::vector<Effect> effects{};
  bool completed = false;  // the instance is finished and keeps its state
};

// A native module whose values are JSON. Types with `bytes` need NativeModule itself: JSON has no
// bytes, and no schema is at hand here. The rules of NativeModule hold.
class JsonModule : public NativeModule {
 public:
  virtual Result<JsonOutput> run(std::string_view entrypoint, const JsonInput& input) const = 0;
  Result<std::string> step(std::string_view entrypoint, std::string_view input) const final;
};

struct WorldsOptions {
  // Modules by their name in the manifest. A world's journal runs again only with the modules that
  // wrote it: register the same ones each time.
  std::map<std::string, std::shared_ptr<const NativeModule>> modules{};
  // Hosts that sys/http.request@1 may reach, as of the server's --worlds-http-allow.
  std::vector<std::string> http_allow{};
  int http_timeout_seconds = 30;
};

// The worlds of an engine whose options have `worlds`. The engine must outlive it. Thread-safe. A
// call returns when its frame is durable and everything that follows from it has run.
class Worlds {
 public:
  explicit Worlds(Engine& engine) : engine_(engine) {}

  // Creates a world from AIR, a JSON list of nodes. `conflict` when the world exists.
  Result<void> create(std::string_view world, std::string_view air);
  Result<void> send(std::string_view world, std::string_view schema, std::string_view value);
  // The state of a cell as JSON; `not_found` when there is none. `key` is JSON; empty: unkeyed.
  Result<std::string> state(std::string_view world, std::string_view workflow,
                            std::string_view key = {});
  // One request of docs/reference/worlds.md without a socket: call("POST", "/v1/effects/poll",
  // R"({"effects": ["shop/charge@1"]})"). Returns the body of the answer. A status of 400 or more
  // becomes an error. Streams are `unsupported`.
  Result<std::string> call(std::string_view method, std::string_view path,
                           std::string_view body = {});

 private:
  Engine& engine_;
};

}  // namespace pawl::worlds
