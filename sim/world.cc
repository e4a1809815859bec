#include "sim/world.h"

namespace pawl::sim {

World::World(uint64_t seed, std::vector<const Program*> programs)
    : programs(std::move(programs)), random_(seed) {
  restart();
}

void World::expect(bool held, std::string what) {
  if (!held) broken.push_back(std::move(what));
}

// The kernel gives an input without a time the time of its last tick.
void World::submit(Input input, Reply reply) {
  input.stamp.now = 0;
  input.stamp.dice = dice();
  queue_.emplace_back(std::move(input), std::move(reply));
}

// Runs a random number of the queued inputs, so that groups have all sizes.
void World::drive() {
  if (!kernel_ || queue_.empty()) return;
  kernel_->tick(now);
  for (size_t n = 1 + roll(queue_.size()); n-- > 0;) {
    auto [input, reply] = std::move(queue_.front());
    queue_.pop_front();
    kernel_->run(std::move(input), std::move(reply));
  }
  if (!kernel_->idle()) taken_.push_back(kernel_->take());
}

void World::append() {
  if (!kernel_ || taken_.empty()) return;
  std::vector<Group> groups;
  for (size_t n = 1 + roll(taken_.size()); n-- > 0;) {
    groups.push_back(std::move(taken_.front()));
    taken_.pop_front();
  }
  bool any =
      std::any_of(groups.begin(), groups.end(), [](const Group& g) { return !g.frames.empty(); });
  if (any && chance(disk_fault_percent))
    // Either the disk took nothing, or it took everything and the answer was lost. The callers
    // cannot tell.
    journal.fail_next_append(chance(50) ? AppendFault::nothing_written
                                        : AppendFault::everything_written);
  if (auto done = committer_->append(groups); !done) {
    // Every caller gets the error and nothing else, and the process ends.
    refuse_all(groups, done.error());
    return crash();
  }
  for (Group& group : groups)
    durable_.push_back(std::move(group));
}

// Rows lag behind on purpose, and their flush behind that: a crash then needs a longer replay.
void World::apply() {
  if (!kernel_ || durable_.empty()) return;
  std::vector<Group> groups;
  groups.push_back(std::move(durable_.front()));
  durable_.pop_front();
  committer_->publish(groups);
  if (chance(30)) expect(bool(committer_->apply()), "rows were refused");
  if (chance(10)) expect(bool(rows.flush()), "rows could not be flushed");
  applied_.push_back(std::move(groups[0]));
}

void World::sent(const Effect& effect, Seq frame) {
  expect(frame <= journal.last(), "effect " + effect.id + " left before its frame was durable");
  outside_.push_back(effect);
}

// A closed effect may still be answered from outside: its cancellation is lost three times in ten.
void World::release_group() {
  if (!kernel_ || applied_.empty()) return;
  Group group = std::move(applied_.front());
  applied_.pop_front();
  for (auto& [effect, opened] : group.moved) {
    if (opened)
      sent(*effect, group.last());
    else
      std::erase_if(outside_,
                    [&, id = effect->id](const Effect& e) { return e.id == id && chance(70); });
  }
  for (auto& [reply, answer] : group.answers)
    reply(std::move(answer));
}

// Without disk faults, so that it ends.
void World::settle_all() {
  unsigned faults = std::exchange(disk_fault_percent, 0);
  if (!alive()) restart();
  while (!queue_.empty() || !taken_.empty() || !durable_.empty() || !applied_.empty()) {
    drive();
    append();
    apply();
    release_group();
  }
  expect(bool(committer_->apply()), "rows were refused");
  disk_fault_percent = faults;
}

ReadSnapshot World::snapshot() {
  expect(bool(committer_->apply()), "rows were refused");
  return ReadSnapshot(rows.snapshot());
}

// Everything in memory is lost. The journal keeps what it has written; the rows fall back to their
// last flush.
void World::crash() {
  ++crashes_;
  kernel_.reset();
  committer_.reset();
  cache_.reset();
  queue_.clear();
  taken_.clear();
  durable_.clear();
  applied_.clear();
  outside_.clear();
  journal.reopen();
  rows.crash();
}

void World::restart() {
  auto replayed = replay(journal, rows, programs);
  if (!replayed) return expect(false, "cannot start again: " + replayed.error().message);
  cache_ = std::make_unique<CellCache>(rows, 64 << 10);
  kernel_ = std::make_unique<Kernel>(
      *cache_, [this] { return snapshot(); }, programs, replayed->last);
  committer_ = std::make_unique<Committer>(journal, rows, *cache_, replayed->link);
  // The open effects leave again, as they do when a server starts.
  ReadSnapshot snapshot(rows.snapshot());
  auto scanned = snapshot.scan(kEffectPrefix, [&](BytesView, const Cell& cell) {
    auto effect = decode_effect(cell.value());
    expect(bool(effect), "an open effect does not decode");
    if (effect) sent(*effect, cell.version);
    return true;
  });
  expect(bool(scanned), "open effects cannot be read");
}

}  // namespace pawl::sim
