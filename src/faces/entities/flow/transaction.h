#pragma once
// A Transaction is one command being executed: its items, how far the machine has come, and the
// progress of the current item. While a compute member works, the transaction waits in memory as
// the scratch of its turn. Between the two transactions of a COMMIT_BEFORE_DISPATCH processor it
// waits in a cell.

#include <map>
#include <optional>

#include "faces/entities/flow/command.h"
#include "faces/entities/store/store.h"

namespace pawl::entities {

enum class Stage : uint8_t {
  begin,     // load the item
  select,    // select the workflow of a new entity
  guard,     // evaluate the criterion of the requested transition
  process,   // run the processors of the current transition
  scan,      // look for the next automated transition
  finish,    // save the entity
  schedule,  // ask members when the scheduled transitions of the state are due
  deleted,   // a callback has deleted the entity
};

struct StateVisits {
  std::string state;
  int count = 0;
};

struct Progress {
  Stage stage = Stage::begin;
  Entity entity;
  StoredBefore stored_before = StoredBefore::unknown;
  ChangeKind change = ChangeKind::created;
  std::string old_data;   // as stored before; empty for a new entity
  std::string workflow;   // its name; empty when there is none
  size_t candidate = 0;   // in stage `select`: index of the workflow being evaluated
  size_t transition = 0;  // index among the transitions of the state
  size_t processor = 0;   // index among the processors of the transition
  bool named = false;     // the transition was requested by its name or by a timer
  bool due = false;       // the transition was requested by a timer
  bool asked = false;     // a call is open; the next input is its result
  int rounds = 0;         // transitions of the cascade so far
  std::vector<StateVisits> visits;

  // Not encoded. Events recorded before a dispatch are in the trail of the first transaction; the
  // others are complete before the entity is saved.
  std::vector<Event> events;
  ClaimedValues claimed = ClaimedValues::all;  // the unique values of old_data that it holds
  Stage after_schedule = Stage::finish;        // the stage that follows stage `schedule`
  size_t schedule_at = 0;                      // in stage `schedule`: index of the transition
  bool has_schedule = false;                   // the members have been asked
  std::vector<Timing> timings;
  const Workflow* flow = nullptr;  // found by its name after decoding
};

struct Transaction {
  std::shared_ptr<const Command> command;  // shared with the input that brought it parsed
  size_t at = 0;                           // index of the current item
  std::string tenant;
  std::string user;
  std::string roles;
  std::string tx;        // the id stamped on the entities that are written now
  std::string entry_tx;  // the id of the first transaction: in the answer and in the audit trail
  std::vector<std::string> ids;
  json::Array failed;
  std::vector<std::string> warnings;
  Progress progress;

  // Not encoded: valid for this turn only.
  bool joined = false;
  bool settles = false;  // the turn is the receipt of an open effect: it must not fail
  Turn::Mark start{};
  Turn::Mark savepoint{};    // before the open call
  std::string request;       // the id of the open call
  int attempt = 1;           // the attempt that the open call is
  bool redelivered = false;  // the open call is sent again after a restart
  // By entity: the transaction that had written it before this one.
  std::map<std::string, std::string> latest;
  ModelPtr model;
  size_t grown_fields = 0;                   // of the models that were grown, one after the other
  std::shared_ptr<const WorkflowSet> flows;  // shared with the cell's cache
};

// The audit note that this transaction writes for its current entity.
Trail trail_of(const Transaction& transaction, Time now, std::vector<Event> events);

Bytes encode(const Transaction& transaction);
Result<Transaction> decode_transaction(BytesView bytes);

}  // namespace pawl::entities
