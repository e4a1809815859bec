#include "faces/entities/flow/machine.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::entities {

namespace {

std::unexpected<Error> workflow_failed(std::string message) {
  return fail(Code::invalid, "WORKFLOW_FAILED", std::move(message));
}

constexpr std::string_view kLoopback = "loopback";

// Fields of the models that one transaction grows, counted anew for each document that makes a
// model grow: about a microsecond each.
constexpr size_t kMaxGrownFields = 500'000;

}  // namespace

Result<WorkflowSet> decode_workflows(BytesView bytes) {
  TRY(json::Value list, json::parse(bytes, {.max_bytes = limits::kCellBytes}));
  return load_workflows(list.array());
}

Result<Bytes> Machine::run() {
  transaction_.start = turn_.mark();
  return drive();
}

Result<Bytes> Machine::resume(const CallResult& result) {
  result_ = &result;
  if (result.ok()) TRY_OK(reload_entity());
  return drive();
}

Result<Bytes> Machine::drive() {
  while (true) {
    Result<Step> step = this->step();
    if (!step) {
      // The clock sends its receipt again; a dispatch has no second try.
      if (!transaction_.settles || (progress_.due && step.error().retryable))
        return fail(std::move(step.error()));
      return abort_turn(std::move(step.error()));
    }
    if (*step == Step::wait) return Bytes();
    if (*step != Step::done) continue;
    stamp_commit_time();
    return answer();
  }
}

Bytes Machine::abort_turn(Error error) {
  turn_.rewind(transaction_.start);
  record(EventKind::finish, error.message, R"({"success":false})");
  note_events();
  turn_.refuse(std::move(error));
  return {};
}

Result<Machine::Step> Machine::step() {
  switch (progress_.stage) {
    case Stage::begin: return begin();
    case Stage::select: return select();
    case Stage::guard: return guard();
    case Stage::process: return process();
    case Stage::scan: return scan();
    case Stage::finish: return finish();
    case Stage::schedule: return ask_schedules();
    case Stage::deleted: return finish_deleted();
  }
  return workflow_failed("the transaction is in no known stage");
}

Result<Machine::Step> Machine::begin() {
  if (transaction_.at == transaction_.command->items.size()) return Step::done;
  const Item& item = transaction_.command->items[transaction_.at];
  switch (item.op) {
    case Item::create: return begin_new(item);
    case Item::due: return begin_due(item);
    default: return begin_existing(item);
  }
}

// Checks the document against the model. The model grows as far as its change level allows.
Result<void> Machine::set_data(const json::Value& value, std::string data) {
  const Model& model = *transaction_.model;
  if (model.level == ChangeLevel::none) {
    auto checked = check(model.shape, value);
    if (!checked && checked.error().is(kIncompatibleType)) {
      TRY(json::Value detail, json::parse(checked.error().detail));
      detail.object().add("entityName", model.name);
      detail.object().add("entityVersion", std::to_string(model.version));
      checked.error().detail = json::print(detail);
    }
    TRY_OK(checked);
  } else if (value.is_null() || !fits(model.shape, value)) {
    // Each growth copies and prints the whole model.
    transaction_.grown_fields += model.fields;
    if (transaction_.grown_fields > kMaxGrownFields)
      return fail(
          Code::unprocessable, "MODEL_GROWS_TOO_OFTEN",
          fmt::format("the documents of one transaction grow model {} version {} too often; "
                      "write those with new fields first, or in smaller collections",
                      model.name, model.version));
    Shape grown = model.shape;
    TRY(bool grew, extend(grown, value, model.level));
    if (grew) {
      Model next = model;
      next.shape = std::move(grown);
      write_model(turn_, transaction_.tenant, std::move(next));
      TRY(transaction_.model,
          find_model(turn_, transaction_.tenant, progress_.entity.model, progress_.entity.version));
    }
  }
  progress_.entity.data = std::move(data);
  return {};
}

