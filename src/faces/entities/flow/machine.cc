#include "faces/entities/flow/machine.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::entities {

namespace {

std::unexpected<Error> workflow_failed(std::string message) {
  return fail(Code::invalid, "WORKFLOW_FAILED", std::move(message));
}

constexpr std::string_view kLoopback = "loopback";

}  // namespace

Result<Flows> decode_flows(BytesView bytes) {
  TRY(json::Value list, json::parse(bytes, {.max_bytes = limits::kCellBytes}));
  return load_workflows(list.array());
}

Result<Bytes> Machine::run() {
  job_.start = turn_.mark();
  return drive();
}

Result<Bytes> Machine::resume(const Verdict& verdict) {
  verdict_ = &verdict;
  if (verdict.ok()) TRY_OK(look_again());
  return drive();
}

Result<Bytes> Machine::drive() {
  while (true) {
    Result<Step> step = this->step();
    if (!step) {
      // A clock's receipt may be tried again; a dispatch has no second try.
      if (!job_.settles || (p_.due && step.error().retryable)) return fail(std::move(step.error()));
      return give_up(std::move(step.error()));
    }
    if (*step == Step::wait) return Bytes();
    if (*step != Step::done) continue;
    stamp();
    return answer();
  }
}

Bytes Machine::give_up(Error error) {
  turn_.rewind(job_.start);
  record(EventKind::finish, error.message, R"({"success":false})");
  Trail trail{job_.tenant,      p_.entity.id, job_.entry_tx, turn_.now(),
              ChangeKind::none, {},           job_.user,     std::move(p_.events)};
  turn_.note(encode(trail));
  turn_.refuse(std::move(error));
  return {};
}

Result<Machine::Step> Machine::step() {
  switch (p_.stage) {
    case Stage::begin: return begin();
    case Stage::select: return select();
    case Stage::guard: return guard();
    case Stage::process: return process();
    case Stage::scan: return scan();
    case Stage::finish: return finish();
    case Stage::time: return time();
    case Stage::gone: return gone();
  }
  return workflow_failed("the job is in no stage");
}

Result<Machine::Step> Machine::begin() {
  if (job_.at == job_.command->items.size()) return Step::done;
  const Item& item = job_.command->items[job_.at];
  switch (item.op) {
    case Item::create: return begin_new(item);
    case Item::due: return begin_due(item);
    default: return begin_old(item);
  }
}

// The document against the model, which grows where its change level lets it.
Result<void> Machine::take_data(const json::Value& value, std::string data) {
  const Model& model = *job_.model;
  if (model.level == Level::none) {
    auto checked = check(model.shape, value);
    if (!checked && checked.error().reason == "INCOMPATIBLE_TYPE") {
      TRY(json::Value detail, json::parse(checked.error().detail));
      detail.object().add("entityName", model.name);
      detail.object().add("entityVersion", std::to_string(model.version));
      checked.error().detail = json::print(detail);
    }
    TRY_OK(checked);
  } else if (value.is_null() || !fits(model.shape, value)) {
    Shape grown = model.shape;
    TRY(bool grew, extend(grown, value, model.level));
    if (grew) {
      Model next = model;
      next.shape = std::move(grown);
      write_model(turn_, job_.tenant, std::move(next));
      TRY(job_.model, find_model(turn_, job_.tenant, p_.entity.model, p_.entity.version));
    }
  }
  p_.entity.data = std::move(data);
  return {};
}

Result<Machine::Step> Machine::begin_new(const Item& item) {
  TRY(job_.model, find_model(turn_, job_.tenant, item.model, item.version));
  if (!job_.model) return fail(model_not_found(item.model, item.version, false));
  if (!job_.model->locked)
    return fail(Code::conflict, "MODEL_NOT_LOCKED",
                fmt::format("model {} version {} is not locked; lock it before creating entities",
                            item.model, item.version),
                json::print(json::object({{"entityName", item.model},
                                          {"entityVersion", item.version},
                                          {"expectedState", "LOCKED"},
                                          {"actualState", "UNLOCKED"}})));
  Entity& e = p_.entity;
  e.model = item.model;
  e.version = item.version;
  TRY_OK(take_data(item.value, item.data));
  e.id = new_entity_id(turn_.dice(), turn_.now(), job_.at, item.model, item.version);
  e.created = turn_.now();
  e.tx = job_.tx;
  p_.change = ChangeKind::created;
  p_.was = Was::nowhere;
  TRY_OK(load_workflow());
  record(EventKind::start, {});
  p_.stage = Stage::select;
  return Step::go;
}

