#include "storage/postgres/connection.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::postgres {
namespace {

// Durability and isolation must not depend on the settings of the database or of the role:
// - `off` and `local` would acknowledge what a crash or a failover loses;
// - a timeout of statements could end the wait for a synchronous standby, after the commit.
constexpr const char* kSession =
    "SELECT CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') "
    "THEN set_config('synchronous_commit', 'on', false) END; "
    "SET statement_timeout = 0; SET lock_timeout = 0; "
    "SET idle_in_transaction_session_timeout = 0; "
    "SET default_transaction_isolation = 'read committed'";

// Reasons that may pass, by SQLSTATE or its class: lost connections, servers that start or stop,
// full disks and other resources, deadlocks, and a primary that has become a standby.
bool may_pass(std::string_view state) {
  if (state.empty()) return true;
  for (std::string_view kind : {"08", "53", "57", "58", "40"})
    if (state.starts_with(kind)) return true;
  return state == "25006";
}

// The first line of a message of libpq, without the newline.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

// Statements may wait for a commit that waits for a standby, so there is no limit on their time;
// a peer that vanished is noticed by keepalives and by unacknowledged data instead.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"connect_timeout", "5"},    {"keepalives_idle", "5"},      {"keepalives_interval", "2"},
    {"keepalives_count", "3"},   {"tcp_user_timeout", "10000"}, {"application_name", "pawl"},
    {"client_encoding", "UTF8"},
};

}  // namespace

Value Value::int4(int32_t v) {
  Value out{BytesView()};
  const uint32_t big = htobe32(static_cast<uint32_t>(v));
  out.held_.assign(reinterpret_cast<const char*>(&big), sizeof big);
  return out;
}

Value Value::int8(int64_t v) {
  Value out{BytesView()};
  const uint64_t big = htobe64(static_cast<uint64_t>(v));
  out.held_.assign(reinterpret_cast<const char*>(&big), sizeof big);
  return out;
}

int64_t Answer::changed() const {
  const std::string_view text = PQcmdTuples(result_.get());
  int64_t count = 0;
  for (char c : text)
    count = count * 10 + (c - '0');
  return count;
}

int64_t Answer::number(int row, int column) const {
  const BytesView raw = bytes(row, column);
  if (raw.size() == 4) {
    uint32_t big;
    std::memcpy(&big, raw.data(), sizeof big);
    return static_cast<int32_t>(be32toh(big));
  }
  CHECK(raw.size() == 8);
  uint64_t big;
  std::memcpy(&big, raw.data(), sizeof big);
  return static_cast<int64_t>(be64toh(big));
}

bool Answer::flag(int row, int column) const {
  const BytesView raw = bytes(row, column);
  return !raw.empty() && raw[0] != 0;
}

BytesView Answer::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

Connection::Connection(std::string url, bool writer) : url_(std::move(url)), writer_(writer) {}

Connection::~Connection() { close(); }

void Connection::close() {
  if (connection_) PQfinish(connection_);
  connection_ = nullptr;
  prepared_.clear();
}

Result<void> Connection::connect() {
  if (connection_ && PQstatus(connection_) == CONNECTION_OK) return {};
  close();
  std::vector<const char*> names, values;
  // With expand_dbname the url goes first, and what follows wins; so defaults stand before it.
  for (const auto& [name, value] : kDefaults) {
    names.push_back(name);
    values.push_back(value);
  }
  names.push_back("dbname");
  values.push_back(url_.c_str());
  if (writer_) {
    names.push_back("target_session_attrs");
    values.push_back("read-write");
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  connection_ = PQconnectdbParams(names.data(), values.data(), 1);
  if (!connection_ || PQstatus(connection_) != CONNECTION_OK) return failed(nullptr);
  PQsetNoticeReceiver(
      connection_,
      [](void* self, const PGresult* notice) {
        const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        if (severity && std::string_view(severity) == "WARNING")
          static_cast<Connection*>(self)->warned_ = true;
      },
      this);
  return run_all(kSession);
}

std::unexpected<Error> Connection::failed(const PGresult* result) {
  const char* state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const bool lost = !connection_ || PQstatus(connection_) != CONNECTION_OK;
  const bool passes = lost || may_pass(state ? state : "");
  const std::string says =
      first_line(result ? PQresultErrorMessage(result)
                        : (connection_ ? PQerrorMessage(connection_) : "out of memory"));
  // A server that has become a standby keeps its connections: look for the primary again.
  if (lost || (state && std::string_view(state) == "25006")) close();
  auto error = fail(passes ? Code::unavailable : Code::invalid, passes ? kStoreAway : kStoreRefused,
                    "PostgreSQL: " + says);
  error.error().retryable = passes;
  return error;
}

Result<void> Connection::run_all(const std::string& sql) {
  if (!connection_) TRY_OK(connect());
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_, sql.c_str()), PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  return failed(result.get());
}

Result<void> Connection::prepare(const Statement& statement) {
  if (std::ranges::find(prepared_, statement.name) != prepared_.end()) return {};
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(
      PQprepare(connection_, statement.name, statement.sql, 0, nullptr), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) return failed(result.get());
  prepared_.push_back(statement.name);
  return {};
}

Result<Answer> Connection::run(const Statement& statement, std::span<const Value> values) {
  TRY_OK(connect());
  TRY_OK(prepare(statement));
  std::vector<const char*> data;
  std::vector<int> sizes, formats(values.size(), 1);
  for (const Value& value : values) {
    data.push_back(value.view().empty() ? "" : value.view().data());
    sizes.push_back(static_cast<int>(value.view().size()));
  }
  Answer answer(PQexecPrepared(connection_, statement.name, static_cast<int>(values.size()),
                               data.data(), sizes.data(), formats.data(), 1));
  const ExecStatusType status = PQresultStatus(answer.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return answer;
  return failed(answer.get());
}

}  // namespace pawl::postgres
