#include "storage/postgres/postgres_leases.h"

#include <fmt/format.h>

#include "storage/postgres/store.h"

namespace pawl {

using postgres::Answer;
using postgres::Statement;
using postgres::Value;

namespace {

// $5 is the lease in milliseconds. A row comes back when the name was free, or the life before was
// in the same place or had ended.
constexpr Statement kJoin{
    "join",
    "INSERT INTO pawl_node AS n VALUES ($1, $2, $3, $4, clock_timestamp() + $5::int8 * interval '1 "
    "ms') "
    "ON CONFLICT (name) DO UPDATE SET life = n.life + 1, place = excluded.place, "
    "details = excluded.details, lease_until = excluded.lease_until "
    "WHERE n.place = excluded.place OR n.lease_until < clock_timestamp() RETURNING life"};
constexpr Statement kRenew{
    "renew",
    "UPDATE pawl_node SET lease_until = clock_timestamp() + $3::int8 * interval '1 ms' "
    "WHERE name = $1 AND life = $2 AND lease_until >= clock_timestamp()"};
constexpr Statement kTell{"tell",
                          "UPDATE pawl_node SET details = $3 WHERE name = $1 AND life = $2"};
// The claimant itself must hold its lease. A shard is free when its owner gave it up, when the
// owner's lease has run out, and when the owner's life has ended.
constexpr Statement kClaim{
    "claim",
    "UPDATE pawl_shard s SET epoch = epoch + 1, owner = $2, owner_life = $3 WHERE s.shard = $1 "
    "AND EXISTS (SELECT 1 FROM pawl_node m WHERE m.name = $2 AND m.life = $3 "
    "AND m.lease_until >= clock_timestamp()) "
    "AND NOT EXISTS (SELECT 1 FROM pawl_node n WHERE n.name = s.owner AND n.life = s.owner_life "
    "AND n.lease_until >= clock_timestamp()) RETURNING epoch"};
constexpr Statement kGiveUp{
    "give_up",
    "UPDATE pawl_shard SET owner = NULL, owner_life = NULL WHERE shard = $1 AND epoch = $2"};
constexpr Statement kLeaveShards{
    "leave_shards",
    "UPDATE pawl_shard SET owner = NULL, owner_life = NULL WHERE owner = $1 AND owner_life = $2"};
// The row stays, so that no two lives of a node ever have the same number.
constexpr Statement kLeave{
    "leave", "UPDATE pawl_node SET lease_until = '-infinity' WHERE name = $1 AND life = $2"};
constexpr Statement kNodes{
    "nodes", "SELECT name, details, lease_until >= clock_timestamp() FROM pawl_node ORDER BY name"};
constexpr Statement kShards{
    "shards",
    "SELECT s.shard, s.epoch, coalesce(s.owner, ''), n.name IS NOT NULL, s.head FROM pawl_shard s "
    "LEFT JOIN pawl_node n ON n.name = s.owner AND n.life = s.owner_life "
    "AND n.lease_until >= clock_timestamp() ORDER BY s.shard"};

std::unexpected<Error> lease_lost(const std::string& node) {
  return fail(
      Code::conflict, kLeaseLost,
      fmt::format("the lease of node {} has run out; another node may own its shards", node));
}

}  // namespace

Result<std::unique_ptr<PostgresLeases>> PostgresLeases::open(std::string url, uint32_t shards) {
  auto leases = std::make_unique<PostgresLeases>(std::move(url));
  TRY_OK(postgres::prepare_store(leases->connection_, shards));
  return leases;
}

Result<void> PostgresLeases::join(const std::string& node, const std::string& place,
                                  BytesView details, std::chrono::milliseconds lease) {
  std::lock_guard lock(mutex_);
  const Value values[] = {Value::text(node), Value::int8(1), Value::text(place),
                          Value::bytes(details), Value::int8(lease.count())};
  TRY(Answer joined, connection_.run(kJoin, values));
  if (joined.rows() == 0)
    return fail(Code::conflict, kNodeNameTaken,
                fmt::format("another server is alive with the name {}: choose another --node, or "
                            "stop it and wait until its lease has run out",
                            node));
  node_ = node;
  life_ = joined.number(0, 0);
  return {};
}

Result<void> PostgresLeases::renew(std::chrono::milliseconds lease) {
  std::lock_guard lock(mutex_);
  const Value values[] = {Value::text(node_), Value::int8(life_), Value::int8(lease.count())};
  TRY(Answer renewed, connection_.run(kRenew, values));
  if (renewed.changed() == 1) return {};
  return lease_lost(node_);
}

Result<void> PostgresLeases::tell(BytesView details) {
  std::lock_guard lock(mutex_);
  const Value values[] = {Value::text(node_), Value::int8(life_), Value::bytes(details)};
  TRY(Answer told, connection_.run(kTell, values));
  if (told.changed() == 1) return {};
  return lease_lost(node_);
}

Result<std::optional<Claim>> PostgresLeases::claim(uint32_t shard) {
  std::lock_guard lock(mutex_);
  const Value values[] = {Value::int4(static_cast<int32_t>(shard)), Value::text(node_),
                          Value::int8(life_)};
  TRY(Answer claimed, connection_.run(kClaim, values));
  if (claimed.rows() == 0) return std::optional<Claim>();
  return Claim{shard, static_cast<uint64_t>(claimed.number(0, 0)), node_};
}

Result<void> PostgresLeases::give_up(const Claim& claim) {
  std::lock_guard lock(mutex_);
  const Value values[] = {Value::int4(static_cast<int32_t>(claim.shard)),
                          Value::int8(static_cast<int64_t>(claim.epoch))};
  TRY_OK(connection_.run(kGiveUp, values));
  return {};
}

Result<void> PostgresLeases::leave() {
  std::lock_guard lock(mutex_);
  const Value values[] = {Value::text(node_), Value::int8(life_)};
  TRY_OK(connection_.run(kLeaveShards, values));
  TRY_OK(connection_.run(kLeave, values));
  node_.clear();
  return {};
}

Result<Owners> PostgresLeases::owners() {
  std::lock_guard lock(mutex_);
  Owners out;
  TRY(Answer nodes, connection_.run(kNodes));
  for (int row = 0; row < nodes.rows(); ++row)
    out.nodes.push_back(
        {std::string(nodes.bytes(row, 0)), Bytes(nodes.bytes(row, 1)), nodes.flag(row, 2)});
  TRY(Answer shards, connection_.run(kShards));
  for (int row = 0; row < shards.rows(); ++row)
    out.shards.push_back({static_cast<uint32_t>(shards.number(row, 0)),
                          static_cast<uint64_t>(shards.number(row, 1)),
                          std::string(shards.bytes(row, 2)), shards.flag(row, 3),
                          static_cast<uint64_t>(shards.number(row, 4))});
  return out;
}

}  // namespace pawl
