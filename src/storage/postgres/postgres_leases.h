#pragma once
// Leases in the tables pawl_node and pawl_shard. The clock of the database decides when a lease
// has run out, so the clocks of the nodes need not agree.

#include <mutex>

#include "storage/leases.h"
#include "storage/postgres/connection.h"

namespace pawl {

class PostgresLeases final : public Leases {
 public:
  // Makes the tables when there are none, with this number of shards.
  static Result<std::unique_ptr<PostgresLeases>> open(std::string url, uint32_t shards);
  explicit PostgresLeases(std::string url) : connection_(std::move(url), true) {}

  Result<void> join(const std::string& node, const std::string& place, BytesView details,
                    std::chrono::milliseconds lease) override;
  Result<void> renew(std::chrono::milliseconds lease) override;
  Result<void> tell(BytesView details) override;
  Result<std::optional<Claim>> claim(uint32_t shard) override;
  Result<void> give_up(const Claim& claim) override;
  Result<void> leave() override;
  Result<Owners> owners() override;

 private:
  std::mutex mutex_;
  postgres::Connection connection_;
  std::string node_;  // empty: not joined
  int64_t life_ = 0;
};

}  // namespace pawl
