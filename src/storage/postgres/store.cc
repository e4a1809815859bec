#include "storage/postgres/store.h"

#include <fmt/format.h>

namespace pawl::postgres {
namespace {

constexpr int32_t kVersion = 1;

// One transaction: the lock ends with it. Rows of pawl_shard are updated by each append; with
// free space in their pages the updates stay "heap only" and touch no index. Groups are stored
// as they are (EXTERNAL): trying to compress them costs more than it saves.
constexpr std::string_view kTables = R"(
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('pawl tables'), hashtext(current_schema()));
CREATE TABLE IF NOT EXISTS pawl_store (
  version int4 NOT NULL, shards int4 NOT NULL, made timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS pawl_node (
  name text PRIMARY KEY, life int8 NOT NULL, place text NOT NULL, details bytea NOT NULL,
  lease_until timestamptz NOT NULL) WITH (fillfactor = 20);
CREATE TABLE IF NOT EXISTS pawl_shard (
  shard int4 PRIMARY KEY, epoch int8 NOT NULL, owner text, owner_life int8,
  first int8 NOT NULL, head int8 NOT NULL, bytes int8 NOT NULL) WITH (fillfactor = 20);
CREATE TABLE IF NOT EXISTS pawl_group (
  shard int4, first int8, last int8 NOT NULL, epoch int8 NOT NULL, nonce int8 NOT NULL,
  bytes bytea NOT NULL, PRIMARY KEY (shard, first));
ALTER TABLE pawl_group ALTER COLUMN bytes SET STORAGE EXTERNAL;
INSERT INTO pawl_store (version, shards)
  SELECT {0}, {1} WHERE NOT EXISTS (SELECT 1 FROM pawl_store);
INSERT INTO pawl_shard SELECT n, 0, NULL, NULL, 1, 0, 0
  FROM generate_series(0, (SELECT shards FROM pawl_store) - 1) n ON CONFLICT DO NOTHING;
COMMIT)";

constexpr Statement kThere{"store_there", "SELECT to_regclass('pawl_store') IS NOT NULL"};
constexpr Statement kStore{"store", "SELECT version, shards FROM pawl_store"};

Result<void> check_version(const Answer& store) {
  if (store.rows() == 1 && store.number(0, 0) == kVersion) return {};
  return fail(Code::invalid, "STORE_FORMAT",
              fmt::format("the tables of pawl in this database have the version {}, but this "
                          "program reads {}: use the program that made them",
                          store.rows() == 1 ? store.number(0, 0) : 0, kVersion));
}

}  // namespace

Result<void> prepare_store(Connection& connection, uint32_t shards) {
  TRY(Answer there, connection.run(kThere));
  if (!there.flag(0, 0)) {
    auto made = connection.run_all(fmt::format(fmt::runtime(kTables), kVersion, shards));
    if (!made) {
      connection.close();  // ends the transaction
      return made;
    }
  }
  TRY(uint32_t stored, store_shards(connection));
  if (stored == shards) return {};
  return fail(Code::invalid, "SHARDS_DIFFER",
              fmt::format("this database holds {} shards, but --shards is {}: the number is "
                          "chosen once. Start with --shards {}, or name another database",
                          stored, shards, stored));
}

Result<uint32_t> store_shards(Connection& connection) {
  TRY(Answer there, connection.run(kThere));
  if (!there.flag(0, 0))
    return fail(Code::not_found, "NO_STORE",
                "this database has no tables of pawl; `pawl serve` with the same --journal makes "
                "them");
  TRY(Answer store, connection.run(kStore));
  TRY_OK(check_version(store));
  return static_cast<uint32_t>(store.number(0, 1));
}

}  // namespace pawl::postgres
