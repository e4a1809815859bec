#include "storage/postgres/postgres_journal.h"

#include <fmt/format.h>

#include <random>
#include <thread>

#include "storage/postgres/group.h"

namespace pawl {

using postgres::Answer;
using postgres::Connection;
using postgres::kStoreAway;
using postgres::Statement;
using postgres::Value;

namespace {

// The fence is inside: without a row of the expected epoch and head nothing is inserted. The first
// statement locks the row of the shard, so an append that is still under way ends before.
constexpr Statement kAppend{
    "append",
    "WITH f AS (UPDATE pawl_shard SET head = $4, bytes = bytes + $7::int8 "
    "WHERE shard = $1 AND epoch = $2 AND head = $3 RETURNING 1) "
    "INSERT INTO pawl_group SELECT $1, $3 + 1, $4, $2, $5::int8, $6::bytea FROM f"};
constexpr Statement kState{"state",
                           "SELECT epoch, first, head, bytes FROM pawl_shard WHERE shard = $1"};
// One snapshot of both tables: the group that follows the expected head, if there is one.
constexpr Statement kOutcome{"outcome",
                             "SELECT s.head, g.nonce FROM pawl_shard s LEFT JOIN pawl_group g "
                             "ON g.shard = s.shard AND g.first = $2 WHERE s.shard = $1"};
// Changes nothing. Its commit waits for the synchronous standbys, and so for everything before it.
constexpr Statement kConfirm{"confirm", "UPDATE pawl_shard SET owner = owner WHERE shard = $1"};
// Groups from one entry on, as many as fit into 4 MiB, and at least one. octet_length() of a value
// that is stored outside of its row does not read the value.
constexpr Statement kRead{
    "read",
    "WITH g AS (SELECT first, last, octet_length(bytes) AS size FROM pawl_group WHERE shard = $1 "
    "AND first > coalesce((SELECT max(first) FROM pawl_group WHERE shard = $1 AND first <= $2), 0) "
    "- 1 AND first <= $3 ORDER BY first LIMIT 512), "
    "t AS (SELECT first, sum(size) OVER (ORDER BY first) - size AS before FROM g) "
    "SELECT b.first, b.last, b.bytes FROM t JOIN pawl_group b ON b.shard = $1 AND b.first = "
    "t.first "
    "WHERE t.before < 4194304 ORDER BY b.first"};
constexpr Statement kTrim{
    "trim",
    "WITH f AS (UPDATE pawl_shard SET first = coalesce((SELECT min(first) FROM pawl_group "
    "WHERE shard = $1 AND last >= $3), $3::int8), bytes = bytes - coalesce((SELECT "
    "sum(octet_length(bytes)) FROM pawl_group WHERE shard = $1 AND last < $3), 0) "
    "WHERE shard = $1 AND epoch = $2 RETURNING 1), "
    "d AS (DELETE FROM pawl_group WHERE shard = $1 AND last < $3 AND EXISTS (SELECT 1 FROM f)) "
    "SELECT count(*) FROM f"};

constexpr std::chrono::milliseconds kFirstPause(5), kLongestPause(250);
constexpr std::chrono::microseconds kFirstLook(500), kLongestLook(20'000);
constexpr size_t kSpareReaders = 4;

Value int8(uint64_t v) { return Value::int8(static_cast<int64_t>(v)); }

int64_t random_nonce() {
  std::random_device source;
  return static_cast<int64_t>((static_cast<uint64_t>(source()) << 32) | source());
}

}  // namespace

PostgresJournal::PostgresJournal(PostgresJournalOptions options)
    : options_(std::move(options)), writer_(options_.url, true), nonce_(random_nonce()) {}

Result<std::unique_ptr<PostgresJournal>> PostgresJournal::open(PostgresJournalOptions options) {
  std::unique_ptr<PostgresJournal> journal(new PostgresJournal(std::move(options)));
  const std::optional<Claim>& claim = journal->options_.claim;
  // A follower may read a standby of PostgreSQL; an owner asks the primary.
  std::unique_ptr<Connection> reader = claim ? nullptr : journal->reader();
  Connection& connection = claim ? journal->writer_ : *reader;
  const Value shard = Value::int4(static_cast<int32_t>(journal->options_.shard));
  TRY(Answer state, connection.run(kState, {&shard, 1}));
  if (state.rows() != 1)
    return fail(Code::not_found, "NO_SHARD",
                fmt::format("the database has no shard {}", journal->options_.shard));
  const auto head = static_cast<Seq>(state.number(0, 2));
  if (claim && static_cast<uint64_t>(state.number(0, 0)) != claim->epoch)
    return fail(fenced(head, head));
  journal->first_ = static_cast<Seq>(state.number(0, 1));
  journal->last_ = head;
  journal->bytes_ = static_cast<uint64_t>(state.number(0, 3));
  if (reader) journal->put_back(std::move(reader));
  return journal;
}

Result<void> PostgresJournal::append(std::span<const BytesView> entries, Seq expected_last) {
  std::lock_guard lock(append_mutex_);
  if (failed_) return fail(*failed_);
  if (!options_.claim)
    return fail(Code::unsupported, "READ_ONLY",
                "this node does not own the shard; only the owner appends");
  if (expected_last != last()) return fail(fenced(last(), expected_last));
  if (entries.empty()) return {};
  postgres::pack_group(entries, packed_);
  const Group group{expected_last, expected_last + entries.size(), ++nonce_};
  Result<Outcome> outcome = send_until_known(group);
  if (!outcome) {
    failed_ = Error{Code::unavailable, "JOURNAL_WRITE",
                    fmt::format("the journal of shard {} could not be written: {}. It is unknown "
                                "whether the last group was; open the journal again",
                                options_.shard, outcome.error().message)};
    return fail(*failed_);
  }
  if (*outcome == Outcome::fenced) {
    auto head = refresh();
    failed_ = fenced(head ? *head : expected_last, expected_last);
    return fail(*failed_);
  }
  bytes_.fetch_add(packed_.size(), std::memory_order_relaxed);
  last_.store(group.last, std::memory_order_release);
  return {};
}

Result<PostgresJournal::Outcome> PostgresJournal::send_until_known(const Group& group) {
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    Result<Outcome> outcome = send(group);
    if (outcome || !outcome.error().is(kStoreAway)) return outcome;
    if (given_up_ || std::chrono::steady_clock::now() + pause > deadline) return outcome;
    std::this_thread::sleep_for(pause);
  }
}

Result<PostgresJournal::Outcome> PostgresJournal::send(const Group& group) {
  (void)writer_.take_warning();
  const Value values[] = {Value::int4(static_cast<int32_t>(options_.shard)),
                          int8(options_.claim->epoch),
                          int8(group.expected),
                          int8(group.last),
                          Value::int8(group.nonce),
                          Value::bytes(packed_),
                          int8(packed_.size())};
  TRY(Answer sent, writer_.run(kAppend, values));
  if (sent.changed() == 1 && !writer_.take_warning()) return Outcome::appended;
  return resolve(group);
}

// The group was refused, or its wait for a standby was given up. If it is there with our nonce, an
// earlier attempt has committed. Otherwise it never will: the fence is behind it.
Result<PostgresJournal::Outcome> PostgresJournal::resolve(const Group& group) {
  const Value shard = Value::int4(static_cast<int32_t>(options_.shard));
  const Value values[] = {shard, int8(group.expected + 1)};
  TRY(Answer found, writer_.run(kOutcome, values));
  if (found.rows() != 1 || found.is_null(0, 1) || found.number(0, 1) != group.nonce)
    return Outcome::fenced;
  TRY_OK(writer_.run(kConfirm, {&shard, 1}));
  if (writer_.take_warning())
    return fail(Code::unavailable, kStoreAway,
                "PostgreSQL: the wait for the synchronous standby was given up");
  return Outcome::appended;
}

std::unique_ptr<Connection> PostgresJournal::reader() const {
  std::lock_guard lock(readers_mutex_);
  if (readers_.empty())
    return std::make_unique<Connection>(options_.url, options_.claim.has_value());
  std::unique_ptr<Connection> out = std::move(readers_.back());
  readers_.pop_back();
  return out;
}

void PostgresJournal::put_back(std::unique_ptr<Connection> connection) const {
  std::lock_guard lock(readers_mutex_);
  if (readers_.size() < kSpareReaders) readers_.push_back(std::move(connection));
}

Result<void> PostgresJournal::read(Seq from, const Visit& visit) const {
  if (from < first()) return fail(trimmed(from, first()));
  std::unique_ptr<Connection> connection = reader();
  Result<void> done;
  Seq next = from;
  for (bool more = true; more && done && next <= last();)
    done = visit_batch(*connection, next, more, visit);
  put_back(std::move(connection));
  return done;
}

Result<void> PostgresJournal::visit_batch(Connection& connection, Seq& next, bool& more,
                                          const Visit& visit) const {
  const Seq until = last();
  const Value values[] = {Value::int4(static_cast<int32_t>(options_.shard)), int8(next),
                          int8(until)};
  TRY(Answer batch, connection.run(kRead, values));
  const Seq began = next;
  for (int row = 0; row < batch.rows(); ++row) {
    const auto first = static_cast<Seq>(batch.number(row, 0));
    const auto last = static_cast<Seq>(batch.number(row, 1));
    if (last < next) continue;
    if (first > next) return gap(next);
    auto entries = postgres::unpack_group(batch.bytes(row, 2));
    if (!entries || entries->size() != last - first + 1)
      return fail(
          Code::corrupt, "JOURNAL_CORRUPT",
          fmt::format("the entries {} to {} of shard {} are damaged: {}. {}", first, last,
                      options_.shard, entries ? "their number differs" : entries.error().message,
                      kLossRemedy));
    for (; next <= last && next <= until; ++next) {
      TRY(bool go_on, visit(next, (*entries)[next - first]));
      if (go_on) continue;
      more = false;
      return {};
    }
  }
  if (next == began) return gap(next);
  return {};
}

// Entry `at` should be there and is not: it was trimmed meanwhile, or it is lost.
std::unexpected<Error> PostgresJournal::gap(Seq at) const {
  std::unique_ptr<Connection> connection = reader();
  const Value shard = Value::int4(static_cast<int32_t>(options_.shard));
  auto state = connection->run(kState, {&shard, 1});
  if (!state) return std::unexpected(std::move(state).error());
  const auto first = state->rows() == 1 ? static_cast<Seq>(state->number(0, 1)) : Seq{1};
  put_back(std::move(connection));
  if (at < first) return fail(trimmed(at, first));
  return fail(Code::corrupt, "JOURNAL_CORRUPT",
              fmt::format("entry {} of shard {} is missing in the database. {}", at, options_.shard,
                          kLossRemedy));
}

Result<void> PostgresJournal::trim(Seq keep_from) {
  if (!options_.claim)
    return fail(Code::unsupported, "READ_ONLY",
                "this node does not own the shard; only the owner trims");
  std::unique_ptr<Connection> connection = reader();
  const Value values[] = {Value::int4(static_cast<int32_t>(options_.shard)),
                          int8(options_.claim->epoch), int8(std::min(keep_from, last() + 1))};
  TRY(Answer done, connection->run(kTrim, values));
  if (done.number(0, 0) != 1) return fail(fenced(last(), last()));
  TRY(Answer state, connection->run(kState, {values, 1}));
  first_.store(static_cast<Seq>(state.number(0, 1)), std::memory_order_release);
  bytes_.store(static_cast<uint64_t>(state.number(0, 3)), std::memory_order_relaxed);
  put_back(std::move(connection));
  return {};
}

// Of an owner, last() is what it has acknowledged; the head of the store may be one group ahead,
// or another owner's. So only a follower takes it over.
Result<Seq> PostgresJournal::refresh() {
  std::unique_ptr<Connection> connection = reader();
  const Value shard = Value::int4(static_cast<int32_t>(options_.shard));
  TRY(Answer state, connection->run(kState, {&shard, 1}));
  put_back(std::move(connection));
  if (state.rows() != 1) return fail(Code::not_found, "NO_SHARD", "the shard is gone");
  const auto head = static_cast<Seq>(state.number(0, 2));
  if (options_.claim) return head;
  // A standby of PostgreSQL may be behind what was seen on another connection.
  first_.store(std::max(first(), static_cast<Seq>(state.number(0, 1))));
  last_.store(std::max(last(), head), std::memory_order_release);
  bytes_.store(static_cast<uint64_t>(state.number(0, 3)), std::memory_order_relaxed);
  return last();
}

Result<Seq> PostgresJournal::wait(Seq after, std::chrono::nanoseconds max) {
  const auto deadline = std::chrono::steady_clock::now() + max;
  for (auto pause = kFirstLook;; pause = std::min(pause * 2, kLongestLook)) {
    TRY(Seq head, refresh());
    if (head > after || given_up_ || std::chrono::steady_clock::now() >= deadline) return head;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace pawl