Result<Machine::Step> Machine::begin_new(const Item& item) {
  TRY(transaction_.model, find_model(turn_, transaction_.tenant, item.model, item.version));
  if (!transaction_.model) return fail(model_not_found(item.model, item.version, false));
  if (!transaction_.model->locked)
    return fail(Code::conflict, "MODEL_NOT_LOCKED",
                fmt::format("model {} version {} is not locked; lock it before creating entities",
                            item.model, item.version),
                json::print(json::object({{"entityName", item.model},
                                          {"entityVersion", item.version},
                                          {"expectedState", "LOCKED"},
                                          {"actualState", "UNLOCKED"}})));
  Entity& e = progress_.entity;
  e.model = item.model;
  e.version = item.version;
  TRY_OK(set_data(item.value, item.data));
  e.id = new_entity_id(turn_.dice(), turn_.now(), transaction_.at, item.model, item.version);
  e.created = turn_.now();
  e.tx = transaction_.tx;
  progress_.change = ChangeKind::created;
  progress_.stored_before = StoredBefore::no;
  TRY_OK(load_workflows());
  record(EventKind::start, {});
  progress_.stage = Stage::select;
  return Step::next;
}

// Loads the stored entity as the current one. The old document is kept only when the model has
// unique keys, which are compared with it.
void Machine::load_entity(const EntityView& stored, bool with_data) {
  EntityView facts = stored;
  if (!with_data) facts.data = {};
  progress_.entity = copy_of(facts);
  if (!transaction_.model->unique_keys.empty()) progress_.old_data = stored.data;
  progress_.change = ChangeKind::updated;
}

bool Machine::written_before(const StoredEntity& found) const {
  return found.cell.version == Turn::kOwnWrite && found.view.tx == transaction_.tx &&
         std::ranges::find(transaction_.ids, found.view.id) != transaction_.ids.end();
}

Result<Machine::Step> Machine::begin_existing(const Item& item) {
  TRY(StoredEntity found, find_entity(turn_, transaction_.tenant, item.id));
  if (!found.exists()) return fail(entity_not_found(item.id));
  EntityView& stored = found.view;
  const bool again = written_before(found);
  // If-Match names a transaction from before this one, for each item of the same entity.
  std::string& latest = transaction_.latest[item.id];
  if (!again) latest = stored.tx;
  if (!item.if_match.empty() && item.if_match != latest) return refuse_stale(item, stored);
  TRY(transaction_.model, find_model(turn_, transaction_.tenant, stored.model, stored.version));
  if (!transaction_.model) return fail(model_not_found(stored.model, stored.version));
  load_entity(stored, item.op != Item::update);
  progress_.entity.transition = item.transition;
  if (item.op == Item::update) {
    TRY_OK(set_data(item.value, item.data));
  } else if (item.op == Item::patch) {
    TRY(json::Value whole, json::parse(stored.data, {.max_bytes = limits::kCellBytes}));
    merge_sorted(whole, item.value);
    std::string text = json::print(whole);
    TRY_OK(set_data(whole, std::move(text)));
  }
  TRY_OK(load_workflows());
  record(EventKind::start, {});
  return enter_workflow(item);
}

