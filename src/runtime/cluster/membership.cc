#include "runtime/cluster/membership.h"

#include <algorithm>

#include "base/log.h"

namespace pawl {

Bytes encode(const NodeRecord& record) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.str(record.http);
  w.str(record.grpc);
  w.str(record.internal);
  w.str(record.version);
  w.boolean(record.draining);
  w.uint(record.wanted.size());
  for (uint32_t shard : record.wanted)
    w.uint(shard);
  return out;
}

Result<NodeRecord> decode_node_record(BytesView bytes) {
  Reader r(bytes);
  const uint8_t version = r.u8();
  NodeRecord out;
  out.http = r.str();
  out.grpc = r.str();
  out.internal = r.str();
  out.version = r.str();
  out.draining = r.boolean();
  for (size_t n = r.count(); n-- > 0 && r.ok();)
    out.wanted.push_back(static_cast<uint32_t>(r.uint()));
  // Later versions may add fields at the end.
  if (!r.ok() || version < 1)
    return fail(Code::corrupt, "BAD_NODE", "the record of a node does not decode");
  return out;
}

Membership::Membership(Leases& leases, ShardOwner& owner, Scheduler& scheduler,
                       MembershipOptions options)
    : leases_(leases),
      owner_(owner),
      scheduler_(scheduler),
      options_(std::move(options)),
      record_(options_.record) {}

Membership::~Membership() { stop(0); }

Time Membership::lease_time() const {
  return static_cast<Time>(options_.lease.count()) * kMillisecond;
}

// A twentieth is left for clocks that do not run equally fast.
Time Membership::deadline(Time sent) const { return sent + lease_time() - lease_time() / 20; }

void Membership::start() {
  auto begin = [this](std::unique_ptr<BackgroundLoop>& at, std::unique_ptr<BackgroundLoop> loop) {
    std::lock_guard lock(mutex_);
    at = std::move(loop);
  };
  begin(watch_loop_, scheduler_.prompt_loop("lease watch", [this] { return watch_step(); }));
  begin(renew_loop_, scheduler_.prompt_loop("lease", [this] { return renew_step(); }));
  begin(work_loop_, scheduler_.loop("members", [this] { return work_step(); }));
}

void Membership::wake(const std::unique_ptr<BackgroundLoop>& loop) const {
  std::lock_guard lock(mutex_);
  if (loop) loop->wake();
}

void Membership::stop(Time grace) {
  auto end = [this](std::unique_ptr<BackgroundLoop>& loop) {
    std::unique_ptr<BackgroundLoop> ended;  // destroyed without the lock, which its step takes
    std::lock_guard lock(mutex_);
    ended = std::move(loop);
  };
  {
    std::lock_guard lock(mutex_);
    if (!work_loop_) return;
    stopping_ = true;
    record_.draining = true;
    record_told_ = false;
  }
  wake(work_loop_);
  scheduler_.wait_until(
      [this] {
        std::lock_guard lock(mutex_);
        return held_.empty();
      },
      scheduler_.steady_now() + grace);
  end(renew_loop_);
  end(watch_loop_);
  lose();  // of what is left, nothing may be served any more
  end(work_loop_);
  close_held(held_where([](const Held&) { return true; }));
  if (life_ > 0) (void)leases_.leave().has_value();
}

void Membership::drain(bool on) {
  {
    std::lock_guard lock(mutex_);
    if (record_.draining == on || stopping_) return;
    record_.draining = on;
    record_told_ = false;
  }
  wake(work_loop_);
}

void Membership::take(uint32_t shard) {
  {
    std::lock_guard lock(mutex_);
    if (held_.contains(shard) || std::ranges::count(record_.wanted, shard)) return;
    record_.wanted.push_back(shard);
    record_told_ = false;
  }
  wake(work_loop_);
}

void Membership::failed(uint32_t shard) {
  {
    std::lock_guard lock(mutex_);
    auto it = held_.find(shard);
    if (it == held_.end()) return;
    it->second.failed = true;
  }
  wake(work_loop_);
}

void Membership::look_again() { wake(work_loop_); }

bool Membership::lease_valid() const {
  return scheduler_.steady_now() < valid_until_.load(std::memory_order_acquire);
}

bool Membership::serves(uint32_t shard) const {
  std::lock_guard lock(mutex_);
  auto it = held_.find(shard);
  return it != held_.end() && it->second.phase != Phase::opening && !it->second.failed &&
         lease_valid();
}

Owners Membership::owners() const {
  std::lock_guard lock(mutex_);
  return owners_;
}

