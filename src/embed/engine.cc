#include "pawl/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "embed/engine_parts.h"
#include "faces/lifecycle/run/refuse.h"
#include "kernel/once.h"
#include "kernel/verify.h"
#include "storage/data_folder.h"
#include "storage/memory/memory.h"

namespace pawl {

namespace {

// Without a data directory, journal and rows are in memory.
Result<Stores> open_stores(const EngineOptions& options) {
  Stores out;
  if (options.data.empty()) {
    out.journal = std::make_unique<MemoryJournal>();
    out.rows = std::make_unique<MemoryRows>();
    return out;
  }
  return open_data(options.data, {.unflushed = options.unflushed});
}

Result<std::unique_ptr<Engine::Parts>> open_parts(EngineOptions options) {
  auto parts = std::make_unique<Engine::Parts>();
  TRY(Stores stores, open_stores(options));
  ShardOptions shard;
  shard.cache_bytes = options.cache_bytes;
  parts->options = std::move(options);
  if (parts->options.tenant.empty()) parts->options.tenant = kDefaultTenant;
  if (parts->options.worlds) parts->worlds = std::make_unique<WorldsParts>(*parts->options.worlds);
  TRY(parts->shard, Shard::open(std::move(stores.journal), std::move(stores.rows),
                                parts->programs(), std::move(shard)));
  // The outbox and the watch hub are connected before the shard starts: start() reports the effects
  // that are open from before, and the clock must hear of them.
  parts->clock = std::make_unique<Clock>(*parts->shard, parts->shard->scheduler());
  parts->shard->connect(To::clock, *parts->clock);
  parts->hub = std::make_shared<lifecycle::WatchHub>(*parts->shard);
  if (parts->worlds) parts->worlds->open(*parts->shard, *parts->options.worlds);
  TRY_OK(parts->shard->start());
  parts->clock->start();
  if (parts->worlds) parts->worlds->workers->start();
  return parts;
}

}  // namespace

Engine::Parts::~Parts() {
  if (worlds) worlds->stop();
  if (clock) clock->stop();
  if (hub) hub->detach();
  if (shard) shard->stop();
  // The face uses the shard until it is destroyed, and the shard uses the program.
  if (worlds) worlds->face.reset();
  if (worlds) worlds->workers.reset();
}

std::vector<const Program*> Engine::Parts::programs() const {
  std::vector<const Program*> out{&program};
  if (worlds) out.push_back(&worlds->program);
  return out;
}

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;

lifecycle::result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
  auto parts = open_parts(std::move(options));
  if (!parts) return lifecycle::fail(lifecycle::to_error(parts.error()));
  return std::unique_ptr<Engine>(new Engine(std::move(*parts)));
}

const EngineOptions& Engine::options() const { return parts_->options; }
std::uint64_t Engine::last() const { return parts_->shard->durable(); }

lifecycle::result<std::size_t> Engine::verify() const {
  MemoryRows scratch;
  const std::vector<const Program*> programs = parts_->programs();
  auto done = pawl::verify(parts_->shard->journal(), scratch, programs);
  if (!done) return lifecycle::fail(lifecycle::to_error(done.error()));
  // A server may have used the same directory. Its other programs are not in this library, so their
  // frames cannot be run again.
  for (const auto& [name, frames] : done->by_program)
    if (name != kOwnProgram && std::none_of(programs.begin(), programs.end(),
                                            [&](const Program* p) { return p->name() == name; }))
      return lifecycle::fail(
          lifecycle::errc::unsupported,
          fmt::format(
              "{} also holds turns of '{}', which this library cannot run: use `pawl verify`",
              parts_->options.data, name));
  if (!done->difference.empty()) return lifecycle::fail(lifecycle::errc::storage, done->difference);
  return done->rerun;
}

}  // namespace pawl
