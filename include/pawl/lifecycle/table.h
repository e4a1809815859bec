#pragma once
// The transitions table of a struct: its phases and the phases that each may move to. The table is
// built and checked at compile time. A table that contradicts itself does not compile; the compiler
// then names one of the functions below, whose name says why.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::lifecycle {

// These are declared and never defined: a call at compile time is an error that shows the name.
namespace compile_error {
void invalid_transitions_table_it_declares_no_phase();
void invalid_transitions_table_a_phase_has_an_empty_name();
void invalid_transitions_table_a_phase_is_declared_twice();
void invalid_transitions_table_a_target_has_an_empty_name();
void invalid_transitions_table_a_target_is_not_declared_as_a_phase();
void invalid_transitions_table_a_target_is_named_twice_from_one_phase();
void invalid_transitions_table_a_success_phase_is_not_terminal();
}  // namespace compile_error

// One row of the table: a phase and the phases it may move to.
template <std::size_t N>
struct edges {
  std::string_view phase;
  std::array<std::string_view, N> targets{};
  bool success = false;
};

template <class... To>
consteval edges<sizeof...(To)> from(std::string_view phase, To... to) {
  return {phase, {std::string_view(to)...}, false};
}
consteval edges<0> terminal(std::string_view phase) { return {phase, {}, false}; }
// A terminal phase that means success. complete() prefers it.
consteval edges<0> success(std::string_view phase) { return {phase, {}, true}; }

template <std::size_t Phases, std::size_t Edges>
class transitions_table {
 public:
  struct line {
    std::string_view phase;
    std::size_t first = 0, last = 0;  // range of its targets in targets_
    bool success = false;
  };

  template <std::size_t... Ns>
  consteval explicit transitions_table(const edges<Ns>&... rows) {
    std::size_t phase = 0, edge = 0;
    auto take = [&](const auto& row) {
      lines_[phase].phase = row.phase;
      lines_[phase].success = row.success;
      lines_[phase].first = edge;
      for (std::string_view target : row.targets)
        targets_[edge++] = target;
      lines_[phase++].last = edge;
    };
    (take(rows), ...);
    check();
  }

  constexpr bool declares(std::string_view phase) const { return place(phase) < Phases; }
  // An undeclared phase counts as terminal, so that a misconfigured instance cannot move.
  constexpr bool is_terminal(std::string_view phase) const {
    std::size_t at = place(phase);
    return at == Phases || lines_[at].first == lines_[at].last;
  }
  constexpr bool allows(std::string_view from, std::string_view to) const {
    std::size_t at = place(from);
    if (at == Phases) return false;
    for (std::size_t i = lines_[at].first; i < lines_[at].last; ++i)
      if (targets_[i] == to) return true;
    return false;
  }
  // Sorted by name. With `terminal_only`, only the phases without targets.
  std::vector<std::string> phases(bool terminal_only = false) const {
    std::vector<std::string> out;
    for (const line& l : lines_)
      if (!terminal_only || l.first == l.last) out.emplace_back(l.phase);
    std::sort(out.begin(), out.end());
    return out;
  }
  constexpr const std::array<line, Phases>& lines() const { return lines_; }
  constexpr std::string_view target(std::size_t i) const { return targets_[i]; }

 private:
  // The index of the phase, or Phases when it is not declared. The function does not return a
  // pointer, since some compilers cannot compare pointers at compile time with sanitizers on.
  constexpr std::size_t place(std::string_view phase) const {
    std::size_t i = 0;
    while (i < Phases && lines_[i].phase != phase)
      ++i;
    return i;
  }
  consteval void check() const {
    if (Phases == 0) compile_error::invalid_transitions_table_it_declares_no_phase();
    for (std::size_t i = 0; i < Phases; ++i) {
      const line& l = lines_[i];
      if (l.phase.empty()) compile_error::invalid_transitions_table_a_phase_has_an_empty_name();
      for (std::size_t j = 0; j < i; ++j)
        if (lines_[j].phase == l.phase)
          compile_error::invalid_transitions_table_a_phase_is_declared_twice();
      if (l.success && l.first != l.last)
        compile_error::invalid_transitions_table_a_success_phase_is_not_terminal();
      for (std::size_t e = l.first; e < l.last; ++e) {
        if (targets_[e].empty())
          compile_error::invalid_transitions_table_a_target_has_an_empty_name();
        if (!declares(targets_[e]))
          compile_error::invalid_transitions_table_a_target_is_not_declared_as_a_phase();
        for (std::size_t d = l.first; d < e; ++d)
          if (targets_[d] == targets_[e])
            compile_error::invalid_transitions_table_a_target_is_named_twice_from_one_phase();
      }
    }
  }

  std::array<line, Phases> lines_{};
  std::array<std::string_view, Edges> targets_{};
};

template <std::size_t... Ns>
consteval auto table(const edges<Ns>&... rows) {
  return transitions_table<sizeof...(Ns), (Ns + ... + 0)>(rows...);
}

}  // namespace pawl::lifecycle