// The entity in hand, as it is stored. Its old document is kept only where something compares it.
void Machine::take_up(const EntityView& stored, bool with_data) {
  EntityView facts = stored;
  if (!with_data) facts.data = {};
  p_.entity = copy_of(facts);
  if (!job_.model->unique_keys.empty()) p_.old_data = stored.data;
  p_.change = ChangeKind::updated;
}

Result<Machine::Step> Machine::begin_old(const Item& item) {
  TRY(Found found, find_entity(turn_, job_.tenant, item.id));
  if (!found.exists()) return fail(entity_not_found(item.id));
  EntityView& stored = found.view;
  if (!item.if_match.empty() && item.if_match != stored.tx) return stale(item, stored);
  TRY(job_.model, find_model(turn_, job_.tenant, stored.model, stored.version));
  if (!job_.model) return fail(model_not_found(stored.model, stored.version));
  take_up(stored, item.op != Item::update);
  p_.entity.transition = item.transition;
  if (item.op == Item::update) {
    TRY_OK(take_data(item.value, item.data));
  } else if (item.op == Item::patch) {
    TRY(json::Value whole, json::parse(stored.data, {.max_bytes = limits::kCellBytes}));
    merge_sorted(whole, item.value);
    std::string text = json::print(whole);
    TRY_OK(take_data(whole, std::move(text)));
  }
  TRY_OK(load_workflow());
  record(EventKind::start, {});
  return enter_workflow(item);
}

Result<Machine::Step> Machine::begin_due(const Item& item) {
  TRY(Found found, find_entity(turn_, job_.tenant, item.id));
  const EntityView& stored = found.view;
  const std::string& timer = item.if_match;  // the effect that is due
  if (!found.exists() ||
      std::find(stored.timers.begin(), stored.timers.end(), timer) == stored.timers.end())
    return Step::done;
  TRY(job_.model, find_model(turn_, job_.tenant, stored.model, stored.version));
  if (!job_.model) return Step::done;
  take_up(stored, true);
  p_.due = p_.named = true;
  std::erase(p_.entity.timers, timer);
  TRY_OK(load_workflow());
  p_.flow = job_.flows->holding(p_.entity.state);
  const Transition* t = p_.flow ? p_.flow->find(p_.entity.state, item.transition) : nullptr;
  if (!t || !t->schedule) return skip();
  TRY(Due due, parse_timer_id(timer));
  if (due.expires && turn_.now() - kTimerGrace > due.expires) {
    record(EventKind::schedule_expire,
           fmt::format("scheduled transition \"{}\" was due at {} and has expired", t->name,
                       rfc3339(due.at)));
    return skip();
  }
  record(EventKind::start, {});
  p_.workflow = p_.flow->name;
  p_.transition = static_cast<size_t>(t - p_.flow->transitions(p_.entity.state).data());
  p_.entity.transition = t->name;
  p_.stage = Stage::guard;
  return Step::go;
}

Result<Machine::Step> Machine::stale(const Item& item, const EntityView& stored) {
  std::string message = fmt::format(
      "entity {} was modified: If-Match names transaction {}, the latest is {}; read it again",
      item.id, item.if_match, stored.tx);
  if (job_.command->lenient) {
    json::Value error = json::object({{"code", "ENTITY_MODIFIED"},
                                      {"message", message},
                                      {"itemIndex", static_cast<uint64_t>(job_.at)}});
    job_.failed.push_back(json::object({{"entityId", item.id}, {"error", std::move(error)}}));
    note_aborted(item, stored);
    p_ = {};
    ++job_.at;
    return Step::go;
  }
  Error error{Code::precondition, "ENTITY_MODIFIED", std::move(message),
              json::print(json::object({{"entityId", item.id}}))};
  if (job_.joined || job_.command->items.size() != 1) return fail(std::move(error));
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
  turn_.note(encode(Trail{job_.tenant,
                          item.id,
                          job_.entry_tx,
                          turn_.now(),
                          ChangeKind::none,
                          {},
                          job_.user,
                          {std::move(started), std::move(aborted)}}));
}

