#pragma once
// A job is one transaction being worked on: the command, how far it has come, and what the machine
// remembers of the item in hand. It waits in the turn between an ask and its receipt, and in a cell
// between the two transactions of a COMMIT_BEFORE_DISPATCH processor.

#include <optional>

#include "faces/entities/flow/command.h"
#include "faces/entities/store/store.h"

namespace pawl::entities {

enum class Stage : uint8_t {
  begin,    // take up the item
  select,   // find the workflow of a new entity
  guard,    // judge the criterion of the transition that was named
  process,  // run the processors of the transition in hand
  scan,     // look for the next automated transition
  finish,   // save it
  time,     // ask members when the scheduled transitions of the state are due
  gone,     // a callback has deleted it
};

struct Progress {
  Stage stage = Stage::begin;
  Entity entity;
  Was was = Was::unknown;
  ChangeKind change = ChangeKind::created;
  std::string old_data;   // as stored before; empty for a new entity
  std::string workflow;   // by name; empty when there is none
  size_t candidate = 0;   // select: the workflow in question
  size_t transition = 0;  // its place among the state's transitions
  size_t processor = 0;
  bool named = false;  // the transition was asked for by name or by the clock
  bool due = false;    // by the clock
  bool asked = false;  // a call is out and its verdict is what comes next
  int rounds = 0;
  std::vector<std::pair<std::string, int>> visits;
  std::vector<Event> events;

  // Not encoded: complete before the entity is saved, done with then.
  Held held = Held::all;        // of the unique values of old_data
  Stage after = Stage::finish;  // of time
  size_t timing = 0;            // the transition in question
  bool timed = false;
  std::vector<Timing> timings;

  const Workflow* flow = nullptr;  // not encoded: found again by name
};

struct Job {
  std::shared_ptr<const Command> command;  // shared with the input that brought it parsed
  size_t at = 0;
  std::string tenant, user, roles;
  std::string tx;        // stamped on what is written now
  std::string entry_tx;  // of the first transaction: in the answer and in the audit trail
  std::vector<std::string> ids;
  json::Array failed;
  std::vector<std::string> warnings;
  Progress p;

  // Not encoded: of this turn only.
  bool joined = false;
  bool settles = false;  // the turn is the receipt of an open effect: it must not fail
  Turn::Mark start{};
  Turn::Mark savepoint{};  // before the call that is out
  std::string request;     // its id
  int attempt = 1;         // which one at it this is
  bool again = false;      // it is after a restart
  ModelPtr model;
  std::shared_ptr<const Flows> flows;  // shared with the cell's cache
};

// What its transaction notes of the entity in hand.
Trail trail_of(const Job& job, Time now, std::vector<Event> events);

Bytes encode(const Job& job);
Result<Job> decode_job(BytesView bytes);

}  // namespace pawl::entities
