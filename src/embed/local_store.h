#pragma once
// The store of an engine in this process: reads go to its memory, writes are submitted and waited
// for until they are durable.

#include "embed/parts.h"
#include "faces/lifecycle/run/command.h"
#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

class LocalStore final : public store {
 public:
  explicit LocalStore(Engine::Parts& parts);

  result<void> put_type(const dynamic_type& type) override;
  result<dynamic_type> type(std::string_view workflow) override;
  result<std::vector<dynamic_type>> types() override;
  result<instance> get(std::string_view workflow, std::string_view id) override;
  result<written> create(std::string_view workflow, std::string_view id, std::string record,
                         deadline until) override;
  std::unique_ptr<pending_write> replace(replace_request request) override;
  result<written> transition(std::string_view workflow, std::string_view id, std::string_view to,
                             const how& why, deadline until) override;
  result<written> complete(std::string_view workflow, std::string_view id, std::string_view target,
                           deadline until) override;
  result<written> mark_failed(std::string_view workflow, std::string_view id,
                              std::string_view reason, deadline until) override;
  result<written> remove(std::string_view workflow, std::string_view id, deadline until) override;
  result<written> patch(std::string_view workflow, std::string_view id,
                        std::string_view json_object, deadline until) override;
  result<any_page> list(std::string_view workflow, const any_query& query) override;
  result<history_log> history(std::string_view workflow, std::string_view id) override;
  result<std::vector<snapshot>> children(std::string_view id) override;
  result<std::vector<snapshot>> ancestors(std::string_view id, std::string& warning) override;
  result<snapshot> lookup(std::string_view id) override;
  result<std::unique_ptr<subscription>> watch(std::string_view workflow,
                                              std::optional<revision> after) override;
  result<void> put_rule(std::string_view name, std::string_view json_rule) override;
  result<written> run_action(std::string_view id, std::string_view json_action,
                             const rule_context& context, deadline until) override;
  result<std::string> substitute(std::string_view id, std::string_view text,
                                 const rule_context& context) override;

 private:
  std::unique_ptr<pending_write> submit(std::string verb, const Command& command);
  result<written> say(std::string verb, const Command& command, deadline until) {
    return submit(std::move(verb), command)->wait(until);
  }
  const std::string& tenant() const { return parts_.options.tenant; }

  Engine::Parts& parts_;
  Reads reads_;
};

// A part of a rule's context.
js::Value object_or_empty(std::string_view text);
instance to_instance(const FoundInstance& found);
result<snapshot> to_snapshot(const dynamic_type& def, const instance& from);

}  // namespace pawl::lifecycle
