// Updates with the caller's own code in them: the mutator runs here, never inside the program, and
// what it made is handed in as a whole state on top of the write it was made from.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "embed/manager_core.h"
#include "faces/lifecycle/run/verbs.h"

namespace pawl::lifecycle {

namespace {

// How long a mutator that writes another instance waits in that one's line. Whoever stands at its
// head may be waiting for us: past this the write goes in beside the line.
constexpr std::chrono::milliseconds kNestedWait{20};

struct Mutating {
  const void* manager;
  std::string_view workflow, id;
  bool wrote = false;  // the mutator has written the instance itself, through another manager
};
thread_local std::vector<Mutating> running;

struct Guard {
  Guard(const void* manager, std::string_view workflow, std::string_view id_text) {
    running.push_back({manager, workflow, id_text});
  }
  ~Guard() { running.pop_back(); }
  bool wrote() const { return running.back().wrote; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

// True when the line is ours; a caller inside a mutator does not wait for ever.
bool stand_in(std::unique_lock<std::timed_mutex>& line, deadline until) {
  if (!running.empty()) until = until.or_before(deadline::in(kNestedWait));
#ifdef __SANITIZE_THREAD__
  // The thread sanitizer does not see a lock that is taken by the steady clock, and would call what
  // it guards a race.
  if (!until.never())
    return line.try_lock_until(std::chrono::system_clock::now() +
                               (until.at() - deadline::clock::now()));
#else
  if (!until.never()) return line.try_lock_until(until.at());
#endif
  line.lock();
  return true;
}

// What a mutator starts from.
struct Base {
  std::shared_ptr<const void> keep;
  std::string_view record, phase;
  uint64_t stamp;
};

struct Made {
  std::string after;
  bool by_itself;  // the mutator has written the instance itself: its own conflict
};

// Runs the mutator; its own error comes back as the cause of `rejected`.
result<Made> mutate(const void* manager, const dynamic_type& type, std::string_view id_text,
                    const Base& base, const manager::record_mutator& f) {
  std::string after;
  Guard guard(manager, type.name, id_text);
  if (result<void> said = f(base.record, after); !said) {
    error e = said.error();
    if (e == errc::corrupt_value) return lifecycle::fail(e);
    if (!(e.code == make_error_code(errc::rejected))) e.cause = e.code;
    e.code = make_error_code(errc::rejected);
    return lifecycle::fail(std::move(e));
  }
  const auto* id_field = type.tagged(lifecycle::id);
  if (text_field(after, id_field->name) != id_text)
    return lifecycle::fail(
        errc::bad_id, fmt::format("the mutator changed the id of {} '{}'", type.name, id_text));
  return Made{std::move(after), guard.wrote()};
}

}  // namespace

bool mutating(const void* manager, std::string_view workflow, std::string_view id_text) {
  for (const Mutating& one : running)
    if (one.manager == manager && (workflow.empty() || one.workflow == workflow) &&
        one.id == id_text)
      return true;
  return false;
}

void wrote(std::string_view workflow, std::string_view id_text) {
  for (Mutating& one : running)
    if ((workflow.empty() || one.workflow == workflow) && one.id == id_text) one.wrote = true;
}

result<revision> manager::core::write_in_line(const dynamic_type& type, std::string_view id_text,
                                              std::string_view to, const how& why,
                                              const record_mutator& f,
                                              const call_options& options) {
  std::shared_ptr<Line> line = lines.at(fmt::format("{}\n{}", type.name, id_text));
  // A mutator that makes its own conflict each time it runs would run for ever.
  for (int own = 0; own < kTries;) {
    if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
    std::unique_ptr<pending_write> pending;
    uint64_t restarts = 0;
    {
      std::unique_lock lock(line->mutex, std::defer_lock);
      if (!stand_in(lock, options.until)) {
        if (options.until.passed())
          return lifecycle::fail(
              errc::deadline_exceeded,
              fmt::format("another writer of {} '{}' was at work; nothing was written", type.name,
                          id_text));
        auto beside = write_bare(type, id_text, to, why, f, 1, options);
        if (beside || beside.error().kind() != errc::update_retries_exhausted) return beside;
        continue;
      }
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
        // The program checks again; here so that the mutator does not run in vain.
        if (auto may = check_edge(type, id_text, base.phase, to); !may)
          return lifecycle::fail(to_error(may.error()));
      auto made = mutate(this, type, id_text, base, f);
      if (!made) return lifecycle::fail(made.error());
      own = made->by_itself ? own + 1 : 0;
      std::string after = std::move(made->after);
      const std::string& phase_field = type.tagged(lifecycle::phase)->name;
      if (!to.empty()) after = with_fields(after, {{phase_field, value(to)}});
      uint64_t stamp = new_stamp();
      pending = on->replace(
          {type.name, id_text, base.stamp, 0, stamp, after, std::string(to), why, options.until});
      line->phase = text_field(after, phase_field);
      line->record = std::make_shared<const std::string>(std::move(after));
      line->stamp = stamp;
      line->valid = stamped;
      ++line->in_flight;
      restarts = line->restarts;
    }
    auto done = pending->wait(options.until);
    // Still under way: whoever comes next may stand on it, and finds out by a conflict if it
    // failed.
    if (!done && done.error().kind() == errc::deadline_exceeded)
      return lifecycle::fail(done.error());
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
  return lifecycle::fail(
      errc::reentrant_update,
      fmt::format("the mutator of {} '{}' writes it through another manager each time it runs",
                  type.name, id_text));
}

result<revision> manager::core::write_bare(const dynamic_type& type, std::string_view id_text,
                                           std::string_view to, const how& why,
                                           const record_mutator& f, int tries,
                                           const call_options& options) {
  for (int i = 0; i < tries; ++i) {
    if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
    auto found = on->get(type.name, id_text);
    if (!found) return lifecycle::fail(found.error());
    check_drift(type, id_text, found->phase);
    Base base{found->keep, found->record, found->phase, found->stamp};
    if (!to.empty())
      if (auto may = check_edge(type, id_text, base.phase, to); !may)
        return lifecycle::fail(to_error(may.error()));
    auto made = mutate(this, type, id_text, base, f);
    if (!made) return lifecycle::fail(made.error());
    auto done = on->replace({type.name, id_text, base.stamp, 0, new_stamp(), std::move(made->after),
                             std::string(to), why, options.until})
                    ->wait(options.until);
    if (done) return done->rev;
    if (done.error().kind() != errc::conflict) return lifecycle::fail(done.error());
  }
  return lifecycle::fail(
      errc::update_retries_exhausted,
      fmt::format("{} '{}' was written by others {} times in a row", type.name, id_text, tries));
}

}  // namespace pawl::lifecycle