std::optional<Membership::Found> Membership::owner_of(uint32_t shard) const {
  std::lock_guard lock(mutex_);
  if (shard >= owners_.shards.size() || !owners_.shards[shard].held) return {};
  const ShardRow& row = owners_.shards[shard];
  for (const NodeRow& node : owners_.nodes) {
    if (node.name != row.owner) continue;
    auto record = decode_node_record(node.details);
    if (!record) return {};
    return Found{node.name, *std::move(record), row.epoch};
  }
  return {};
}

MembershipStatus Membership::status() const {
  std::lock_guard lock(mutex_);
  MembershipStatus out = counts_;
  out.joined = state_ == State::joined;
  out.draining = record_.draining;
  out.lease_left = std::max<Time>(0, valid_until_ - scheduler_.steady_now());
  for (const auto& [shard, held] : held_)
    out.held.push_back(held.claim);
  return out;
}

void Membership::note_failure(const Error& why) {
  std::lock_guard lock(mutex_);
  counts_.last_failure = why.message;
}

Time Membership::renew_step() {
  uint64_t life;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::joined) return BackgroundLoop::kNever;
    life = life_;
  }
  const Time sent = scheduler_.steady_now();
  Result<void> renewed = leases_.renew(options_.lease);
  if (renewed) {
    std::lock_guard lock(mutex_);
    // An answer that came too late changes nothing: the shards are closed already.
    if (state_ != State::joined || life_ != life) return BackgroundLoop::kNever;
    valid_until_.store(deadline(sent), std::memory_order_release);
    return sent + lease_time() / 3;
  }
  note_failure(renewed.error());
  if (renewed.error().is(kLeaseLost)) {
    lose();
    return BackgroundLoop::kNever;
  }
  return scheduler_.steady_now() + lease_time() / 20;
}

Time Membership::watch_step() {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::joined) return BackgroundLoop::kNever;
    const Time until = valid_until_;
    if (scheduler_.steady_now() < until) return until;
  }
  lose();
  return BackgroundLoop::kNever;
}

void Membership::lose() {
  std::vector<uint32_t> shards;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::joined) return;
    state_ = State::lost;
    valid_until_ = 0;
    counts_.losses += !stopping_;
    for (const auto& [shard, held] : held_)
      shards.push_back(shard);
  }
  for (uint32_t shard : shards)
    owner_.fence(shard);
  if (!shards.empty())
    log(Level::warn, "the lease of this node may have run out: its shards are stopped",
        {{"node", options_.node}, {"shards", shards.size()}});
  wake(work_loop_);
}

bool Membership::join() {
  NodeRecord record;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::joined) return true;
    if (stopping_) return false;
    record_told_ = true;
    record = record_;
  }
  const Time sent = scheduler_.steady_now();
  auto joined = leases_.join(options_.node, options_.place, encode(record), options_.lease);
  if (!joined) {
    note_failure(joined.error());
    return false;
  }
  {
    std::lock_guard lock(mutex_);
    state_ = State::joined;
    ++life_;
    valid_until_ = deadline(sent);
  }
  wake(renew_loop_);
  wake(watch_loop_);
  return true;
}

bool Membership::look() {
  auto owners = leases_.owners();
  if (!owners) {
    note_failure(owners.error());
    return false;
  }
  std::lock_guard lock(mutex_);
  owners_ = *std::move(owners);
  const Time now = scheduler_.steady_now();
  for (const ShardRow& row : owners_.shards) {
    if (row.held)
      free_since_.erase(row.shard);
    else
      free_since_.try_emplace(row.shard, now);
  }
  return true;
}

void Membership::tell() {
  NodeRecord record;
  {
    std::lock_guard lock(mutex_);
    if (record_told_) return;
    record = record_;
    record_told_ = true;
  }
  auto told = leases_.tell(encode(record));
  if (told) return;
  note_failure(told.error());
  std::lock_guard lock(mutex_);
  record_told_ = false;
}

std::vector<uint32_t> Membership::held_where(bool (*wanted)(const Held&)) const {
  std::lock_guard lock(mutex_);
  std::vector<uint32_t> out;
  for (const auto& [shard, held] : held_)
    if (wanted(held)) out.push_back(shard);
  return out;
}

