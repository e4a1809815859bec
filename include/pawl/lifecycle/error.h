#pragma once
// How a lifecycle call fails: an error code from one closed list, and a text with the details. The
// codes have the names that the HTTP API uses in its answers.

#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "pawl/error.h"

namespace pawl::lifecycle {

enum class errc {
  workflow_not_registered = 1,  // no type of that name here
  workflow_already_registered,
  entity_not_found,
  invalid_transition,  // the table has no such edge, or no such phase
  terminal_phase,      // the instance is in a phase that it cannot leave
  missing_id_field,
  missing_phase_field,
  field_not_operator_writable,
  invalid_transitions_table,
  update_retries_exhausted,  // update_cas(): another writer was first five times in a row
  already_exists,
  unknown_field,
  type_mismatch,        // a value does not fit the kind of its field
  reason_required,      // fail() without a reason
  rejected,             // the mutator returned an error, which is the cause
  bad_id,               // a malformed id, or a mutator changed the id
  corrupt_value,        // stored bytes do not fit the type any more
  cancelled,            // the stop token was used before anything was written
  storage,              // the journal, the rows or the connection
  invalid_definition,   // contradicting tags, duplicate names, unknown words
  definition_differs,   // the name is taken by another definition
  mutator_required,     // update() with an empty function
  reentrant_update,     // a mutator wrote the instance that it is mutating
  ambiguous_id,         // instances of several types have the id
  parent_cycle,         // following the parents leads back to the instance
  unresolved_template,  // a rule text has a token that nothing resolves
  invalid_rule,
  conflict,           // compare_and_swap: the revision is not the newest
  denied,             // the caller lacks the role
  revision_gone,      // the journal no longer holds the revision
  unsupported,        // not available here
  deadline_exceeded,  // the caller stopped waiting; a submitted write may still happen
};

// One row for each code: its name, the words that a message begins with, the HTTP status.
struct errc_row {
  errc code;
  std::string_view name;
  std::string_view words;
  int status;
};

// The words are part of the HTTP API: a remote manager finds the code again by them, so they must
// not change.
inline constexpr std::array kErrors{
    errc_row{errc::workflow_not_registered, "workflow_not_registered", "workflow not registered",
             404},
    errc_row{errc::workflow_already_registered, "workflow_already_registered",
             "workflow already registered", 409},
    errc_row{errc::entity_not_found, "entity_not_found", "entity not found", 404},
    errc_row{errc::invalid_transition, "invalid_transition", "invalid transition", 400},
    errc_row{errc::terminal_phase, "terminal_phase", "entity is in terminal phase", 400},
    errc_row{errc::missing_id_field, "missing_id_field", "missing_id_field: no field is tagged id",
             400},
    errc_row{errc::missing_phase_field, "missing_phase_field",
             "missing_phase_field: no field is tagged phase", 400},
    errc_row{errc::field_not_operator_writable, "field_not_operator_writable",
             "field is not operator_writable", 400},
    errc_row{errc::invalid_transitions_table, "invalid_transitions_table",
             "invalid_transitions_table: invalid transitions table", 400},
    errc_row{errc::update_retries_exhausted, "update_retries_exhausted",
             "update retry budget exhausted", 409},
    errc_row{errc::already_exists, "already_exists", "entity already exists", 409},
    errc_row{errc::unknown_field, "unknown_field", "unknown field", 400},
    errc_row{errc::type_mismatch, "type_mismatch", "value does not fit the field", 400},
    errc_row{errc::reason_required, "reason_required", "a reason is required", 400},
    errc_row{errc::rejected, "rejected", "rejected by the mutator", 400},
    errc_row{errc::bad_id, "bad_id", "bad id", 400},
    errc_row{errc::corrupt_value, "corrupt_value", "stored value cannot be read", 500},
    errc_row{errc::cancelled, "cancelled", "cancelled", 503},
    errc_row{errc::storage, "storage", "storage", 503},
    errc_row{errc::invalid_definition, "invalid_definition", "invalid definition", 400},
    errc_row{errc::definition_differs, "definition_differs",
             "workflow is registered with another definition", 409},
    errc_row{errc::mutator_required, "mutator_required", "a mutator is required", 400},
    errc_row{errc::reentrant_update, "reentrant_update",
             "the mutator wrote the instance it mutates", 400},
    errc_row{errc::ambiguous_id, "ambiguous_id", "the id lives in several workflows", 409},
    errc_row{errc::parent_cycle, "parent_cycle", "the parents form a cycle", 409},
    errc_row{errc::unresolved_template, "unresolved_template", "unresolved template", 400},
    errc_row{errc::invalid_rule, "invalid_rule", "invalid rule", 400},
    errc_row{errc::conflict, "conflict", "another write came first", 409},
    errc_row{errc::denied, "denied", "not allowed", 403},
    errc_row{errc::revision_gone, "revision_gone", "the revision is no longer kept", 410},
    errc_row{errc::unsupported, "unsupported", "not offered here", 501},
    errc_row{errc::deadline_exceeded, "deadline_exceeded", "the deadline has passed", 504},
};

// A number that is no code is reported as `storage`, whose row has the index 18.
constexpr const errc_row& row_of(errc code) {
  for (const errc_row& row : kErrors)
    if (row.code == code) return row;
  return kErrors[18];
}
constexpr const errc_row* find_errc(std::string_view name) {
  for (const errc_row& row : kErrors)
    if (row.name == name) return &row;
  return nullptr;
}

// The codes are std::error_code values, so they can be compared with codes of other libraries.
class error_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "pawl.lifecycle"; }
  std::string message(int code) const override {
    return std::string(row_of(static_cast<errc>(code)).words);
  }
};
inline const std::error_category& category() {
  static const error_category one;
  return one;
}
inline std::error_code make_error_code(errc code) { return {static_cast<int>(code), category()}; }

