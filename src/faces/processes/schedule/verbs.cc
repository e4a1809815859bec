#include "faces/processes/schedule/verbs.h"

#include <algorithm>

#include "faces/processes/limits.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

Result<std::shared_ptr<const Schedule>> find_schedule(TurnContext& context, std::string_view id) {
  return context.turn.read_as<Schedule>(schedule_key(context.tenant, id), decode_schedule);
}

// One schedule inside a turn: its copy, which is written at the end.
class Scheduled {
 public:
  Scheduled(TurnContext& context, Schedule schedule)
      : context_(context), schedule_(std::move(schedule)) {}
  Schedule& state() { return schedule_; }
  const ScheduleSpec& spec() const { return *schedule_.spec; }

  // Starts what is due, as far as one turn goes.
  Result<void> run_due();
  // One run, by the overlap policy. Returns how it was recorded; nothing: it is queued.
  Result<std::optional<ScheduleRun>> run(Time due);
  Result<void> run_queued();
  void arm();
  void disarm();
  void save();

 private:
  void plan_due();
  Result<bool> is_busy();
  Result<void> cancel_running(Time due);
  Result<ScheduleRun> start(Time due);
  ScheduleRun record(ScheduleRun run);
  void await_end();
  // The rest of the runs goes into a further turn: their steps share one budget.
  bool is_turn_full(size_t done) const {
    return done >= kRunsPerTurn || context_.budget.work > kWorkPerTurn / 2 ||
           context_.budget.steps > kStepsPerTurn / 2;
  }
  std::string effect_id() const {
    return schedule_timer_id({context_.tenant, spec().id, schedule_.timer});
  }

  TurnContext& context_;
  Schedule schedule_;
};

void Scheduled::disarm() { context_.turn.withdraw(effect_id()); }

// The number makes the id new: the effect that has just settled may still be known by its own.
void Scheduled::arm() {
  if (schedule_.paused || (!schedule_.next && schedule_.backlog.empty())) return;
  ++schedule_.timer;
  Effect effect;
  effect.id = effect_id();
  effect.to = To::clock;
  effect.program = kProgram;
  effect.tenant = context_.tenant;
  effect.due = schedule_.backlog.empty() ? schedule_.next : context_.turn.now();
  context_.turn.open(std::move(effect));
}

void Scheduled::save() {
  Bytes bytes = encode(schedule_);
  Key key = schedule_key(context_.tenant, spec().id);
  context_.turn.write(key, std::move(bytes), std::make_shared<const Schedule>(schedule_));
}

ScheduleRun Scheduled::record(ScheduleRun run) {
  run.number = ++schedule_.recorded;
  run.at = context_.turn.now();
  constexpr uint64_t Schedule::*kCounts[] = {nullptr, &Schedule::started, &Schedule::skipped,
                                             &Schedule::failed, nullptr};
  // Missed runs are counted by the caller: one record stands for several.
  if (auto count = kCounts[static_cast<size_t>(run.outcome)]) ++(schedule_.*count);
  context_.turn.write(run_key(context_.tenant, spec().id, run.number), encode(run));
  return run;
}

// Moves the runs that are due into the backlog, by the catch-up policy.
void Scheduled::plan_due() {
  const Time now = context_.turn.now();
  Time due = schedule_.next;
  const Time first = due;
  uint64_t missed = 0;
  Time last_missed = 0;
  // A long gap is not counted run by run.
  const Time oldest = now - kCatchUpSeconds * kSecond;
  if (due < oldest) due = spec().next(oldest);
  if (due) due = spec().recurrence.skip_ahead(due, now, kCatchUpRuns);
  if (due != first) {
    ++missed;
    last_missed = first;
  }
  std::vector<Time> late;
  for (; due && due <= now; due = spec().next(due)) {
    if (now - due <= kLateSeconds * kSecond)
      schedule_.backlog.push_back(due);
    else
      late.push_back(due);
  }
  schedule_.next = due;
  size_t kept = spec().catch_up == CatchUp::all    ? std::min(late.size(), kCatchUpRuns)
                : spec().catch_up == CatchUp::last ? std::min<size_t>(late.size(), 1)
                                                   : 0;
  const size_t dropped = late.size() - kept;
  if (dropped) last_missed = late[dropped - 1];
  missed += dropped;
  schedule_.backlog.insert(schedule_.backlog.begin(), late.begin() + dropped, late.end());
  if (!missed) return;
  schedule_.missed += missed;
  record({.due = first,
          .outcome = RunOutcome::missed,
          .message = "runs from " + rfc3339(first) + " to " + rfc3339(last_missed) +
                     " were missed and are not caught up"});
}

Result<void> Scheduled::run_due() {
  if (schedule_.backlog.empty()) plan_due();
  for (size_t done = 0; !is_turn_full(done) && !schedule_.backlog.empty(); ++done) {
    const Time due = schedule_.backlog.front();
    schedule_.backlog.erase(schedule_.backlog.begin());
    TRY_OK(run(due));
  }
  return {};
}

