#pragma once
// The tables that hold the journals of a cluster in PostgreSQL: docs/formats/postgres.md.

#include "storage/postgres/connection.h"

namespace pawl::postgres {

// Makes the tables when they do not exist, with this number of shards. Fails with SHARDS_DIFFER
// when they exist with another number, and with STORE_FORMAT when a newer version made them.
// Several nodes may call it at the same time.
Result<void> prepare_store(Connection& connection, uint32_t shards);
// The number of shards; `not_found` when there are no tables.
Result<uint32_t> store_shards(Connection& connection);

}  // namespace pawl::postgres