Result<void> Machine::load_workflow() {
  static const auto none = std::make_shared<const Flows>();
  TRY(job_.flows, turn_.read_as<Flows>(flows_key(job_.tenant, p_.entity.model, p_.entity.version),
                                       decode_flows));
  if (!job_.flows) job_.flows = none;
  p_.flow = p_.workflow.empty() ? nullptr : job_.flows->named(p_.workflow);
  return {};
}

// An entity that exists belongs to the first active workflow that has its state.
Result<Machine::Step> Machine::enter_workflow(const Item& item) {
  p_.flow = job_.flows->holding(p_.entity.state);
  if (p_.flow) p_.workflow = p_.flow->name;
  if (item.transition.empty()) {
    p_.stage = p_.flow ? Stage::scan : Stage::finish;
    if (!p_.flow)
      record(
          EventKind::force_success,
          fmt::format("no active workflow has the state \"{}\": the data is saved, the state stays",
                      p_.entity.state));
    return Step::go;
  }
  if (!p_.flow)
    return workflow_failed(
        fmt::format("no active workflow has the state \"{}\"; transition \"{}\" cannot run",
                    p_.entity.state, item.transition));
  const Transition* t = p_.flow->find(p_.entity.state, item.transition);
  if (!t || t->disabled || t->schedule)
    return fail(
        Code::not_found, "TRANSITION_NOT_FOUND",
        fmt::format(
            "transition \"{}\" {} state \"{}\" of workflow \"{}\"; see GET /entity/{}/transitions",
            item.transition,
            t && t->disabled ? "is disabled in"
            : t              ? "fires by its schedule only in"
                             : "does not exist in",
            p_.entity.state, p_.flow->name, item.id),
        json::print(json::object(
            {{"entityId", item.id}, {"transition", item.transition}, {"state", p_.entity.state}})));
  p_.transition = static_cast<size_t>(t - p_.flow->transitions(p_.entity.state).data());
  p_.named = true;
  p_.stage = Stage::guard;
  return Step::go;
}

Result<Machine::Step> Machine::select() {
  const std::vector<Workflow>& all = job_.flows->workflows;
  for (; p_.candidate < all.size(); ++p_.candidate) {
    const Workflow& w = all[p_.candidate];
    if (!w.active) continue;
    p_.flow = &w;
    TRY(Ruling ruling,
        judge(w.criterion, "WORKFLOW",
              fmt::format("failed to evaluate workflow criterion for \"{}\"", w.name)));
    if (ruling == Ruling::wait) return Step::wait;
    if (ruling == Ruling::yes) break;
    Refusal no = not_matched(fmt::format("workflow \"{}\" skipped:", w.name), w.criterion);
    record(EventKind::workflow_skip, std::move(no.text), std::move(no.data));
  }
  if (p_.candidate == all.size()) {
    p_.flow = &default_workflow();
    job_.warnings.push_back(
        fmt::format("no workflow of model {} version {} matched: the default workflow was used",
                    p_.entity.model, p_.entity.version));
  }
  record(EventKind::workflow_found, fmt::format("workflow \"{}\"", p_.flow->name));
  p_.workflow = p_.flow->name;
  p_.entity.state = p_.flow->initial_state;
  p_.stage = Stage::scan;
  return Step::go;
}

Result<Machine::Step> Machine::guard() {
  const Transition& t = transition();
  TRY(Ruling ruling, judge(t.criterion, "TRANSITION", "failed to evaluate transition criterion"));
  if (ruling == Ruling::wait) return Step::wait;
  if (ruling == Ruling::no) {
    Refusal no = not_matched(fmt::format("transition \"{}\"", t.name), t.criterion);
    if (!p_.due) return workflow_failed(std::move(no.text));
    record(EventKind::transition_not_match, std::move(no.text), std::move(no.data));
    return skip();
  }
  p_.stage = Stage::process;
  p_.processor = 0;
  return Step::go;
}

