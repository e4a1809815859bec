#include "sim/life.h"

#include "sim/clients/client.h"

namespace pawl::sim {

// After the last fault every instance must come to its end within this time.
static constexpr Time kCalm = 3 * 3600 * kSecond;
static constexpr Time kAsking = 600 * kSecond;

using Make = std::unique_ptr<Client> (*)(World&);
static constexpr Make kClients[] = {make_processes_client, make_lifecycle_client,
                                    make_entities_client};

size_t client_count() { return std::size(kClients); }

Outcome live(const LifeOptions& options) {
  World world({options.seed, options.mutation, options.faults, options.tell});
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < std::size(kClients); ++i)
    if (options.clients >> i & 1) clients.push_back(kClients[i](world));
  for (auto& client : clients)
    client->begin();
  // Lives differ in length, so that short ones find what needs no time.
  world.live(options.time / static_cast<Time>(1 + world.schedule().roll(4)));
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
  out.simulated = world.schedule().elapsed();
  out.frames = world.frames();
  out.answers = world.answers();
  out.steps = world.schedule().steps();
  out.lives = world.life();
  return out;
}

}  // namespace pawl::sim