// Programs act on `code`; `detail` is for people. When a mutator returned an error, `code` is
// `rejected` and `cause` is the mutator's own code.
struct error {
  std::error_code code;
  std::string detail;
  std::error_code cause{};

  errc kind() const {
    return code.category() == category() ? static_cast<errc>(code.value()) : errc::storage;
  }
  std::string message() const {
    return detail.empty() ? code.message() : code.message() + ": " + detail;
  }
  // The same failure as the type that the rest of Pawl uses. `reason` is the name of the code.
  explicit operator pawl::Error() const;

  // True for the cause as well: `error == my_code` holds for a mutator's own code.
  friend bool operator==(const error& a, errc b) {
    return a.code == make_error_code(b) || a.cause == make_error_code(b);
  }
  friend bool operator==(const error& a, const std::error_code& b) {
    return a.code == b || a.cause == b;
  }
};

// The value that fail() returns. It converts to any failed result.
struct failure {
  error what;
};
inline failure fail(errc code, std::string detail = {}) {
  return {error{make_error_code(code), std::move(detail)}};
}
inline failure fail(std::error_code code, std::string detail = {}) {
  return {error{code, std::move(detail)}};
}
inline failure fail(error what) { return {std::move(what)}; }

[[noreturn]] inline void bad_access(const error& what) {
  throw std::system_error(what.code, what.detail);
}

// A value or an error. Reading the value of a failed result throws std::system_error. That is a bug
// in the caller and not a way to handle errors.
template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;
  result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  result(failure f) : v_(std::in_place_index<1>, std::move(f.what)) {}

  bool has_value() const { return v_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & {
    check();
    return std::get<0>(v_);
  }
  const T& value() const& {
    check();
    return std::get<0>(v_);
  }
  // Returns by value, so that `for (auto& e : *m.history<T>(id))` does not use a dead temporary.
  T value() && {
    check();
    return std::get<0>(std::move(v_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const lifecycle::error& error() const { return std::get<1>(v_); }
  template <class U>
  T value_or(U&& default_value) const& {
    return has_value() ? std::get<0>(v_) : static_cast<T>(std::forward<U>(default_value));
  }

 private:
  void check() const {
    if (!has_value()) bad_access(std::get<1>(v_));
  }
  std::variant<T, lifecycle::error> v_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;
  result() = default;
  result(failure f) : v_(std::in_place_index<1>, std::move(f.what)) {}
  bool has_value() const { return v_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  void value() const {
    if (!has_value()) bad_access(std::get<1>(v_));
  }
  const lifecycle::error& error() const { return std::get<1>(v_); }

 private:
  std::variant<std::monostate, lifecycle::error> v_;
};

}  // namespace pawl::lifecycle

template <>
struct std::is_error_code_enum<pawl::lifecycle::errc> : std::true_type {};