Result<Machine::Step> Machine::scan() {
  if (p_.transition == 0 && !p_.asked) {
    if (p_.rounds == kCascadeRounds)
      return workflow_failed(fmt::format("cascade depth exceeded ({})", kCascadeRounds));
    ++p_.rounds;
    auto seen = std::find_if(p_.visits.begin(), p_.visits.end(),
                             [&](const auto& v) { return v.first == p_.entity.state; });
    if (seen == p_.visits.end()) seen = p_.visits.insert(p_.visits.end(), {p_.entity.state, 0});
    if (++seen->second > max_visits_) {
      record(EventKind::cancel, fmt::format("state \"{}\" visited too often", p_.entity.state));
      return workflow_failed(fmt::format("state \"{}\" visited {} times (limit: {})",
                                         p_.entity.state, seen->second, max_visits_));
    }
  }
  const std::vector<Transition>& all = flow().transitions(p_.entity.state);
  for (; p_.transition < all.size(); ++p_.transition) {
    const Transition& t = all[p_.transition];
    if (!t.automated()) continue;
    TRY(Ruling ruling, judge(t.criterion, "TRANSITION", "failed to evaluate transition criterion"));
    if (ruling == Ruling::wait) return Step::wait;
    if (ruling == Ruling::yes) {
      p_.stage = Stage::process;
      p_.processor = 0;
      return Step::go;
    }
    Refusal no = not_matched(fmt::format("transition \"{}\"", t.name), t.criterion);
    record(EventKind::transition_not_match, std::move(no.text), std::move(no.data));
  }
  p_.stage = Stage::finish;
  return Step::go;
}

Result<Machine::Step> Machine::process() {
  const Transition& t = transition();
  if (t.processors.empty()) return make(t);
  if (!p_.asked && p_.processor < t.processors.size() &&
      commits_before(t.processors[p_.processor]) && untimed()) {
    p_.after = Stage::process;
    p_.stage = Stage::time;
    return Step::go;
  }
  if (p_.processor == 0 && !p_.asked)
    record(EventKind::pause, fmt::format("transition \"{}\" waits for its processors", t.name));
  for (; p_.processor < t.processors.size(); ++p_.processor) {
    const Processor& processor = t.processors[p_.processor];
    if (!p_.asked) {
      p_.asked = true;
      TRY_OK(dispatch(processor));
      return Step::wait;
    }
    // A call outside of a transaction has no callbacks that join, and is repeated by the members
    // themselves.
    bool outside = commits_before(processor) && !processor.start_new_tx;
    if (!outside && try_again(processor.retry_policy)) {
      ask_attempt(processor);
      return Step::wait;
    }
    p_.asked = false;
    TRY_OK(settle(processor));
  }
  return make(t);
}

Machine::Step Machine::make(const Transition& t) {
  record(EventKind::transition_make,
         fmt::format("\"{}\": {} -> {}", t.name, p_.entity.state, t.next));
  p_.entity.state = t.next;
  if (p_.due && p_.named)
    record(EventKind::schedule_fire, fmt::format("scheduled transition \"{}\" fired", t.name));
  p_.named = false;
  p_.transition = 0;
  p_.stage = Stage::scan;
  return Step::go;
}

Result<void> Machine::save() {
  p_.entity.tx = job_.tx;
  p_.entity.updated = turn_.now();
  // Criteria see the transition that was named, or none; that there was none is recorded with the
  // save.
  if (p_.entity.transition.empty()) p_.entity.transition = kLoopback;
  TRY_OK(save_entity(turn_, job_.tenant, *job_.model, p_.entity, p_.old_data,
                     std::exchange(p_.held, Held::all), std::exchange(p_.was, Was::unknown)));
  turn_.note(encode(trail_of(job_, turn_.now(), std::exchange(p_.events, {}))));
  p_.timings.clear();
  p_.timed = false;
  p_.change = ChangeKind::updated;
  if (!job_.model->unique_keys.empty()) p_.old_data = p_.entity.data;
  return {};
}

