#include "runtime/shards.h"

#include <algorithm>

namespace pawl {

// Shards that are opened or stopped at the same time.
static constexpr uint32_t kAtOnce = 16;

Result<void> Shards::at_once(uint32_t shards,
                             const std::function<Result<void>(uint32_t)>& each) const {
  // The calling thread does it alone where there is nothing to gain.
  if (shards == 1) return each(0);
  Result<void> out;
  for (uint32_t first = 0; first < shards; first += kAtOnce) {
    std::vector<Scheduler::Work> running;
    for (uint32_t shard = first; shard < std::min(shards, first + kAtOnce); ++shard)
      running.push_back(scheduler_.beside([&each, shard] { return each(shard); }));
    for (const Scheduler::Work& wait : running)
      if (auto done = wait(); !done && out) out = std::move(done);
    if (!out) return out;
  }
  return out;
}

Result<std::unique_ptr<Shards>> Shards::open(Scheduler& scheduler, uint32_t shards,
                                             const Open& open) {
  std::unique_ptr<Shards> out(new Shards(scheduler));
  out->all_.resize(shards);
  out->rows_.resize(shards);
  TRY_OK(out->at_once(shards, [&](uint32_t shard) -> Result<void> {
    TRY(Opened opened, open(shard));
    out->all_[shard] = std::move(opened.shard);
    out->rows_[shard] = opened.rows;
    return {};
  }));
  return out;
}

std::unique_ptr<RowsSnapshot> Shards::rows_snapshot(uint32_t shard) const {
  (void)all_[shard]->snapshot().seq();  // brings the rows up to the durable frames
  return rows_[shard]->snapshot();
}

Result<void> Shards::start() {
  for (const auto& shard : all_)
    TRY_OK(shard->start());
  return {};
}

void Shards::stop() {
  (void)at_once(size(), [this](uint32_t shard) -> Result<void> {
    all_[shard]->stop();
    return {};
  }).has_value();
}

ShardStats Shards::stats() const {
  ShardStats sum;
  for (const auto& shard : all_) {
    const ShardStats one = shard->stats();
    sum.queued += one.queued;
    sum.in_flight += one.in_flight;
    sum.open_turns += one.open_turns;
    sum.refused_open_turns += one.refused_open_turns;
    sum.refused_queued += one.refused_queued;
    sum.turns += one.turns;
    sum.frames += one.frames;
    sum.groups += one.groups;
    sum.last += one.last;
    sum.family_cells += one.family_cells;
    sum.packed_cells += one.packed_cells;
  }
  return sum;
}

Result<void> Shards::healthy() const {
  for (const auto& shard : all_)
    TRY_OK(shard->healthy());
  return {};
}

Result<void> Shards::rows_intact() const {
  for (const auto& shard : all_)
    TRY_OK(shard->rows_intact());
  return {};
}

Result<void> Shards::progressing(Time limit) const {
  for (const auto& shard : all_)
    TRY_OK(shard->progressing(limit));
  return {};
}

Time Shards::clock_behind() const {
  Time most = 0;
  for (const auto& shard : all_)
    most = std::max(most, shard->clock_behind());
  return most;
}

Seq Shards::durable() const {
  Seq sum = 0;
  for (const auto& shard : all_)
    sum += shard->durable();
  return sum;
}

std::vector<Quarantine::Parked> Shards::quarantine() const {
  std::vector<Quarantine::Parked> out;
  for (const auto& shard : all_)
    for (Quarantine::Parked& parked : shard->quarantine().list())
      out.push_back(std::move(parked));
  return out;
}

Result<void> Shards::release(std::string_view effect_id) const {
  for (const auto& shard : all_)
    if (shard->quarantine().holds(effect_id)) return shard->release(effect_id);
  return all_.front()->release(effect_id);
}

void Shards::forget_old_answers() const {
  for (const auto& shard : all_)
    shard->forget_old_answers();
}

}  // namespace pawl
