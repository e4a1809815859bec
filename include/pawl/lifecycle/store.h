#pragma once
// A store keeps instances: in the engine of this process, or on a server. Managers use stores;
// applications do not.

#include "pawl/lifecycle/call.h"
#include "pawl/lifecycle/types.h"

namespace pawl::lifecycle {

// One change that a watch reports.
struct any_change {
  instance state;         // for a deletion, id and revision only
  bool snapshot = false;  // the instance existed when the watch began
  bool deleted = false;
  std::uint64_t skipped = 0;  // older changes of this instance that a slow reader did not see
};

class subscription {
 public:
  virtual ~subscription() = default;
  // Waits for the next change. Returns nothing when stopped or closed, or when the deadline passes.
  virtual std::optional<any_change> next(const call_options& options) = 0;
  virtual void close() = 0;
  // Why the subscription ended by itself; nothing while it goes on or after it was closed.
  virtual std::optional<error> failed() { return std::nullopt; }
};

// A write that was submitted and is not answered yet.
class pending_write {
 public:
  virtual ~pending_write() = default;
  // Waits for the answer. Call it once. At the deadline it fails with `deadline_exceeded`, and the
  // write may still happen.
  virtual result<written> wait(deadline until) = 0;
};

// A new state of an instance, to be written only on top of the expected write.
struct replace_request {
  std::string_view workflow, id;
  std::uint64_t expected_stamp = 0;  // of the state it was made from; 0: expected_rev is compared
  revision expected_rev = 0;
  std::uint64_t stamp = 0;  // of this write
  std::string record;
  std::string to{};  // the phase to move to by a declared transition; empty: none
  how why{};
  deadline until{};
};

// Thread-safe. Each write returns when it is durable, or fails.
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
  // With `after`, reports the changes after that revision and no snapshot.
  virtual result<std::unique_ptr<subscription>> watch(std::string_view workflow,
                                                      std::optional<revision> after) = 0;

  virtual result<void> put_rule(std::string_view name, std::string_view json_rule) = 0;
  virtual result<written> run_action(std::string_view id, std::string_view json_action,
                                     const rule_context& context, deadline until) = 0;
  virtual result<std::string> substitute(std::string_view id, std::string_view text,
                                         const rule_context& context) = 0;
};

}  // namespace pawl::lifecycle