// Forgets the instances that have ended.
Result<bool> Scheduled::is_busy() {
  std::vector<std::string> running;
  for (const std::string& id : schedule_.running) {
    auto instance = context_.instance(id);
    if (!instance && !instance.error().is(kNoInstance)) return fail(std::move(instance.error()));
    if (instance && !is_final((*instance)->status)) running.push_back(id);
  }
  schedule_.running = std::move(running);
  return !schedule_.running.empty();
}

Result<void> Scheduled::cancel_running(Time due) {
  for (const std::string& id : schedule_.running) {
    const std::string why = "schedule \"" + spec().id + "\" begins its run of " + rfc3339(due);
    context_.reason = why;
    TRY_OK(walk_instance(context_, id,
                         [&](Walk& walk, Instance& instance, const Definition&) -> Result<bool> {
                           if (is_final(instance.status)) return false;
                           walk.cancel(why);
                           return true;
                         }));
  }
  schedule_.running.clear();
  return {};
}

Result<std::optional<ScheduleRun>> Scheduled::run(Time due) {
  if (spec().overlap == Overlap::allow) return start(due);
  TRY(bool busy, is_busy());
  if (busy && spec().overlap == Overlap::skip)
    return record({.due = due,
                   .outcome = RunOutcome::skipped,
                   .message = "instance " + schedule_.running.front() +
                              " of an earlier run is not finished"});
  if (spec().overlap == Overlap::queue && (busy || !schedule_.queued.empty())) {
    if (schedule_.queued.size() >= kQueuedRuns)
      return record({.due = due,
                     .outcome = RunOutcome::skipped,
                     .message = std::to_string(kQueuedRuns) + " runs wait already"});
    schedule_.queued.push_back(due);
    // Between the end of an instance and the delivery of next_run nothing runs.
    TRY_OK(run_queued());
    return std::nullopt;
  }
  if (busy) TRY_OK(cancel_running(due));
  return start(due);
}

// The end of the running instance delivers next_run.
void Scheduled::await_end() {
  if (!schedule_.queued.empty() && !schedule_.running.empty())
    context_.turn.write(run_end_key(context_.tenant, schedule_.running.front()), spec().id);
}

// A start that is refused changes nothing but the record of the run.
Result<ScheduleRun> Scheduled::start(Time due) {
  StartCommand command;
  command.definition_id = spec().definition_id;
  command.version = spec().version;
  command.business_key = spec().business_key;
  if (size_t at = command.business_key.find("{time}"); at != std::string::npos)
    command.business_key.replace(at, 6, rfc3339(due));
  json::Object variables = spec().variables;
  if (!spec().time_variable.empty()) variables.set(spec().time_variable, rfc3339(due));
  command.variables = make_variables(std::move(variables));
  context_.reason = "schedule \"" + spec().id + "\", run of " + rfc3339(due);
  const Turn::Mark mark = context_.turn.mark();
  auto started = context_.start(command, nullptr);
  if (!started) {
    // A fault of the server is not an outcome of the run.
    const Code code = started.error().code;
    if (code == Code::corrupt || code == Code::internal || code == Code::unavailable)
      return fail(std::move(started.error()));
    context_.turn.rewind(mark);
    context_.limits = {};
    return record({.due = due, .outcome = RunOutcome::failed, .message = started.error().message});
  }
  const Instance& instance = **started;
  if (spec().overlap != Overlap::allow && !is_final(instance.status) &&
      schedule_.running.size() < kTrackedInstances)
    schedule_.running.push_back(instance.id);
  return record({.due = due, .outcome = RunOutcome::started, .instance_id = instance.id});
}

Result<void> Scheduled::run_queued() {
  for (size_t done = 0; !schedule_.queued.empty(); ++done) {
    TRY(bool busy, is_busy());
    if (busy) break;
    if (is_turn_full(done)) {
      // The number makes the id new; a tenant's schedules may have the ids of another's.
      context_.turn.open({std::string(kProgram) + ":next-run:" + spec().id + ":" +
                              std::to_string(schedule_.recorded) + ":" + context_.tenant,
                          To::cell, std::string(kProgram), context_.tenant,
                          std::string(verb::next_run), 0, spec().id});
      return {};
    }
    const Time due = schedule_.queued.front();
    schedule_.queued.erase(schedule_.queued.begin());
    TRY_OK(start(due));
  }
  await_end();
  return {};
}

Result<void> check_number(TurnContext& context) {
  size_t count = 0;
  TRY_OK(context.turn.scan_unvalidated(
      schedule_prefix(context.tenant),
      [&](BytesView, const Cell&) { return ++count < kMaxSchedules; }));
  if (count < kMaxSchedules) return {};
  return fail(Code::exhausted, "TOO_MANY_SCHEDULES",
              "a tenant may have " + std::to_string(kMaxSchedules) +
                  " schedules: delete one that is not needed any more");
}

std::unexpected<Error> no_schedule(std::string_view id) {
  return fail(Code::not_found, kNoSchedule, "schedule \"" + std::string(id) + "\" not found");
}

