#pragma once
// One connection to PostgreSQL through libpq: prepared statements with binary parameters and
// results. A connection is used by one thread at a time; it connects when it is first used and
// again after it was lost.

#include <libpq-fe.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace pawl::postgres {

// The statement did not run, or it is unknown whether it did: the connection was lost, or the
// server refused for a reason that may pass. Send it again, if that is harmless.
inline constexpr Reason kStoreAway{"STORE_AWAY"};
// The server understood the statement and refuses it for good.
inline constexpr Reason kStoreRefused{"STORE_REFUSED"};

// A parameter of a statement in PostgreSQL's binary form.
class Value {
 public:
  static Value int4(int32_t v);
  static Value int8(int64_t v);
  static Value text(std::string_view v) { return Value(v); }
  static Value bytes(BytesView v) { return Value(v); }  // not copied
  BytesView view() const { return held_.empty() ? view_ : BytesView(held_); }

 private:
  explicit Value(BytesView v) : view_(v) {}
  std::string held_;  // of a number; text and bytes belong to the caller
  BytesView view_;
};

// The rows that a statement returned.
class Answer {
 public:
  explicit Answer(PGresult* result) : result_(result, PQclear) {}
  int rows() const { return PQntuples(result_.get()); }
  // The number of rows that an UPDATE, INSERT or DELETE changed.
  int64_t changed() const;
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  int64_t number(int row, int column) const;  // of an int4 or int8
  bool flag(int row, int column) const;
  BytesView bytes(int row, int column) const;  // valid as long as the answer
  const PGresult* get() const { return result_.get(); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

// A statement, prepared once on each connection. `name` is unique among all statements.
struct Statement {
  const char* name;
  const char* sql;
};

class Connection {
 public:
  // `url` is a connection string of libpq: postgres://user@host,host2/db?options. A writer
  // connects only to a server that accepts writes; with several hosts libpq tries each.
  Connection(std::string url, bool writer);
  ~Connection();
  Connection(const Connection&) = delete;

  Result<Answer> run(const Statement& statement, std::span<const Value> values = {});
  // Statements without parameters, separated by semicolons, as one transaction.
  Result<void> run_all(const std::string& sql);
  void close();  // the next statement connects again
  // True when the server has sent a warning since the last call. After a commit it may mean that
  // the wait for a synchronous standby was given up.
  bool take_warning() { return std::exchange(warned_, false); }

 private:
  Result<void> connect();
  Result<void> prepare(const Statement& statement);
  std::unexpected<Error> failed(const PGresult* result);

  const std::string url_;
  const bool writer_;
  PGconn* connection_ = nullptr;
  std::vector<const char*> prepared_;
  bool warned_ = false;
};

}  // namespace pawl::postgres
