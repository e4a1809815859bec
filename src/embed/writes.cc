// Updates by a caller's own function. The mutator runs here, in the caller's thread, and never
// inside the program: what it made is submitted as a whole state, valid only on top of the write it
// was made from.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "embed/manager_core.h"
#include "faces/lifecycle/run/verbs.h"

namespace pawl::lifecycle {

namespace {

// How long a mutator that writes another instance waits in the queue of that instance. The writer
// whose turn it is may be waiting for us, so after this time the write bypasses the queue.
constexpr std::chrono::milliseconds kNestedWait{20};

// A mutator that runs on this thread.
struct Mutating {
  const void* manager;
  std::string_view workflow, id;
  bool wrote = false;  // the mutator has written the instance itself, through another manager
};
// Innermost last: a mutator may update another instance, whose mutator then runs on the same
// thread.
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

// Locks the queue and returns true, or returns false at the deadline. A caller inside a mutator
// waits for a short time only.
bool wait_turn(std::unique_lock<std::timed_mutex>& queue, deadline until) {
  if (!running.empty()) until = until.or_before(deadline::in(kNestedWait));
#ifdef __SANITIZE_THREAD__
  // The thread sanitizer does not see a lock that is taken by the steady clock, and would report a
  // race on what it guards.
  if (!until.never())
    return queue.try_lock_until(std::chrono::system_clock::now() +
                                (until.at() - deadline::clock::now()));
#else
  if (!until.never()) return queue.try_lock_until(until.at());
#endif
  queue.lock();
  return true;
}

// The instance that a mutator made.
struct Made {
  std::string after;
  bool wrote_itself;  // the mutator has written the instance itself, and so will conflict
};

// Runs the mutator. Its own error becomes the cause of `rejected`.
result<Made> mutate(const void* manager, const Update& update, std::string_view before) {
  std::string after;
  Guard guard(manager, update.type.name, update.id);
  if (result<void> said = update.mutator(before, after); !said) {
    error e = said.error();
    if (e == errc::corrupt_value) return lifecycle::fail(e);
    if (!(e.code == make_error_code(errc::rejected))) e.cause = e.code;
    e.code = make_error_code(errc::rejected);
    return lifecycle::fail(std::move(e));
  }
  const auto* id_field = update.type.tagged(lifecycle::id);
  if (text_field(after, id_field->name) != update.id)
    return lifecycle::fail(errc::bad_id, fmt::format("the mutator changed the id of {} '{}'",
                                                     update.type.name, update.id));
  return Made{std::move(after), guard.wrote()};
}

// Checks the transition, then runs the mutator. The program checks the transition again; the check
// here only spares a mutator that would run in vain.
result<Made> make_next(const void* manager, const Update& update, const Base& base) {
  if (!update.to.empty())
    if (auto may = check_edge(update.type, update.id, base.phase, update.to); !may)
      return lifecycle::fail(to_error(may.error()));
  return mutate(manager, update, base.record);
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

result<Base> manager::core::stored(const Update& update) {
  auto found = on->get(update.type.name, update.id);
  if (!found) return lifecycle::fail(found.error());
  check_drift(update.type, update.id, found->phase);
  return Base{found->keep, found->record, found->phase, found->stamp};
}

// Runs the mutator on the newest state and submits what it made. The caller holds the queue's lock.
result<Submitted> manager::core::submit_next(InstanceQueue& queue, const Update& update) {
  const bool newest_is_submitted = queue.in_flight > 0 && queue.valid;
  result<Base> base = newest_is_submitted
                          ? Base{queue.record, *queue.record, queue.phase, queue.stamp}
                          : stored(update);
  if (!base) return lifecycle::fail(base.error());
  auto made = make_next(this, update, *base);
  if (!made) return lifecycle::fail(made.error());
  const std::string& phase_field = update.type.tagged(lifecycle::phase)->name;
  std::string after = std::move(made->after);
  // The program sets the phase too. It is set here because the next writer in the queue starts from
  // this state before the program has run.
  if (!update.to.empty()) after = with_fields(after, {{phase_field, value(update.to)}});
  const uint64_t stamp = new_stamp();
  auto pending = on->replace({update.type.name, update.id, base->stamp, 0, stamp, after,
                              std::string(update.to), update.why, update.options.until});
  queue.phase = text_field(after, phase_field);
  queue.record = std::make_shared<const std::string>(std::move(after));
  queue.stamp = stamp;
  queue.valid = stamped;
  ++queue.in_flight;
  return Submitted{std::move(pending), queue.restarts, made->wrote_itself};
}

result<revision> manager::core::write_in_turn(const Update& update) {
  const deadline until = update.options.until;
  auto queue = queues.at(fmt::format("{}\n{}", update.type.name, update.id));
  // A mutator that causes a conflict with itself each time it runs would run for ever.
  for (int self_conflicts = 0; self_conflicts < kTries;) {
    if (auto may = still_wanted(update.options); !may) return lifecycle::fail(may.error());
    std::unique_lock lock(queue->mutex, std::defer_lock);
    if (!wait_turn(lock, until)) {
      if (until.passed())
        return lifecycle::fail(
            errc::deadline_exceeded,
            fmt::format("another writer of {} '{}' was at work; nothing was written",
                        update.type.name, update.id));
      auto bypassed = write_directly(update, 1);
      if (bypassed || bypassed.error().kind() != errc::update_retries_exhausted) return bypassed;
      continue;
    }
    auto submitted = submit_next(*queue, update);
    lock.unlock();
    if (!submitted) return lifecycle::fail(submitted.error());
    self_conflicts = submitted->wrote_itself ? self_conflicts + 1 : 0;
    auto done = submitted->pending->wait(until);
    // A write that is still under way stays in the queue. The next writer builds on it, and gets a
    // conflict if it failed.
    if (!done && done.error().kind() == errc::deadline_exceeded)
      return lifecycle::fail(done.error());
    queue->settle(submitted->restarts, done.has_value());
    if (done) return done->rev;
    if (done.error().kind() != errc::conflict) return lifecycle::fail(done.error());
  }
  return lifecycle::fail(
      errc::reentrant_update,
      fmt::format("the mutator of {} '{}' writes it through another manager each time it runs",
                  update.type.name, update.id));
}

result<revision> manager::core::write_directly(const Update& update, int tries) {
  for (int i = 0; i < tries; ++i) {
    if (auto may = still_wanted(update.options); !may) return lifecycle::fail(may.error());
    auto base = stored(update);
    if (!base) return lifecycle::fail(base.error());
    auto made = make_next(this, update, *base);
    if (!made) return lifecycle::fail(made.error());
    auto pending = on->replace({update.type.name, update.id, base->stamp, 0, new_stamp(),
                                std::move(made->after), std::string(update.to), update.why,
                                update.options.until});
    auto done = pending->wait(update.options.until);
    if (done) return done->rev;
    if (done.error().kind() != errc::conflict) return lifecycle::fail(done.error());
  }
  return lifecycle::fail(errc::update_retries_exhausted,
                         fmt::format("{} '{}' was written by others {} times in a row",
                                     update.type.name, update.id, tries));
}

}  // namespace pawl::lifecycle