Bytes answer_of(Scheduled& scheduled) {
  return Bytes(json::print(schedule_json(scheduled.state())));
}

void erase_schedule(TurnContext& context, const Schedule& schedule) {
  const std::string& id = schedule.spec->id;
  context.turn.erase(schedule_key(context.tenant, id));
  const uint64_t slots = std::min<uint64_t>(schedule.recorded, kRememberedRuns);
  for (uint64_t n = 0; n < slots; ++n)
    context.turn.erase(run_key(context.tenant, id, schedule.recorded - n));
  for (const std::string& instance : schedule.running)
    context.turn.erase(run_end_key(context.tenant, instance));
}

// {"operation": "pause" | "resume" | "trigger" | "delete", "id", "reason"?}
Result<Bytes> operate(TurnContext& context, Scheduled& scheduled, std::string_view operation,
                      std::string_view reason) {
  Schedule& s = scheduled.state();
  const Time now = context.turn.now();
  if (operation == "trigger") {
    TRY(auto run, scheduled.run(now));
    scheduled.save();
    if (run) return Bytes(json::print(run_json(*run)));
    return Bytes(
        json::print(json::object({{"scheduledFor", rfc3339(now, 6)}, {"outcome", "queued"}})));
  }
  scheduled.disarm();
  if (operation == "delete") {
    erase_schedule(context, s);
    return Bytes(json::print(json::object({{"id", s.spec->id}, {"deleted", true}})));
  }
  s.paused = operation == "pause";
  s.pause_reason = s.paused ? reason : std::string_view();
  s.changed = now;
  if (!s.paused) {
    // Runs that fell into the pause are not caught up.
    s.backlog.clear();
    s.next = s.spec->next(now);
    TRY_OK(scheduled.run_queued());
  }
  scheduled.arm();
  scheduled.save();
  return answer_of(scheduled);
}

}  // namespace

// {"schedule": {...}, "replace": true | false}
Result<Bytes> put_schedule(TurnContext& context) {
  TRY(json::Value body, json::parse(context.input.body));
  const json::Value* document = body.find("schedule");
  if (!document) return fail(Code::invalid, "BAD_SCHEDULE", "the command has no schedule");
  const Time now = context.turn.now();
  TRY(auto before, find_schedule(context, document->string_or("id")));
  const json::Value* replace = body.find("replace");
  if (before && !(replace && replace->is_bool() && replace->boolean()))
    return fail(Code::conflict, "SCHEDULE_EXISTS",
                "schedule \"" + before->spec->id + "\" exists: replace it with PUT");
  if (!before) TRY_OK(check_number(context));
  Schedule next = before ? *before : Schedule{.text = {}, .created = now};
  TRY(ScheduleSpec spec, parse_schedule(*document, next.created));
  TRY_OK(context.head(spec.definition_id));
  next.text = json::print(*document);
  next.spec = std::make_shared<const ScheduleSpec>(std::move(spec));
  next.changed = now;
  next.backlog.clear();
  next.next = next.spec->next(now);
  if (!next.next)
    return fail(Code::invalid, "BAD_SCHEDULE",
                "the schedule has no run after now: check cron, calendar, startAt and endAt");
  if (before) Scheduled(context, *before).disarm();
  Scheduled scheduled(context, std::move(next));
  scheduled.arm();
  scheduled.save();
  return answer_of(scheduled);
}

Result<Bytes> operate_schedule(TurnContext& context) {
  TRY(json::Value body, json::parse(context.input.body));
  const std::string id(body.string_or("id"));
  TRY(auto found, find_schedule(context, id));
  if (!found) return no_schedule(id);
  Scheduled scheduled(context, *found);
  return operate(context, scheduled, body.string_or("operation"), body.string_or("reason"));
}

Result<void> run_schedule(TurnContext& context, const ScheduleTimer& timer) {
  context.tenant = timer.tenant;
  TRY(auto found, find_schedule(context, timer.schedule_id));
  if (!found || found->timer != timer.number || found->paused) return {};
  Scheduled scheduled(context, *found);
  TRY_OK(scheduled.run_due());
  scheduled.arm();
  scheduled.save();
  return {};
}

Result<Bytes> next_run(TurnContext& context) {
  TRY(auto found, find_schedule(context, context.input.body));
  if (!found || found->paused) return Bytes();
  Scheduled scheduled(context, *found);
  TRY_OK(scheduled.run_queued());
  scheduled.save();
  return Bytes();
}

Result<void> end_run(TurnContext& context, const std::string& instance_id) {
  const Key key = run_end_key(context.tenant, instance_id);
  TRY(Cell cell, context.turn.read(key));
  if (!cell.exists()) return {};
  Bytes id(cell.value());
  context.turn.erase(key);
  context.turn.open({std::string(kProgram) + ":next-run:" + instance_id, To::cell,
                     std::string(kProgram), context.tenant, std::string(verb::next_run), 0,
                     std::move(id)});
  return {};
}

}  // namespace pawl::processes
