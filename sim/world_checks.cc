// Promises about the whole state of a simulated server: its journal, its rows, its queues.

#include <fmt/format.h>

#include "kernel/verify.h"
#include "sim/server_process.h"

namespace pawl::sim {
namespace {

// The journal of a server that runs, for a second shard that only reads.
class BorrowedJournal final : public Journal {
 public:
  explicit BorrowedJournal(const Journal& inner) : inner_(inner) {}
  Result<void> append(std::span<const BytesView>, Seq) override {
    return fail(Code::unavailable, "BORROWED", "this journal is only read");
  }
  Result<void> read(Seq from, const Visit& visit) const override {
    return inner_.read(from, visit);
  }
  Seq first() const override { return inner_.first(); }
  Seq last() const override { return inner_.last(); }
  Result<void> trim(Seq) override { return {}; }
  uint64_t bytes() const override { return inner_.bytes(); }

 private:
  const Journal& inner_;
};

}  // namespace

// A journal of which one bit has changed is refused, or every entry that it gives is as it was.
void World::read_with_flipped_bit() {
  auto entries = [this]() -> Result<Digest> {
    TRY(std::unique_ptr<Journal> journal, open_journal());
    Digest all{};
    TRY_OK(journal->read(journal->first(), [&](Seq, BytesView entry) -> Result<bool> {
      all = sha256(Bytes(view(all)) + Bytes(entry));
      return true;
    }));
    return all;
  };
  if (!disk_.flip_a_bit()) return;
  const auto flipped = entries();
  note(flipped ? "a bit of the journal changed and is not noticed"
               : "a bit of the journal changed: " + flipped.error().message);
  disk_.mend();
  const auto whole = entries();
  expect(bool(whole), "the mended journal cannot be read");
  expect(!flipped || !whole || *flipped == *whole,
         "a journal with a flipped bit gives entries that were never written");
}

static std::map<Bytes, Bytes> all_rows(const Rows& rows) {
  std::map<Bytes, Bytes> out;
  CHECK(rows.snapshot()->scan("", "", [&](BytesView key, BytesView value) {
    out.emplace(key, value);
    return true;
  }));
  out.erase("mviews");  // the version of the views, and not their state
  return out;
}

// The first key at which the two differ, in words.
static std::string difference(const std::map<Bytes, Bytes>& live,
                              const std::map<Bytes, Bytes>& rebuilt) {
  for (const auto& [key, value] : live) {
    auto other = rebuilt.find(key);
    if (other == rebuilt.end()) return "a row too many: " + hex(key);
    if (other->second != value) return "another value: " + hex(key);
  }
  for (const auto& [key, value] : rebuilt)
    if (!live.contains(key)) return "a row is missing: " + hex(key);
  return {};
}

void World::compare_with_rebuild(Server& server) {
  auto fresh = std::make_unique<MemoryRows>();
  const MemoryRows& rebuilt = *fresh;
  ShardOptions options;
  options.scheduler = &schedule_;
  options.dice = [] { return std::array<uint64_t, 2>{1, 2}; };
  auto second = Shard::open(std::make_unique<BorrowedJournal>(server.shard->journal()),
                            std::move(fresh), programs_->list(), std::move(options));
  expect(bool(second), "the journal cannot be replayed");
  if (!second) return;
  const std::string differs = difference(all_rows(rows_), all_rows(rebuilt));
  expect(differs.empty(), "a rebuild from the journal gives other rows: " + differs);
}

void World::check_limits() {
  if (!server_ || !server_->shard) return;
  const ShardStats stats = server_->shard->stats();
  const size_t tenants = options_.token_key.empty() ? 1 : kTenants;
  expect(stats.queued <= tenants * kTenantQueuedInputs,
         fmt::format("{} inputs wait for the kernel", stats.queued));
  expect(stats.open_turns <= tenants * kTenantOpenTurns,
         fmt::format("{} turns are open", stats.open_turns));
  expect(server_->memory.used() <= kServerMemory,
         fmt::format("{} bytes of memory are charged", server_->memory.used()));
}

void World::check_journal() {
  if (!server_ || !server_->shard || dead_) return expect(false, "the server is down at the end");
  const ShardStats stats = server_->shard->stats();
  expect(stats.queued == 0 && stats.open_turns == 0,
         fmt::format("{} inputs wait and {} turns are open long after the last fault", stats.queued,
                     stats.open_turns));
  expect(server_->shard->quarantine().size() == 0, "an effect is still in quarantine");
  server_->stop();
  expect(server_->memory.used() == 0,
         fmt::format("{} bytes of memory are charged by a server that has stopped",
                     server_->memory.used()));
  frames_ = server_->shard->durable();
  MemoryRows scratch;
  auto verified = verify(server_->shard->journal(), scratch, programs_->all());
  expect(bool(verified), verified ? "" : "verify fails: " + verified.error().message);
  if (verified) expect(verified->difference.empty(), "verify: " + verified->difference);
  compare_with_rebuild(*server_);
  note(fmt::format("{} frames", frames_));
}

}  // namespace pawl::sim
