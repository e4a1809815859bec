#pragma once
// The values that lifecycle calls take and return: definitions, queries, pages, history events and
// snapshots.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/lifecycle/fields.h"

namespace pawl::lifecycle {

using revision = std::uint64_t;  // number of the write in the journal; grows with every write
using time_point = std::chrono::system_clock::time_point;

// The cause of a change. The set is closed.
enum class source : std::uint8_t { framework, rule, op, component };
inline constexpr std::string_view kSources[] = {"framework", "rule", "operator", "component"};
constexpr std::string_view name_of(source s) { return kSources[static_cast<std::size_t>(s)]; }

// The cause of a write and a note, both for the history.
struct how {
  source triggered = source::component;
  std::string note{};
};

// A workflow type as data: the field list and transitions of a struct, or a definition from a
// server. Instances of a type without a struct are JSON objects.
struct dynamic_type {
  struct field_def {
    std::string name;
    kind k = kind::string;
    tags t = none;
    bool operator==(const field_def&) const = default;
  };
  std::string name;
  // Shown to operators. Neither it nor the prefix decides where an instance is stored.
  std::string bucket;
  std::string key_prefix{};
  std::vector<field_def> fields;
  std::vector<std::pair<std::string, std::vector<std::string>>>
      transitions;                     // in the order declared
  std::vector<std::string> success{};  // terminal phases that complete() prefers

  bool operator==(const dynamic_type&) const = default;
  const field_def* find(std::string_view field_name) const {
    for (const field_def& f : fields)
      if (f.name == field_name) return &f;
    return nullptr;
  }
  const field_def* tagged(tags one) const {
    for (const field_def& f : fields)
      if (has(f.t, one)) return &f;
    return nullptr;
  }
  const std::vector<std::string>* targets(std::string_view of_phase) const {
    for (const auto& [name, to] : transitions)
      if (name == of_phase) return &to;
    return nullptr;
  }
  bool declares(std::string_view phase_name) const { return targets(phase_name) != nullptr; }
  // An undeclared phase counts as terminal, as in transitions_table.
  bool is_terminal(std::string_view phase_name) const {
    const auto* to = targets(phase_name);
    return !to || to->empty();
  }
  bool allows(std::string_view from_phase, std::string_view to_phase) const {
    const auto* to = targets(from_phase);
    return to && std::find(to->begin(), to->end(), to_phase) != to->end();
  }
  std::vector<std::string> phases(bool terminal_only = false) const {
    std::vector<std::string> out;
    for (const auto& [name, to] : transitions)
      if (!terminal_only || to.empty()) out.push_back(name);
    std::sort(out.begin(), out.end());
    return out;
  }
  std::vector<std::string> operator_writable_fields() const {
    std::vector<std::string> out;
    for (const field_def& f : fields)
      if (has(f.t, operator_writable)) out.push_back(f.name);
    std::sort(out.begin(), out.end());
    return out;
  }
  // The id and the phase are read-only for operators and rules even without the tag.
  bool is_readonly(std::string_view field_name) const {
    const field_def* f = find(field_name);
    return f && (has(f->t, readonly) || has(f->t, id) || has(f->t, lifecycle::phase));
  }
};

// The definition of a struct, read from its static members.
template <participant T>
dynamic_type describe() {
  dynamic_type out;
  out.name = std::string_view(T::workflow);
  out.bucket = std::string_view(T::bucket);
  if constexpr (requires {
                  { T::kv_key(std::string_view()) } -> std::convertible_to<std::string>;
                })
    out.key_prefix = T::kv_key(std::string_view());
  for (const auto& row : T::fields.rows())
    out.fields.push_back({std::string(row.name), row.k, row.t});
  for (const auto& line : T::transitions.lines()) {
    auto& to =
        out.transitions.emplace_back(std::string(line.phase), std::vector<std::string>()).second;
    for (std::size_t i = line.first; i < line.last; ++i)
      to.emplace_back(T::transitions.target(i));
    if (line.success) out.success.emplace_back(line.phase);
  }
  return out;
}

// One entry of an instance's history.
struct transition_event {
  std::string from;  // empty for the creation
  std::string to;    // "<deleted>" for a removal
  time_point at;
  source triggered = source::framework;
  std::string note;
  std::string caller;
  revision rev = 0;
};
inline constexpr std::string_view kDeleted = "<deleted>";

// Oldest first. `truncated` says that older events exist and are no longer kept.
struct history_log {
  std::vector<transition_event> events;
  bool truncated = false;
  auto begin() const { return events.begin(); }
  auto end() const { return events.end(); }
  std::size_t size() const { return events.size(); }
  const transition_event& operator[](std::size_t i) const { return events[i]; }
};

// An instance as it is stored. The views are valid as long as `keep` lives.
struct instance {
  std::shared_ptr<const void> keep;
  std::string_view id, phase, parent, record;
  revision rev = 0;
  std::uint64_t stamp = 0;  // names the write that made this state, durable or not
  std::int64_t created_ns = 0, updated_ns = 0;
};

// An instance whose type is not known at compile time.
struct snapshot {
  std::string workflow, id, phase;
  bool terminal = false;
  revision rev = 0;
  std::string json;    // the state as the operator API shows it
  std::string record;  // and as it is stored
  template <participant T>
  result<T> as() const {
    if (workflow != std::string_view(T::workflow))
      return fail(errc::type_mismatch,
                  "'" + id + "' is a " + workflow + ", not a " + std::string(T::workflow));
    return from_record<T>(record);
  }
};

// A query for list(). Filters apply first, then the offset, then the limit. An offset or limit of
// zero or less means none.
struct any_query {
  std::string phase{};
  bool active = false;  // leaves terminal instances out
  std::vector<std::pair<std::string, value>> match{};
  std::optional<time_point> updated_after{};
  std::int64_t limit = 0, offset = 0;
  std::string cursor{};  // of the previous page; the list goes on after it
};

template <participant T>
struct query : any_query {
  // The member names the field, and the value has the type of the member.
  template <auto Member>
  query& where(member_type<Member> v) {
    static_assert(std::remove_cvref_t<decltype(T::fields)>::template lists<Member>(),
                  "pawl lifecycle: this member is not in the struct's lc::fields list");
    match.emplace_back(std::string(T::fields.template name<Member>()), value(std::move(v)));
    return *this;
  }
  query& where(std::string name, value v) {
    match.emplace_back(std::move(name), std::move(v));
    return *this;
  }
};

struct any_page {
  std::vector<instance> items;
  std::size_t skipped = 0;  // instances that could not be read
  std::string cursor;       // empty: this was the last page
};

template <class T>
struct page {
  std::vector<T> states;
  std::vector<revision> revisions;  // of each state
  std::size_t skipped = 0;
  std::string cursor;
  auto begin() const { return states.begin(); }
  auto end() const { return states.end(); }
  std::size_t size() const { return states.size(); }
  bool empty() const { return states.empty(); }
  const T& operator[](std::size_t i) const { return states[i]; }
};

// The outcome of a write.
struct written {
  revision rev = 0;
  std::string phase{};
  std::string warning{};
};

// The variables of a rule, besides those of the entity itself. Each is a JSON object as text.
struct rule_context {
  std::string message = "{}";   // $message.path
  std::string caller = "{}";    // $caller.id, $caller.role, $caller.org
  std::string schedule = "{}";  // $schedule.*
  std::string state = "{}";     // $state.iteration, $state.max_iterations
};

}  // namespace pawl::lifecycle
