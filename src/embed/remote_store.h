#pragma once
// The store of a server, over its HTTP API: the same calls where the wire allows. Updates are
// compare-and-swap by revision; a conflict makes the manager run the mutator again.

#include <shared_mutex>

#include "faces/lifecycle/type/workflow_type.h"
#include "net/http_client.h"
#include "pawl/lifecycle/manager.h"

namespace pawl::lifecycle {

class RemoteStore final : public store {
 public:
  static result<std::shared_ptr<store>> connect(std::string_view address,
                                                const remote_options& options);
  explicit RemoteStore(net::HttpClientOptions server)
      : http_(std::make_shared<net::HttpClient>(std::move(server))) {}

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
  // Returns a 2xx answer, or the error that another status carries.
  result<net::HttpAnswer> ask(result<net::HttpRequest> what, deadline until = {});
  // The same with the answer's JSON. `whole`: the answer itself, for its headers.
  result<js::Value> ask_json(result<net::HttpRequest> what, net::HttpAnswer* whole = nullptr,
                             deadline until = {});
  result<written> write(result<net::HttpRequest> what, deadline until);
  result<WorkflowTypePtr> known(std::string_view workflow);
  result<snapshot> linked(const js::Value& from);

  std::shared_ptr<net::HttpClient> http_;  // shared with watches, which may outlive the store
  std::shared_mutex types_mutex_;
  std::map<std::string, WorkflowTypePtr, std::less<>> types_;
};

// The error that an answer of the server carries.
error error_of(int status, std::string_view body);
// A state as JSON to an instance, and a record to JSON.
result<instance> parse_state(const WorkflowType& type, const js::Value& state, revision rev);

}  // namespace pawl::lifecycle
