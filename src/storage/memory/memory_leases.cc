#include "storage/memory/memory_leases.h"

namespace pawl {

static std::unexpected<Error> store_away() {
  return fail(Code::unavailable, "STORE_AWAY", "the store of the leases does not answer");
}

static Time nanoseconds_of(std::chrono::milliseconds lease) {
  return static_cast<Time>(lease.count()) * kMillisecond;
}

class MemoryLeases final : public Leases {
 public:
  explicit MemoryLeases(MemoryLeaseStore& store) : store_(store) {}

  Result<void> join(const std::string& node, const std::string& place, BytesView details,
                    std::chrono::milliseconds lease) override {
    return reach([&]() -> Result<void> {
      MemoryLeaseStore::Node& row = store_.nodes_[node];
      if (row.place != place && store_.alive(node, row.life))
        return fail(Code::conflict, kNodeNameTaken,
                    "another server is alive with the name " + node);
      row = {row.life + 1, place, Bytes(details), store_.clock_() + nanoseconds_of(lease)};
      node_ = node;
      life_ = row.life;
      return {};
    });
  }
  Result<void> renew(std::chrono::milliseconds lease) override {
    return reach([&]() -> Result<void> {
      if (!store_.alive(node_, life_)) return lost();
      store_.nodes_[node_].lease_until = store_.clock_() + nanoseconds_of(lease);
      return {};
    });
  }
  Result<void> tell(BytesView details) override {
    return reach([&]() -> Result<void> {
      if (store_.nodes_[node_].life != life_) return lost();
      store_.nodes_[node_].details = details;
      return {};
    });
  }
  Result<std::optional<Claim>> claim(uint32_t shard) override {
    std::optional<Claim> out;
    TRY_OK(reach([&]() -> Result<void> {
      MemoryLeaseStore::Owned& row = store_.shards_.at(shard);
      if (!store_.alive(node_, life_) || store_.alive(row.owner, row.life)) return {};
      row = {row.epoch + 1, node_, life_};
      out = Claim{shard, row.epoch, node_};
      return {};
    }));
    return out;
  }
  Result<void> give_up(const Claim& claim) override {
    return reach([&]() -> Result<void> {
      MemoryLeaseStore::Owned& row = store_.shards_.at(claim.shard);
      if (row.epoch == claim.epoch) row.owner.clear();
      return {};
    });
  }
  Result<void> leave() override {
    return reach([&]() -> Result<void> {
      for (MemoryLeaseStore::Owned& row : store_.shards_)
        if (row.owner == node_ && row.life == life_) row.owner.clear();
      MemoryLeaseStore::Node& row = store_.nodes_[node_];
      if (row.life == life_) row.lease_until = 0;
      node_.clear();
      return {};
    });
  }
  Result<Owners> owners() override {
    Owners out;
    TRY_OK(reach([&]() -> Result<void> {
      for (const auto& [name, row] : store_.nodes_)
        out.nodes.push_back({name, row.details, store_.alive(name, row.life)});
      for (uint32_t i = 0; i < store_.shards_.size(); ++i) {
        const MemoryLeaseStore::Owned& row = store_.shards_[i];
        out.shards.push_back({i, row.epoch, row.owner, store_.alive(row.owner, row.life), 0});
      }
      return {};
    }));
    return out;
  }

 private:
  template <class F>
  Result<void> reach(F&& act) {
    std::lock_guard lock(store_.mutex_);
    if (!store_.away_) return act();
    if (store_.carries_out_) (void)act().has_value();
    return store_away();
  }
  std::unexpected<Error> lost() const {
    return fail(Code::conflict, kLeaseLost, "the lease of node " + node_ + " has run out");
  }
  MemoryLeaseStore& store_;
  std::string node_;
  int64_t life_ = 0;
};

MemoryLeaseStore::MemoryLeaseStore(uint32_t shards, std::function<Time()> clock)
    : clock_(std::move(clock)), shards_(shards) {}

void MemoryLeaseStore::set_away(bool away, bool carries_out) {
  std::lock_guard lock(mutex_);
  away_ = away;
  carries_out_ = carries_out;
}

bool MemoryLeaseStore::alive(const std::string& node, int64_t life) const {
  auto it = nodes_.find(node);
  return it != nodes_.end() && it->second.life == life && it->second.lease_until >= clock_();
}

std::unique_ptr<Leases> MemoryLeaseStore::connect() {
  return std::make_unique<MemoryLeases>(*this);
}

}  // namespace pawl
