// Updates with the caller's own code in them: the mutator runs here, never inside the program, and
// what it made is handed in as a whole state on top of the write it was made from.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/manager_core.h"
#include "faces/lifecycle/values.h"

namespace pawl::lifecycle {

namespace {

struct Mutating {
  const void* manager;
  std::string_view workflow, id;
};
thread_local std::vector<Mutating> running;

struct Guard {
  Guard(const void* manager, std::string_view workflow, std::string_view id_text) { running.push_back({manager, workflow, id_text}); }
  ~Guard() { running.pop_back(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

// What a mutator starts from.
struct Base {
  std::shared_ptr<const void> keep;
  std::string_view record, phase;
  uint64_t stamp;
};

// The same order as the program's: terminal first, then the edge. The mutator does not run when these fail.
result<void> check_move(const dynamic_type& type, std::string_view id_text, std::string_view from, std::string_view to) {
  if (type.is_terminal(from)) return lifecycle::fail(errc::terminal_phase, fmt::format("{} '{}' is in '{}'", type.name, id_text, from));
  if (!type.allows(from, to))
    return lifecycle::fail(errc::invalid_transition, fmt::format("{} '{}' cannot go from '{}' to '{}'", type.name, id_text, from, to));
  return {};
}

// Runs the mutator; its own error comes back as the cause of `rejected`.
result<std::string> mutate(const dynamic_type& type, std::string_view id_text, const Base& base, const manager::record_mutator& f) {
  std::string after;
  if (result<void> said = f(base.record, after); !said) {
    error e = said.error();
    if (e == errc::corrupt_value) return lifecycle::fail(e);
    if (!(e.code == make_error_code(errc::rejected))) e.cause = e.code;
    e.code = make_error_code(errc::rejected);
    return lifecycle::fail(std::move(e));
  }
  const auto* id_field = type.tagged(lifecycle::id);
  if (text_field(after, id_field->name) != id_text)
    return lifecycle::fail(errc::bad_id, fmt::format("the mutator changed the id of {} '{}'", type.name, id_text));
  return after;
}

}  // namespace

bool mutating(const void* manager, std::string_view workflow, std::string_view id_text) {
  for (const Mutating& one : running)
    if (one.manager == manager && one.workflow == workflow && one.id == id_text) return true;
  return false;
}

result<revision> manager::core::write_in_line(const dynamic_type& type, std::string_view id_text, std::string_view to, const how& why,
                                              const record_mutator& f, std::stop_token stop) {
  std::shared_ptr<Line> line = lines.at(fmt::format("{}\n{}", type.name, id_text));
  while (true) {
    if (stop.stop_requested()) return lifecycle::fail(errc::cancelled, "the stop token was asked before anything was written");
    std::unique_ptr<pending_write> pending;
    uint64_t restarts = 0;
    {
      std::unique_lock lock(line->mutex);
      Base base;
      if (line->in_flight > 0 && line->valid) {
        base = {line->record, *line->record, line->phase, line->stamp};
      } else {
        auto found = on->get(type.name, id_text);
        if (!found) return lifecycle::fail(found.error());
        check_drift(type, id_text, found->phase);
        base = {found->keep, found->record, found->phase, found->stamp};
      }
      if (!to.empty())
        if (auto may = check_move(type, id_text, base.phase, to); !may) return lifecycle::fail(may.error());
      Guard guard(this, type.name, id_text);
      auto made = mutate(type, id_text, base, f);
      if (!made) return lifecycle::fail(made.error());
      std::string after = *std::move(made);
      const std::string& phase_field = type.tagged(lifecycle::phase)->name;
      if (!to.empty()) after = with_fields(after, {{phase_field, value(to)}});
      uint64_t stamp = new_stamp();
      pending = on->replace({type.name, id_text, base.stamp, 0, stamp, after, std::string(to), why});
      line->phase = text_field(after, phase_field);
      line->record = std::make_shared<const std::string>(std::move(after));
      line->stamp = stamp;
      line->valid = true;
      ++line->in_flight;
      restarts = line->restarts;
    }
    auto done = pending->wait();
    {
      std::lock_guard lock(line->mutex);
      --line->in_flight;
      if (!done && restarts == line->restarts) {
        line->valid = false;
        ++line->restarts;
      }
    }
    if (done) return done->rev;
    if (done.error().kind() != errc::conflict) return lifecycle::fail(done.error());
  }
}

result<revision> manager::core::write_bare(const dynamic_type& type, std::string_view id_text, std::string_view to, const how& why,
                                           const record_mutator& f, int tries, std::stop_token stop) {
  for (int i = 0; i < tries; ++i) {
    if (stop.stop_requested()) return lifecycle::fail(errc::cancelled, "the stop token was asked before anything was written");
    auto found = on->get(type.name, id_text);
    if (!found) return lifecycle::fail(found.error());
    Base base{found->keep, found->record, found->phase, found->stamp};
    auto made = mutate(type, id_text, base, f);
    if (!made) return lifecycle::fail(made.error());
    auto done = on->replace({type.name, id_text, base.stamp, 0, new_stamp(), *std::move(made), std::string(to), why})->wait();
    if (done) return done->rev;
    if (done.error().kind() != errc::conflict) return lifecycle::fail(done.error());
  }
  return lifecycle::fail(errc::update_retries_exhausted, fmt::format("{} '{}' was written by others {} times in a row", type.name, id_text, tries));
}

}  // namespace pawl::lifecycle