// Each active node may own the same number of shards, rounded up. A node that owns more, or that
// owns the rounded-up number while another has less than the rounded-down one, gives one up.
Membership::Plan Membership::plan() {
  std::lock_guard lock(mutex_);
  std::map<std::string, size_t> owned;     // by active nodes
  std::map<uint32_t, std::string> wanted;  // by the node that shall own them
  for (const NodeRow& node : owners_.nodes) {
    auto record = decode_node_record(node.details);
    if (!node.alive || !record) continue;
    if (!record->draining) owned[node.name] = 0;
    for (uint32_t shard : record->wanted)
      wanted[shard] = node.name;
  }
  const bool active = !record_.draining && state_ == State::joined;
  if (active) owned.try_emplace(options_.node, 0);
  for (const ShardRow& row : owners_.shards)
    if (row.held && owned.contains(row.owner)) ++owned[row.owner];
  if (active) owned[options_.node] = held_.size();
  const size_t nodes = std::max<size_t>(owned.size(), 1);
  const size_t most = (owners_.shards.size() + nodes - 1) / nodes;
  const size_t least = owners_.shards.size() / nodes;
  const Time now = scheduler_.steady_now();

  Plan out;
  size_t own = held_.size();
  for (const auto& [shard, held] : held_) {
    auto other = wanted.find(shard);
    const bool moves = other != wanted.end() && other->second != options_.node;
    if (record_.draining || held.failed || moves) out.give_up.push_back(shard);
  }
  if (!active) return out;
  own -= out.give_up.size();
  const bool others_lack = std::ranges::any_of(
      owned, [&](const auto& node) { return node.first != options_.node && node.second < least; });
  const size_t limit = others_lack ? std::max<size_t>(least, 1) : most;
  for (auto it = held_.rbegin(); it != held_.rend() && own > limit; ++it) {
    if (std::ranges::count(out.give_up, it->first)) continue;
    if (it->second.keep_until > now) continue;
    out.give_up.push_back(it->first);
    --own;
    break;  // one at a time: the others see it before the next
  }
  for (const auto& [shard, since] : free_since_) {
    auto other = wanted.find(shard);
    const bool mine = other != wanted.end() && other->second == options_.node;
    if (held_.contains(shard) || (other != wanted.end() && !mine)) continue;
    if (auto it = avoided_.find(shard); it != avoided_.end() && it->second.until > now) continue;
    // A shard that nobody has claimed for long is claimed above the share as well.
    if (own >= most && !mine && now - since < 2 * lease_time()) continue;
    out.claim.push_back(shard);
    ++own;
  }
  return out;
}

void Membership::close_held(const std::vector<uint32_t>& shards) {
  for (uint32_t shard : shards) {
    Claim claim;
    {
      std::lock_guard lock(mutex_);
      Held& held = held_.at(shard);
      held.phase = Phase::closing;
      claim = held.claim;
    }
    owner_.close(shard);
    bool joined;
    {
      std::lock_guard lock(mutex_);
      if (held_.at(shard).failed) {
        Avoided& avoided = avoided_[shard];
        avoided.until =
            scheduler_.steady_now() + (lease_time() / 2 << std::min(avoided.failures++, 5u));
      }
      held_.erase(shard);
      joined = state_ == State::joined;
    }
    if (!joined) continue;  // the claim ended with the lease
    if (auto given = leases_.give_up(claim); !given) note_failure(given.error());
  }
}

void Membership::claim(uint32_t shard) {
  auto claimed = leases_.claim(shard);
  if (!claimed) return note_failure(claimed.error());
  if (!*claimed) return;  // another node was faster
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::joined) return;
    Held& held = held_[shard];
    held.claim = **claimed;
    if (auto free = free_since_.find(shard); free != free_since_.end())
      if (const Time now = scheduler_.steady_now(); now - free->second >= 2 * lease_time())
        held.keep_until = now + 20 * lease_time();
    free_since_.erase(shard);
    ++counts_.claims;
    if (std::erase(record_.wanted, shard)) record_told_ = false;
  }
  Result<void> opened = owner_.open(**claimed);
  if (!opened) {
    note_failure(opened.error());
    log(Level::error, "a shard that this node claimed cannot be opened",
        {{"shard", shard}, {"why", opened.error().message}});
  }
  bool lost;
  {
    std::lock_guard lock(mutex_);
    Held& held = held_.at(shard);
    held.phase = Phase::open;
    held.failed |= !opened;
    if (opened) avoided_.erase(shard);
    lost = state_ != State::joined;
  }
  if (lost) owner_.fence(shard);
}

Time Membership::work_step() {
  bool lost;
  {
    std::lock_guard lock(mutex_);
    lost = state_ == State::lost;
  }
  if (lost) close_held(held_where([](const Held&) { return true; }));
  const Time again = scheduler_.steady_now() + lease_time() / 3;
  if (!join()) return again;
  tell();
  if (!look()) {
    // What has failed is closed also while the store is away.
    close_held(held_where([](const Held& held) { return held.failed; }));
    return again;
  }
  const Plan next = plan();
  close_held(next.give_up);
  for (uint32_t shard : next.claim) {
    {
      std::lock_guard lock(mutex_);
      if (state_ != State::joined || record_.draining) break;
    }
    claim(shard);
  }
  // A change of hands is followed soon, so that the others' part of it is seen.
  if (!next.give_up.empty() || !next.claim.empty())
    return scheduler_.steady_now() + lease_time() / 10;
  return again;
}

}  // namespace pawl
