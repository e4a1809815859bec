#pragma once
// The manager is what an application calls: durable instances of its structs, checked transitions,
// history, watches, links between instances, and operator writes, which are denied by default.
// Thread-safe.

#include <iterator>

#include "pawl/engine.h"
#include "pawl/lifecycle/watch.h"

namespace pawl::lifecycle {

struct manager_options {
  warn_function log{};  // warnings; default: standard error
};

struct remote_options {
  // Bearer token of a caller with the role `program`; empty for a server without authentication.
  std::string token{};
  warn_function log{};
  // Time limit of a call without a deadline.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  // PEM file with the trusted certificate authorities, for https. When empty, those of the system.
  std::string ca_file{};
};

class manager {
 public:
  manager();  // with an engine of its own, in memory
  explicit manager(Engine& engine, manager_options options = {});
  explicit manager(std::shared_ptr<store> on, manager_options options = {});
  // Connects to a server: "http://127.0.0.1:8080" or "https://pawl.example:8443".
  static result<manager> connect(std::string_view address, remote_options options = {});
  ~manager();
  manager(manager&&) noexcept;
  manager& operator=(manager&&) noexcept;

  // Types. Register each type once with a manager before its first use.
  template <class T>
  result<void> register_type() {
    static_assert(participant<T>,
                  "pawl lifecycle: the struct is not a participant: it must be copyable and "
                  "default-constructible and have "
                  "static constexpr members `workflow`, `bucket`, `fields = lc::fields(...)` and "
                  "`transitions = lc::table(...)`");
    return register_type(describe<T>());
  }
  result<void> register_type(const dynamic_type& type);
  result<dynamic_type> definition(std::string_view workflow) const;
  result<std::vector<dynamic_type>> definitions() const;  // sorted by name
  // Both fail with field_not_operator_writable when operators and rules may not set the field.
  result<void> rule_writable(std::string_view workflow, std::string_view field) const;
  result<kind> field_type(std::string_view workflow, std::string_view field) const;

  // Create and read.
  template <participant T>
  result<revision> create(const T& state, const call_options& options = {}) {
    return create_record(name<T>(), id_of(state), to_record(state), options);
  }
  template <participant T>
  result<T> get(std::string_view id) const {
    auto found = get_record(name<T>(), id);
    if (!found) return lifecycle::fail(found.error());
    return from_record<T>(found->record);
  }
  // The state and its revision, for compare_and_swap.
  template <participant T>
  result<std::pair<T, revision>> get_with_revision(std::string_view id) const {
    auto found = get_record(name<T>(), id);
    if (!found) return lifecycle::fail(found.error());
    auto state = from_record<T>(found->record);
    if (!state) return lifecycle::fail(state.error());
    return std::pair<T, revision>(*std::move(state), found->rev);
  }
  template <participant T>
  result<revision> remove(std::string_view id, const call_options& options = {}) {
    return remove_record(name<T>(), id, options);
  }