Result<Machine::Step> Machine::begin_due(const Item& item) {
  TRY(StoredEntity found, find_entity(turn_, transaction_.tenant, item.id));
  const EntityView& stored = found.view;
  const std::string& timer = item.if_match;  // the id of the effect that is due
  if (!found.exists() ||
      std::find(stored.timers.begin(), stored.timers.end(), timer) == stored.timers.end())
    return Step::done;
  TRY(transaction_.model, find_model(turn_, transaction_.tenant, stored.model, stored.version));
  if (!transaction_.model) return Step::done;
  load_entity(stored, true);
  progress_.due = true;
  progress_.named = true;
  std::erase(progress_.entity.timers, timer);
  TRY_OK(load_workflows());
  progress_.flow = transaction_.flows->with_state(progress_.entity.state);
  const Transition* t =
      progress_.flow ? progress_.flow->find(progress_.entity.state, item.transition) : nullptr;
  if (!t || !t->schedule) return finish_without_write();
  TRY(TimerId due, parse_timer_id(timer));
  if (due.expires && turn_.now() - kTimerGrace > due.expires) {
    record(EventKind::schedule_expire,
           fmt::format("scheduled transition \"{}\" was due at {} and has expired", t->name,
                       rfc3339(due.at)));
    return finish_without_write();
  }
  record(EventKind::start, {});
  progress_.workflow = progress_.flow->name;
  progress_.transition =
      static_cast<size_t>(t - progress_.flow->transitions(progress_.entity.state).data());
  progress_.entity.transition = t->name;
  progress_.stage = Stage::guard;
  return Step::next;
}

Result<Machine::Step> Machine::refuse_stale(const Item& item, const EntityView& stored) {
  std::string message = fmt::format(
      "entity {} was modified: If-Match names transaction {}, the latest is {}; read it again",
      item.id, item.if_match, stored.tx);
  if (transaction_.command->lenient) {
    json::Value error = json::object({{"code", "ENTITY_MODIFIED"},
                                      {"message", message},
                                      {"itemIndex", static_cast<uint64_t>(transaction_.at)}});
    transaction_.failed.push_back(
        json::object({{"entityId", item.id}, {"error", std::move(error)}}));
    note_aborted(item, stored);
    progress_ = {};
    ++transaction_.at;
    return Step::next;
  }
  Error error{Code::precondition, "ENTITY_MODIFIED", std::move(message),
              json::print(json::object({{"entityId", item.id}}))};
  if (transaction_.joined || transaction_.command->items.size() != 1) return fail(std::move(error));
  note_aborted(item, stored);
  turn_.refuse(std::move(error));
  return Step::done;
}

void Machine::note_aborted(const Item& item, const EntityView& stored) {
  std::string_view transition =
      item.transition.empty() ? kLoopback : std::string_view(item.transition);
  json::Value data = json::object({{"reason", "ENTITY_MODIFIED"},
                                   {"transitionName", transition},
                                   {"expectedTxId", item.if_match},
                                   {"actualTxId", stored.tx}});
  Event started{EventKind::start, std::string(stored.state), {}, {}};
  Event aborted{EventKind::transition_aborted, std::string(stored.state),
                "the entity was modified by another transaction", json::print(data)};
  turn_.note(encode(Trail{transaction_.tenant,
                          item.id,
                          transaction_.entry_tx,
                          turn_.now(),
                          ChangeKind::none,
                          {},
                          transaction_.user,
                          {std::move(started), std::move(aborted)}}));
}

Result<void> Machine::load_workflows() {
  static const auto none = std::make_shared<const WorkflowSet>();
  TRY(transaction_.flows,
      turn_.read_as<WorkflowSet>(
          flows_key(transaction_.tenant, progress_.entity.model, progress_.entity.version),
          decode_workflows));
  if (!transaction_.flows) transaction_.flows = none;
  progress_.flow =
      progress_.workflow.empty() ? nullptr : transaction_.flows->find(progress_.workflow);
  return {};
}

// An existing entity belongs to the first active workflow that has its state.
Result<Machine::Step> Machine::enter_workflow(const Item& item) {
  progress_.flow = transaction_.flows->with_state(progress_.entity.state);
  if (progress_.flow) progress_.workflow = progress_.flow->name;
  if (progress_.flow == &default_workflow()) warn_of_default();
  if (item.transition.empty()) {
    progress_.stage = progress_.flow ? Stage::scan : Stage::finish;
    if (!progress_.flow)
      record(
          EventKind::force_success,
          fmt::format("no active workflow has the state \"{}\": the data is saved, the state stays",
                      progress_.entity.state));
    return Step::next;
  }
  if (!progress_.flow)
    return workflow_failed(
        fmt::format("no active workflow has the state \"{}\"; transition \"{}\" cannot run",
                    progress_.entity.state, item.transition));
  return start_transition(item);
}

