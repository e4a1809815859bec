#pragma once
// The journal of one shard in PostgreSQL. A group of entries is a row, an append is one statement:
// it moves the head of the shard, if epoch and head are the expected ones, and inserts the group.
// When the answer of an append is lost, the same append with the same nonce is sent again until
// it is known what happened.

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "storage/journal.h"
#include "storage/leases.h"
#include "storage/postgres/connection.h"

namespace pawl {

struct PostgresJournalOptions {
  std::string url;
  uint32_t shard = 0;
  std::optional<Claim> claim{};  // without one the journal is read only
  // How long an append tries to reach the server before it fails with JOURNAL_WRITE.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

class PostgresJournal final : public Journal {
 public:
  // Fails with FENCED when the claim is not the newest.
  static Result<std::unique_ptr<PostgresJournal>> open(PostgresJournalOptions options);

  Result<void> append(std::span<const BytesView> entries, Seq expected_last) override;
  Result<void> read(Seq from, const Visit& visit) const override;
  Seq first() const override { return first_.load(std::memory_order_acquire); }
  Seq last() const override { return last_.load(std::memory_order_acquire); }
  // Removes groups that end before `keep_from`. Only with a claim.
  Result<void> trim(Seq keep_from) override;
  uint64_t bytes() const override { return bytes_.load(std::memory_order_relaxed); }
  Result<Seq> refresh() override;
  Result<Seq> wait(Seq after, std::chrono::nanoseconds max) override;
  // Makes an append that waits for the server fail now. Safe from any thread.
  void give_up() override { given_up_.store(true); }

 private:
  explicit PostgresJournal(PostgresJournalOptions options);
  enum class Outcome { appended, fenced };
  struct Group {
    Seq expected = 0, last = 0;
    int64_t nonce = 0;
  };
  Result<Outcome> send(const Group& group);
  Result<Outcome> resolve(const Group& group);
  Result<Outcome> send_until_known(const Group& group);
  Result<void> visit_batch(postgres::Connection& connection, Seq& next, bool& more,
                           const Visit& visit) const;
  std::unexpected<Error> gap(Seq at) const;
  // Takes a connection for reading from the spare ones, or makes one.
  std::unique_ptr<postgres::Connection> reader() const;
  void put_back(std::unique_ptr<postgres::Connection> connection) const;

  const PostgresJournalOptions options_;
  std::mutex append_mutex_;  // guards the members up to failed_
  postgres::Connection writer_;
  Bytes packed_;
  int64_t nonce_;
  std::optional<Error> failed_;
  std::atomic<bool> given_up_{false};
  // Of a follower only refresh() changes last_; first_ only grows.
  std::atomic<Seq> first_{1}, last_{0};
  std::atomic<uint64_t> bytes_{0};
  mutable std::mutex readers_mutex_;
  mutable std::vector<std::unique_ptr<postgres::Connection>> readers_;
};

}  // namespace pawl
