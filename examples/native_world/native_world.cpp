// A world whose module is a C++ class, in an embedded engine: no server, no sockets, no WASM. Run
// the program twice: the second run goes on counting where the first stopped.

#include <pawl/engine.h>
#include <pawl/worlds.h>

#include <iostream>

// Adds the numbers that it gets, and announces each hundred. The state is a number and the event is
// {"inc": number}; a real program would read them with a JSON library.
struct Counter final : pawl::worlds::JsonModule {
  pawl::Result<pawl::worlds::JsonOutput> run(std::string_view,
                                             const pawl::worlds::JsonInput& in) const override {
    const unsigned long long before = in.state.empty() ? 0 : std::stoull(in.state);
    const unsigned long long inc = std::stoull(in.event.substr(in.event.find(':') + 1));
    // An error is recorded as the failure of this step. The cell keeps its state.
    if (inc == 0)
      return std::unexpected(pawl::Error{pawl::Code::invalid, "ZERO", "nothing to add"});
    pawl::worlds::JsonOutput out;
    out.state = std::to_string(before + inc);
    if (before / 100 != (before + inc) / 100)
      out.events.push_back({"demo/Hundred@1", std::to_string((before + inc) / 100)});
    return out;
  }
};

constexpr std::string_view kAir = R"([
  {"$kind": "defschema", "name": "demo/Count@1", "type": {"nat": {}}},
  {"$kind": "defschema", "name": "demo/Add@1", "type": {"record": {"inc": {"nat": {}}}}},
  {"$kind": "defschema", "name": "demo/Hundred@1", "type": {"nat": {}}},
  {"$kind": "defmodule", "name": "demo/counter@1",
   "runtime": {"kind": "wasm", "artifact": {"kind": "wasm_module"}}},
  {"$kind": "defworkflow", "name": "demo/count@1", "state": "demo/Count@1", "event": "demo/Add@1",
   "effects_emitted": [],
   "impl": {"module": "demo/counter@1", "entrypoint": "step"}},
  {"$kind": "manifest", "air_version": "2",
   "schemas": [{"name": "demo/Count@1"}, {"name": "demo/Add@1"}, {"name": "demo/Hundred@1"}],
   "modules": [{"name": "demo/counter@1"}], "workflows": [{"name": "demo/count@1"}], "effects": [],
   "routing": {"subscriptions": [{"event": "demo/Add@1", "workflow": "demo/count@1"}]}}])";

int main(int argc, char** argv) {
  auto options = std::make_shared<pawl::worlds::WorldsOptions>();
  options->modules["demo/counter@1"] = std::make_shared<Counter>();
  auto engine =
      pawl::Engine::open({.data = argc > 1 ? argv[1] : "native-world-data", .worlds = options});
  if (!engine) {
    std::cerr << engine.error().message() << '\n';
    return 1;
  }
  pawl::worlds::Worlds worlds(**engine);
  // The world exists from the second run on.
  if (auto made = worlds.create("demo", kAir); !made && made.error().code != pawl::Code::conflict) {
    std::cerr << made.error().message << '\n';
    return 1;
  }
  for (const char* event : {R"({"inc": 40})", R"({"inc": 0})", R"({"inc": 70})"})
    worlds.send("demo", "demo/Add@1", event).value();
  std::cout << "count " << worlds.state("demo", "demo/count@1").value() << '\n';
  const auto refused = worlds.send("demo", "demo/Add@1", R"({"inc": "many"})");
  std::cout << "refused: " << refused.error().message << '\n';
  std::cout << (*engine)->verify().value() << " turns verified\n";
}