Result<Machine::Step> Machine::start_transition(const Item& item) {
  const Transition* t = progress_.flow->find(progress_.entity.state, item.transition);
  if (!t || t->disabled || t->schedule)
    return fail(
        Code::not_found, "TRANSITION_NOT_FOUND",
        fmt::format(
            "transition \"{}\" {} state \"{}\" of workflow \"{}\"; see GET /entity/{}/transitions",
            item.transition,
            t && t->disabled ? "is disabled in"
            : t              ? "fires by its schedule only in"
                             : "does not exist in",
            progress_.entity.state, progress_.flow->name, item.id),
        json::print(json::object({{"entityId", item.id},
                                  {"transition", item.transition},
                                  {"state", progress_.entity.state}})));
  progress_.transition =
      static_cast<size_t>(t - progress_.flow->transitions(progress_.entity.state).data());
  progress_.named = true;
  progress_.stage = Stage::guard;
  return Step::next;
}

void Machine::warn_of_default() {
  transaction_.warnings.push_back(
      fmt::format("no workflow of model {} version {} matched: the default workflow was used",
                  progress_.entity.model, progress_.entity.version));
}

Result<Machine::Step> Machine::select() {
  const std::vector<Workflow>& all = transaction_.flows->workflows;
  for (; progress_.candidate < all.size(); ++progress_.candidate) {
    const Workflow& w = all[progress_.candidate];
    if (!w.active) continue;
    progress_.flow = &w;
    TRY(Match ruling,
        evaluate(w.criterion, "WORKFLOW",
                 fmt::format("failed to evaluate workflow criterion for \"{}\"", w.name)));
    if (ruling == Match::wait) return Step::wait;
    if (ruling == Match::yes) break;
    Mismatch no = not_matched(fmt::format("workflow \"{}\" skipped:", w.name), w.criterion);
    record(EventKind::workflow_skip, std::move(no.text), std::move(no.data));
  }
  if (progress_.candidate == all.size()) {
    progress_.flow = &default_workflow();
    warn_of_default();
  }
  record(EventKind::workflow_found, fmt::format("workflow \"{}\"", progress_.flow->name));
  progress_.workflow = progress_.flow->name;
  progress_.entity.state = progress_.flow->initial_state;
  progress_.stage = Stage::scan;
  return Step::next;
}

Result<Machine::Step> Machine::guard() {
  const Transition& t = transition();
  TRY(Match ruling, evaluate(t.criterion, "TRANSITION", "failed to evaluate transition criterion"));
  if (ruling == Match::wait) return Step::wait;
  if (ruling == Match::no) {
    Mismatch no = not_matched(fmt::format("transition \"{}\"", t.name), t.criterion);
    if (!progress_.due) return workflow_failed(std::move(no.text));
    record(EventKind::transition_not_match, std::move(no.text), std::move(no.data));
    return finish_without_write();
  }
  progress_.stage = Stage::process;
  progress_.processor = 0;
  return Step::next;
}

// Refuses a cascade that goes on for too long or comes to one state too often.
Result<void> Machine::count_visit() {
  if (progress_.rounds == kMaxCascadeRounds)
    return workflow_failed(fmt::format("cascade depth exceeded ({})", kMaxCascadeRounds));
  ++progress_.rounds;
  const std::string& state = progress_.entity.state;
  auto seen = std::find_if(progress_.visits.begin(), progress_.visits.end(),
                           [&](const StateVisits& v) { return v.state == state; });
  if (seen == progress_.visits.end())
    seen = progress_.visits.insert(progress_.visits.end(), StateVisits{state});
  if (++seen->count <= options_.max_state_visits) return {};
  record(EventKind::cancel, fmt::format("state \"{}\" visited too often", state));
  return workflow_failed(fmt::format("state \"{}\" visited {} times (limit: {})", state,
                                     seen->count, options_.max_state_visits));
}