void Machine::stamp() {
  if (!job_.joined && !job_.request.empty()) stamp_together(turn_, job_.tenant, job_.tx);
}

bool Machine::untimed() const {
  if (p_.timed || !p_.flow) return false;
  const std::vector<Transition>& all = flow().transitions(p_.entity.state);
  return std::any_of(all.begin(), all.end(),
                     [](const Transition& t) { return t.timed_by_member(); });
}

Result<Machine::Step> Machine::time() {
  const std::vector<Transition>& all = flow().transitions(p_.entity.state);
  for (; p_.timing < all.size(); ++p_.timing) {
    const Transition& t = all[p_.timing];
    if (!t.timed_by_member()) continue;
    const condition::Function& f = *t.schedule->function;
    if (!p_.asked) {
      p_.asked = true;
      TRY_OK(begin_call(turn_.dice().uuid1(turn_.now())));
      ask_function(f, Call::schedule, {}, &t);
      return Step::wait;
    }
    if (try_again(f.retry_policy)) {
      ask_function(f, Call::schedule, {}, &t);
      return Step::wait;
    }
    p_.asked = false;
    for (const std::string& w : verdict_->warnings)
      job_.warnings.push_back(w);
    if (!verdict_->ok())
      return fail(member_error(fmt::format("schedule function {} failed", f.name), f.tags,
                               f.timeout_ms, Call::schedule));
    TRY(Timing timing, read_timing(t.name, verdict_->data, turn_.now()));
    p_.timings.push_back(std::move(timing));
  }
  p_.timing = 0;
  p_.timed = true;
  p_.stage = p_.after;
  return Step::go;
}

Result<Machine::Step> Machine::finish() {
  if (untimed()) {
    p_.after = Stage::finish;
    p_.stage = Stage::time;
    return Step::go;
  }
  record(EventKind::finish, {}, R"({"success":true})");
  rearm(turn_, job_.tenant, p_.flow, p_.timings, p_.entity, p_.events);
  TRY_OK(save());
  job_.ids.push_back(std::move(p_.entity.id));
  p_ = {};
  ++job_.at;
  return job_.at == job_.command->items.size() ? Step::done : Step::go;
}

// A timer that came to nothing is taken off the entity; its data, state and transaction stay.
Result<Machine::Step> Machine::skip() {
  TRY_OK(put_entity(turn_, job_.tenant, p_.entity));
  turn_.note(encode(Trail{job_.tenant,
                          p_.entity.id,
                          job_.entry_tx,
                          turn_.now(),
                          ChangeKind::none,
                          {},
                          job_.user,
                          std::move(p_.events)}));
  p_ = {};
  ++job_.at;
  return Step::done;
}

// The deletion stands: it is part of this transaction, and what it was part of is done.
Machine::Step Machine::gone() {
  record(EventKind::finish, "the entity was deleted by a callback of this transaction",
         R"({"success":true})");
  turn_.note(encode(Trail{job_.tenant,
                          p_.entity.id,
                          job_.entry_tx,
                          turn_.now(),
                          ChangeKind::none,
                          {},
                          job_.user,
                          std::move(p_.events)}));
  job_.ids.push_back(std::move(p_.entity.id));
  p_ = {};
  ++job_.at;
  return job_.at == job_.command->items.size() ? Step::done : Step::go;
}

Bytes Machine::answer() const {
  json::Array ids;
  for (const std::string& id : job_.ids)
    ids.emplace_back(id);
  json::Object out;
  out.add("transactionId", job_.entry_tx);
  out.add("entityIds", std::move(ids));
  if (!job_.failed.empty()) out.add("failed", job_.failed);
  if (job_.command->warnings && !job_.warnings.empty()) {
    json::Array warnings;
    for (const std::string& w : job_.warnings)
      warnings.emplace_back(w);
    out.add("warnings", std::move(warnings));
  }
  return json::print(out);
}

}  // namespace pawl::entities