  // Writes. The mutator, void f(T&) or result<void> f(T&), changes a copy. Writers of one instance
  // queue, so they do not conflict with each other. The mutator runs again when another process or
  // manager wrote first.
  template <participant T, class F>
  result<revision> update(std::string_view id, F&& f, const call_options& options = {}) {
    return write(name<T>(), id, {}, {}, mutator<T>(f), 0, options);
  }
  // The same by compare-and-swap without the queue. Fails with update_retries_exhausted after five
  // tries.
  template <participant T, class F>
  result<revision> update_cas(std::string_view id, F&& f, const call_options& options = {}) {
    return write(name<T>(), id, {}, {}, mutator<T>(f), kTries, options);
  }
  // Writes the whole state if `expected` is still the newest revision; fails with `conflict` if
  // not.
  template <participant T>
  result<revision> compare_and_swap(const T& state, revision expected,
                                    const call_options& options = {}) {
    return swap_record(name<T>(), id_of(state), to_record(state), expected, options);
  }
  template <participant T>
  result<revision> transition(std::string_view id, std::string_view to, how why = {},
                              const call_options& options = {}) {
    return transition_record(name<T>(), id, to, why, options);
  }
  // The mutator's changes and the transition are one write. `to` overrides the phase that the
  // mutator sets.
  template <participant T, class F>
  result<revision> transition_with(std::string_view id, std::string_view to, how why, F&& f,
                                   const call_options& options = {}) {
    return write(name<T>(), id, to, std::move(why), mutator<T>(f), 0, options);
  }
  // Moves to the first terminal phase that the current phase leads to, preferably one marked as
  // success, or to `target`, which must be terminal.
  template <participant T>
  result<revision> complete(std::string_view id, std::string_view target = {},
                            const call_options& options = {}) {
    return complete_record(name<T>(), id, target, options);
  }
  template <participant T>
  result<revision> fail(std::string_view id, std::string_view reason,
                        const call_options& options = {}) {
    return fail_record(name<T>(), id, reason, options);
  }
  // Sets the fields of a JSON object; each must be operator_writable. null sets the zero value.
  template <participant T>
  result<revision> operator_patch(std::string_view id, std::string_view json_object,
                                  const call_options& options = {}) {
    return patch_record(name<T>(), id, json_object, options);
  }

  // Reads of many instances.
  template <participant T>
  result<page<T>> list(const query<T>& ask = {}) const {
    auto found = list_records(name<T>(), ask);
    if (!found) return lifecycle::fail(found.error());
    page<T> out;
    out.skipped = found->skipped;
    out.cursor = std::move(found->cursor);
    out.states.reserve(found->items.size());
    for (const instance& item : found->items) {
      auto state = from_record<T>(item.record);
      if (!state) {
        ++out.skipped;
        warn("list skips '" + std::string(item.id) + "': " + state.error().message());
        continue;
      }
      out.states.push_back(*std::move(state));
      out.revisions.push_back(item.rev);
    }
    return out;
  }
  template <participant T>
  result<history_log> history(std::string_view id) const {
    return history_of(name<T>(), id);
  }
  // Reports the existing instances, then each change. With `after`, only the changes after that
  // revision.
  template <participant T>
  result<watch_stream<T>> watch(std::optional<revision> after = {}) const {
    auto from = watch_records(name<T>(), after);
    if (!from) return lifecycle::fail(from.error());
    return watch_stream<T>(std::shared_ptr<subscription>(*std::move(from)), log_);
  }
  // Calls f for every change until the stop token is used or the deadline passes.
  template <participant T, class F>
  requires std::invocable < F&, const change<T>
  & > result<void> watch(F&& f, const call_options& options) const {
    auto from = watch<T>();
    if (!from) return lifecycle::fail(from.error());
    while (auto c = from->next(options))
      f(*c);
    if (auto why = from->failed()) return lifecycle::fail(*std::move(why));
    return {};
  }

  // Links and lookups, over all types.
  result<std::vector<snapshot>> children(std::string_view id) const;
  result<std::vector<snapshot>> ancestors(std::string_view id) const;  // parent first, root last
  result<snapshot> lookup(std::string_view id) const;

  // The same calls by name and with JSON, for types that are not C++ structs.
  result<revision> create_json(std::string_view workflow, std::string_view id,
                               std::string_view json_object, const call_options& options = {});
  result<snapshot> get_json(std::string_view workflow, std::string_view id) const;
  result<std::vector<snapshot>> list_json(std::string_view workflow,
                                          const any_query& ask = {}) const;
  using record_mutator = std::function<result<void>(std::string_view before, std::string& after)>;
  result<revision> update_record(std::string_view workflow, std::string_view id,
                                 const record_mutator& f, const call_options& options = {});
  result<revision> transition(std::string_view workflow, std::string_view id, std::string_view to,
                              how why = {}, const call_options& options = {});
  result<revision> complete(std::string_view workflow, std::string_view id,
                            std::string_view target = {}, const call_options& options = {});
  result<revision> fail(std::string_view workflow, std::string_view id, std::string_view reason,
                        const call_options& options = {});
  result<revision> remove(std::string_view workflow, std::string_view id,
                          const call_options& options = {});
  result<revision> operator_patch(std::string_view workflow, std::string_view id,
                                  std::string_view json_object, const call_options& options = {});
  result<history_log> history(std::string_view workflow, std::string_view id) const {
    return history_of(workflow, id);
  }