Result<Machine::Step> Machine::scan() {
  if (progress_.transition == 0 && !progress_.asked) TRY_OK(count_visit());
  const std::vector<Transition>& all = flow().transitions(progress_.entity.state);
  for (; progress_.transition < all.size(); ++progress_.transition) {
    const Transition& t = all[progress_.transition];
    if (!t.automated()) continue;
    TRY(Match ruling,
        evaluate(t.criterion, "TRANSITION", "failed to evaluate transition criterion"));
    if (ruling == Match::wait) return Step::wait;
    if (ruling == Match::yes) {
      progress_.stage = Stage::process;
      progress_.processor = 0;
      return Step::next;
    }
    Mismatch no = not_matched(fmt::format("transition \"{}\"", t.name), t.criterion);
    record(EventKind::transition_not_match, std::move(no.text), std::move(no.data));
  }
  progress_.stage = Stage::finish;
  return Step::next;
}

Result<Machine::Step> Machine::process() {
  const Transition& t = transition();
  if (t.processors.empty()) return enter_next_state(t);
  if (!progress_.asked && progress_.processor < t.processors.size() &&
      commits_before(t.processors[progress_.processor]) && needs_schedule()) {
    progress_.after_schedule = Stage::process;
    progress_.stage = Stage::schedule;
    return Step::next;
  }
  if (progress_.processor == 0 && !progress_.asked)
    record(EventKind::pause, fmt::format("transition \"{}\" waits for its processors", t.name));
  for (; progress_.processor < t.processors.size(); ++progress_.processor) {
    const Processor& processor = t.processors[progress_.processor];
    if (!progress_.asked) {
      progress_.asked = true;
      TRY_OK(dispatch(processor));
      return Step::wait;
    }
    // A call between two transactions has no callbacks that join, and Members repeats it.
    bool between = commits_before(processor) && !processor.start_new_tx;
    if (!between && prepare_retry(processor.retry_policy)) {
      ask_attempt(processor);
      return Step::wait;
    }
    progress_.asked = false;
    TRY_OK(apply_result(processor));
  }
  return enter_next_state(t);
}

Machine::Step Machine::enter_next_state(const Transition& t) {
  record(EventKind::transition_make,
         fmt::format("\"{}\": {} -> {}", t.name, progress_.entity.state, t.next));
  progress_.entity.state = t.next;
  if (progress_.due && progress_.named)
    record(EventKind::schedule_fire, fmt::format("scheduled transition \"{}\" fired", t.name));
  progress_.named = false;
  progress_.transition = 0;
  progress_.stage = Stage::scan;
  return Step::next;
}

Result<void> Machine::save() {
  progress_.entity.tx = transaction_.tx;
  progress_.entity.updated = turn_.now();
  // Criteria see an empty name when no transition was requested; the saved entity says "loopback".
  if (progress_.entity.transition.empty()) progress_.entity.transition = kLoopback;
  TRY_OK(save_entity(turn_, transaction_.tenant, *transaction_.model, progress_.entity,
                     progress_.old_data, std::exchange(progress_.claimed, ClaimedValues::all),
                     std::exchange(progress_.stored_before, StoredBefore::unknown)));
  turn_.note(encode(trail_of(transaction_, turn_.now(), std::exchange(progress_.events, {}))));
  progress_.timings.clear();
  progress_.has_schedule = false;
  progress_.change = ChangeKind::updated;
  if (!transaction_.model->unique_keys.empty()) progress_.old_data = progress_.entity.data;
  return {};
}

