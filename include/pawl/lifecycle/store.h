#pragma once
// Where instances live: the engine in this process, or a server. A manager speaks to one of these;
// applications do not.

#include "pawl/lifecycle/call.h"
#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

// One change as a watcher sees it.
struct any_change {
  instance state;         // of a deletion: id and revision only
  bool snapshot = false;  // part of what was there when the watch began
  bool deleted = false;
  std::uint64_t skipped = 0;  // older changes of this instance that a slow reader did not see
};

class subscription {
 public:
  virtual ~subscription() = default;
  // Waits for the next change. Nothing: stopped, closed, or the deadline has passed.
  virtual std::optional<any_change> next(const call_options& options) = 0;
  virtual void close() = 0;
  // Why it ended by itself. Nothing: it goes on, or it was stopped or closed.
  virtual std::optional<error> failed() { return std::nullopt; }
};

// A write that has been handed in and not yet answered.
class pending_write {
 public:
  virtual ~pending_write() = default;
  virtual result<written> wait(deadline until) = 0;
};

// A whole new state for an instance, valid only on top of the write named by `expected`.
struct replace_request {
  std::string_view workflow, id;
  std::uint64_t expected_stamp = 0;  // of the state it was made from; 0: expected_rev counts
  revision expected_rev = 0;
  std::uint64_t stamp = 0;  // its own
  std::string record;
  std::string to{};  // the phase to move to by a declared edge; empty: no transition
  how why{};
  deadline until{};
};

class store {
 public:
  virtual ~store() = default;

  virtual result<void> put_type(const dynamic_type& type) = 0;
  virtual result<dynamic_type> type(std::string_view workflow) = 0;
  virtual result<std::vector<dynamic_type>> types() = 0;

  virtual result<instance> get(std::string_view workflow, std::string_view id) = 0;
  virtual result<written> create(std::string_view workflow, std::string_view id, std::string record,
                                 deadline until) = 0;
  virtual std::unique_ptr<pending_write> replace(replace_request request) = 0;
  virtual result<written> transition(std::string_view workflow, std::string_view id,
                                     std::string_view to, const how& why, deadline until) = 0;
  virtual result<written> complete(std::string_view workflow, std::string_view id,
                                   std::string_view target, deadline until) = 0;
  virtual result<written> mark_failed(std::string_view workflow, std::string_view id,
                                      std::string_view reason, deadline until) = 0;
  virtual result<written> remove(std::string_view workflow, std::string_view id,
                                 deadline until) = 0;
  virtual result<written> patch(std::string_view workflow, std::string_view id,
                                std::string_view json_object, deadline until) = 0;

  virtual result<any_page> list(std::string_view workflow, const any_query& query) = 0;
  virtual result<history_log> history(std::string_view workflow, std::string_view id) = 0;
  virtual result<std::vector<snapshot>> children(std::string_view id) = 0;
  virtual result<std::vector<snapshot>> ancestors(std::string_view id, std::string& warning) = 0;
  virtual result<snapshot> lookup(std::string_view id) = 0;
  // From `after` on without a snapshot when it is given.
  virtual result<std::unique_ptr<subscription>> watch(std::string_view workflow,
                                                      std::optional<revision> after) = 0;

  virtual result<void> put_rule(std::string_view name, std::string_view json_rule) = 0;
  virtual result<written> run_action(std::string_view id, std::string_view json_action,
                                     const rule_context& context, deadline until) = 0;
  virtual result<std::string> substitute(std::string_view id, std::string_view text,
                                         const rule_context& context) = 0;
};

}  // namespace pawl::lifecycle