  // Rules. A stored rule fires by itself; run_action runs one action now.
  result<void> put_rule(std::string_view rule_name, std::string_view json_rule);
  result<revision> run_action(std::string_view id, std::string_view json_action,
                              const rule_context& context = {}, const call_options& options = {});
  result<std::string> substitute(std::string_view id, std::string_view text,
                                 const rule_context& context = {}) const;

 private:
  static constexpr int kTries = 5;
  struct core;

  template <class T>
  static std::string_view name() {
    return std::string_view(T::workflow);
  }
  template <class T>
  static std::string id_of(const T& state) {
    // The record names its fields, so the one with the tag `id` is read back from there.
    std::string bytes = to_record(state);
    record::walk at(bytes);
    while (at.next())
      if (at.name == T::fields.name_of(lifecycle::id)) return std::string(at.as_text());
    return {};
  }
  template <class T, class F>
  static record_mutator mutator(F& f) {
    static_assert(std::invocable<F&, T&>,
                  "pawl lifecycle: a mutator takes the struct by reference: void f(T&) or "
                  "result<void> f(T&)");
    static_assert(std::is_void_v<std::invoke_result_t<F&, T&>> ||
                      std::convertible_to<std::invoke_result_t<F&, T&>, result<void>>,
                  "pawl lifecycle: a mutator returns nothing or result<void>");
    // An empty std::function or a null pointer gives an empty mutator, which write() refuses or
    // treats as a plain transition.
    if constexpr (requires { f == nullptr; })
      if (f == nullptr) return {};
    return [&f](std::string_view before, std::string& after) -> result<void> {
      auto state = from_record<T>(before);
      if (!state) return lifecycle::fail(state.error());
      if constexpr (std::is_void_v<std::invoke_result_t<F&, T&>>)
        f(*state);
      else if (result<void> said = f(*state); !said)
        return said;
      after = to_record(*state, before);
      return {};
    };
  }

  void warn(std::string_view text) const { (*log_)(text); }
  result<revision> create_record(std::string_view workflow, std::string_view id, std::string bytes,
                                 const call_options& options);
  result<instance> get_record(std::string_view workflow, std::string_view id) const;
  result<revision> remove_record(std::string_view workflow, std::string_view id,
                                 const call_options& options);
  // With `tries` 0, the write queues with the other writers and never gives up on a conflict.
  result<revision> write(std::string_view workflow, std::string_view id, std::string_view to,
                         how why, const record_mutator& f, int tries, const call_options& options);
  result<revision> swap_record(std::string_view workflow, std::string_view id, std::string bytes,
                               revision expected, const call_options& options);
  result<revision> transition_record(std::string_view workflow, std::string_view id,
                                     std::string_view to, const how& why,
                                     const call_options& options);
  result<revision> complete_record(std::string_view workflow, std::string_view id,
                                   std::string_view target, const call_options& options);
  result<revision> fail_record(std::string_view workflow, std::string_view id,
                               std::string_view reason, const call_options& options);
  result<revision> patch_record(std::string_view workflow, std::string_view id,
                                std::string_view json_object, const call_options& options);
  result<any_page> list_records(std::string_view workflow, const any_query& ask) const;
  result<history_log> history_of(std::string_view workflow, std::string_view id) const;
  result<std::unique_ptr<subscription>> watch_records(std::string_view workflow,
                                                      std::optional<revision> after) const;

  std::shared_ptr<const warn_function> log_;
  std::unique_ptr<core> core_;
};

}  // namespace pawl::lifecycle