void Machine::stamp_commit_time() {
  if (!transaction_.joined && !transaction_.request.empty())
    set_commit_time(turn_, transaction_.tenant, transaction_.tx);
}

bool Machine::needs_schedule() const {
  if (progress_.has_schedule || !progress_.flow) return false;
  const std::vector<Transition>& all = flow().transitions(progress_.entity.state);
  return std::any_of(all.begin(), all.end(),
                     [](const Transition& t) { return t.timed_by_member(); });
}

Result<Machine::Step> Machine::ask_schedules() {
  const std::vector<Transition>& all = flow().transitions(progress_.entity.state);
  for (; progress_.schedule_at < all.size(); ++progress_.schedule_at) {
    const Transition& t = all[progress_.schedule_at];
    if (!t.timed_by_member()) continue;
    const condition::Function& f = *t.schedule->function;
    if (!progress_.asked) {
      progress_.asked = true;
      TRY_OK(begin_call(turn_.dice().uuid1(turn_.now())));
      ask_function(f, Call::schedule, {}, &t);
      return Step::wait;
    }
    if (prepare_retry(f.retry_policy)) {
      ask_function(f, Call::schedule, {}, &t);
      return Step::wait;
    }
    progress_.asked = false;
    add_warnings();
    if (!result_->ok())
      return fail(member_error(fmt::format("schedule function {} failed", f.name), f.tags,
                               f.timeout_ms, Call::schedule));
    TRY(Timing schedule_at, read_timing(t.name, result_->data, turn_.now()));
    progress_.timings.push_back(std::move(schedule_at));
  }
  progress_.schedule_at = 0;
  progress_.has_schedule = true;
  progress_.stage = progress_.after_schedule;
  return Step::next;
}

Result<Machine::Step> Machine::finish() {
  if (needs_schedule()) {
    progress_.after_schedule = Stage::finish;
    progress_.stage = Stage::schedule;
    return Step::next;
  }
  record(EventKind::finish, {}, R"({"success":true})");
  rearm_timers(turn_, transaction_.tenant, progress_.flow, progress_.timings, progress_.entity,
               progress_.events);
  TRY_OK(save());
  return finish_item();
}

// Removes a timer that has no effect from the entity. Data, state and transaction id stay.
Result<Machine::Step> Machine::finish_without_write() {
  TRY_OK(put_entity(turn_, transaction_.tenant, progress_.entity));
  note_events();
  progress_ = {};
  ++transaction_.at;
  return Step::done;
}

// The deletion stays: a callback made it as part of this transaction.
Machine::Step Machine::finish_deleted() {
  record(EventKind::finish, "the entity was deleted by a callback of this transaction",
         R"({"success":true})");
  note_events();
  return finish_item();
}

// Goes on to the next item of the command.
Machine::Step Machine::finish_item() {
  transaction_.ids.push_back(std::move(progress_.entity.id));
  progress_ = {};
  ++transaction_.at;
  return transaction_.at == transaction_.command->items.size() ? Step::done : Step::next;
}

void Machine::note_events() {
  turn_.note(encode(Trail{transaction_.tenant,
                          progress_.entity.id,
                          transaction_.entry_tx,
                          turn_.now(),
                          ChangeKind::none,
                          {},
                          transaction_.user,
                          std::move(progress_.events)}));
}

Bytes Machine::answer() const {
  json::Array ids;
  for (const std::string& id : transaction_.ids)
    ids.emplace_back(id);
  json::Object out;
  out.add("transactionId", transaction_.entry_tx);
  out.add("entityIds", std::move(ids));
  if (!transaction_.failed.empty()) out.add("failed", transaction_.failed);
  if (transaction_.command->warnings && !transaction_.warnings.empty()) {
    json::Array warnings;
    for (const std::string& w : transaction_.warnings)
      warnings.emplace_back(w);
    out.add("warnings", std::move(warnings));
  }
  return json::print(out);
}

}  // namespace pawl::entities
