#include "sim/life.h"

#include "sim/clients/client.h"
#include "wasm/host.h"
#include "wasm/wasmtime_api.h"

namespace pawl::sim {

// After the last fault every instance must come to its end within this time.
static constexpr Time kCalm = 3 * 3600 * kSecond;
static constexpr Time kAsking = 600 * kSecond;
static constexpr Time kDense = 2 * 3600 * kSecond;
// Lives with gaps last for days or years: for a few gaps of about half of the longest one.
static constexpr Time kDay = 24 * 3600 * kSecond;
static constexpr Time kGaps[] = {kDay, 10 * kDay, 30 * kDay, 90 * kDay, 365 * kDay};

using Make = std::unique_ptr<Client> (*)(Session&);
static constexpr Make kClients[] = {
    make_processes_client, make_lifecycle_client,  make_entities_client, make_worlds_client,
    make_tickets_client,   make_operations_client, make_ledger_client,   make_spy_client};
static constexpr size_t kOfWorlds = 3;

size_t client_count() { return std::size(kClients); }

std::string worlds_left_out() {
  for (const std::string& path : wasm::usual_libraries())
    if (wasm::api::load(path)) return {};
  return "worlds are left out, because Wasmtime is not installed: run scripts/setup-wasm, or set "
         "PAWL_WASMTIME to libwasmtime.so";
}

// Lives differ in length, so that short ones find what needs no time.
static Time length_of(const LifeOptions& options, const WorldOptions& world, Schedule& schedule) {
  const Time part = static_cast<Time>(1 + schedule.roll(4));
  if (world.longest_gap > 0) return part * world.longest_gap / options.divisor;
  const Time time = options.time ? options.time : kDense;
  return time / part / options.divisor;
}

static WorldOptions world_of(const LifeOptions& options) {
  WorldOptions out{options.seed, options.mutation, options.faults, options.tell};
  out.wasm_cache = options.wasm_cache;
  if (options.seed % 3 == 0) out.token_key = options.token_key;
  if (options.time == 0 && options.seed % 2 == 0)
    out.longest_gap = kGaps[options.seed / 2 % std::size(kGaps)];
  return out;
}

Outcome live(const LifeOptions& options) {
  const WorldOptions of_world = world_of(options);
  World world(of_world);
  // The clients of the second tenant use the same names and keys as those of the first.
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::make_unique<Session>(world));
  if (!of_world.token_key.empty()) sessions.push_back(std::make_unique<Session>(world, "second"));
  std::vector<std::unique_ptr<Client>> clients;
  for (auto& session : sessions)
    for (size_t i = 0; i < std::size(kClients); ++i) {
      const bool takes_part = session == sessions.front() || world.schedule().chance(60);
      if (options.clients >> i & 1 && takes_part && (i != kOfWorlds || !options.without_worlds))
        clients.push_back(kClients[i](*session));
    }
  for (auto& client : clients)
    client->begin();
  world.live(length_of(options, of_world, world.schedule()));
  world.calm_down(kSecond);
  for (auto& client : clients)
    client->finish();
  world.live(kCalm);
  for (auto& client : clients)
    client->ask_everything();
  world.live(kAsking);
  if (world.broken().empty())
    for (auto& client : clients)
      client->check();
  if (world.broken().empty()) world.check_journal();
  Outcome out;
  out.broken = world.broken();
  out.story = world.story();
  out.digest = world.digest();
  out.counts = world.counts();
  out.coverage = world.coverage();
  out.reached = world.reached();
  out.has_tenants = !of_world.token_key.empty();
  out.simulated = world.schedule().elapsed();
  out.busy = world.busy_time();
  out.has_gaps = of_world.longest_gap > 0;
  out.frames = world.frames();
  out.answers = world.answers();
  out.steps = world.schedule().steps();
  out.lives = world.life();
  return out;
}

}  // namespace pawl::sim
