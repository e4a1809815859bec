// The player of process definitions.

#include <fmt/format.h>

#include <map>

#include "json/text.h"
#include "sim/outside/stage.h"

namespace pawl::sim {
namespace {

constexpr int64_t kLeaseSeconds = 300;
constexpr int64_t kPollMs = 30'000;

bool is_final(std::string_view status) {
  return status == "COMPLETED" || status == "FAILED" || status == "CANCELLED";
}

struct StepFacts {
  std::string type, job_type;
  std::set<std::string> branches;  // of a decision: the steps that may follow
  std::vector<std::string> rules;  // of a decision table: what each rule asks for
};

void add_branch(const json::Value* target, StepFacts& step) {
  if (target && target->is_string() && !target->string().empty())
    step.branches.insert(target->string());
}

StepFacts facts_of(const json::Value& step) {
  StepFacts out{
      std::string(step.string_or("type")), std::string(step.string_or("jobType")), {}, {}};
  if (const json::Value* next = step.find("conditionalNextSteps"); next && next->is_object())
    for (const auto& [condition, target] : next->object())
      add_branch(&target, out);
  if (const json::Value* table = step.find("decisionTable")) {
    if (const json::Value* rules = table->find("rules"); rules && rules->is_array())
      for (const json::Value& rule : rules->array()) {
        const json::Value* when = rule.find("when");
        out.rules.push_back(when ? json::print(*when) : "{}");
      }
  }
  if (out.type == "DECISION") add_branch(step.find("nextStep"), out);
  return out;
}

Part step_part(const std::string& definition, const std::string& step) {
  return {"step", definition + "/" + step};
}

Part branch_part(const std::string& definition, const std::string& step,
                 const std::string& target) {
  return {"branch", fmt::format("{}/{} -> {}", definition, step, target)};
}

Part rule_part(const std::string& definition, const std::string& step, const StepFacts& facts,
               size_t rule) {
  return {"rule", fmt::format("{}/{} rule {}: {}", definition, step, rule, facts.rules[rule])};
}

using Steps = std::map<std::string, StepFacts>;  // by id
std::map<std::string, Steps> facts_of(const Script& script) {
  std::map<std::string, Steps> out;
  for (const json::Value& definition : script.definitions) {
    const json::Value* steps = definition.find("steps");
    Steps& facts = out[std::string(definition.string_or("id"))];
    if (steps && steps->is_array())
      for (const json::Value& step : steps->array())
        facts[std::string(step.string_or("id"))] = facts_of(step);
  }
  return out;
}

struct ProcessLife;

// One instance of a life: the one that was started, or one that it started.
struct Played {
  ProcessLife* life = nullptr;
  std::string id, definition;
  std::string status;
  std::vector<std::string> at;          // its current steps
  std::set<std::string> expected;       // steps at which somebody comes
  Time changed = 0;                     // when something was seen to change
  bool over = false;                    // it ended, and its history was read
  std::map<std::string, int> attempts;  // jobs taken, by step
};

struct ProcessLife : Life {
  using Life::Life;
  json::Object variables;
  std::vector<std::unique_ptr<Played>> instances;
};

class ProcessPlayer {
 public:
  ProcessPlayer(const Script& script, const PlayOptions& options)
      : script_(script), options_(options), facts_(facts_of(script)), stage_(script, options) {
    for (const auto& [id, steps] : facts_)
      for (const auto& [step, facts] : steps)
        if (!facts.job_type.empty()) job_types_.insert(facts.job_type);
    for (uint64_t number : options.lives)
      lives_.push_back(std::make_unique<ProcessLife>(options.seed, number));
  }

  Result<std::vector<LifeEnd>> play() {
    upload();
    TRY_OK(stage_.run([this] { return running(); }));
    // What the instances reached that still wait.
    for (auto& life : lives_)
      for (auto& instance : life->instances)
        if (!instance->over) read_events(*instance);
    stage_.finish_reading();
    std::vector<LifeEnd> out;
    for (auto& life : lives_) {
      judge_end(*life);
      out.push_back(std::move(life->end));
    }
    return out;
  }

 private:
  bool running() const {
    if (started_ < lives_.size()) return true;
    for (const auto& life : lives_)
      for (const auto& instance : life->instances)
        if (!instance->over) return true;
    return false;
  }

  // -- Definitions and starts.

  void upload(size_t from = 0) {
    if (from == script_.definitions.size()) return start_all();
    call_until_answered(stage_.world(),
                        {"POST", "/v1/definitions", json::print(script_.definitions[from])},
                        [this, from](const wire::Response& r) {
                          if (r.status >= 300)
                            return stage_.refuse(fmt::format(
                                "the server refuses definition \"{}\": {}",
                                script_.definitions[from].string_or("id"), reason_of(r)));
                          upload(from + 1);
                        });
  }

  void start_all() {
    for (auto& life : lives_) {
      ProcessLife* one = life.get();
      stage_.after(stage_.delay_of(*one), [this, one] { start(*one); });
    }
    if (!job_types_.empty()) poll();
  }

  json::Object start_variables(const ProcessLife& life) const {
    if (!script_.starts.empty()) return life.dice.pick("start", script_.starts);
    const json::Value* schema = &script_.start_schema;
    if (schema->is_null()) schema = script_.definitions[0].find("inputSchema");
    if (!schema) return {};
    json::Value made = sample(*schema, life.dice);
    return made.is_object() ? made.object() : json::Object{};
  }

  void start(ProcessLife& life) {
    stage_.begin(life);
    life.variables = start_variables(life);
    const std::string definition(script_.definitions[0].string_or("id"));
    json::Value body = json::object({{"definitionId", definition}, {"variables", life.variables}});
    stage_.tell(life, fmt::format("{} starts with {}", definition, json::print(life.variables)));
    const std::string key = fmt::format("life-{}", life.end.life);
    stage_.send(life, {"POST", "/v1/instances", json::print(body), {{"Idempotency-Key", key}}},
                [this, &life](const wire::Response& r) {
                  ++started_;
                  if (r.status >= 300)
                    return stage_.refuse(fmt::format("the server refuses to start with {}: {}",
                                                     json::print(life.variables), reason_of(r)));
                  see(adopt(life, body_of(r)), body_of(r));
                  send_early_signals(*life.instances.front());
                });
  }

  Played& adopt(ProcessLife& life, const json::Value& instance) {
    auto played = std::make_unique<Played>();
    played->life = &life;
    played->id = instance.string_or("id");
    played->definition = instance.string_or("definitionId");
    played->changed = stage_.elapsed();
    known_[played->id] = played.get();
    life.instances.push_back(std::move(played));
    Played& made = *life.instances.back();
    stage_.keep_looking(made.changed, [this, &made]() -> std::optional<Time> {
      if (made.over || is_final(made.status)) return std::nullopt;
      look(made);
      return made.changed;
    });
    return made;
  }

  // -- Looking at instances.

  void look(Played& played) {
    stage_.read("/v1/instances/" + played.id,
                [this, &played](const json::Value& instance) { see(played, instance); });
  }

  void see(Played& played, const json::Value& instance) {
    if (played.over || is_final(played.status)) return;
    std::vector<std::string> at;
    if (const json::Value* steps = instance.find("currentStepIds"); steps && steps->is_array())
      for (const json::Value& step : steps->array())
        at.push_back(step.string());
    const std::string status(instance.string_or("status"));
    check_invariants(played, instance);
    if (at != played.at || status != played.status) {
      played.at = at;
      played.status = status;
      played.changed = stage_.elapsed();
      stage_.touch();
      stage_.tell(*played.life, where_is(played));
    }
    expect_people(played);
    if (is_final(status)) finish(played, instance);
  }

  static std::string where_is(const Played& played) {
    if (is_final(played.status)) return fmt::format("{} is {}", played.definition, played.status);
    return fmt::format("{} is at {}", played.definition, fmt::join(played.at, ", "));
  }

  void check_invariants(Played& played, const json::Value& instance) {
    if (script_.invariants.empty()) return;
    const json::Value* own = instance.find("variables");
    json::Object variables = own && own->is_object() ? own->object() : json::Object{};
    for (std::string_view name : {"status", "definitionId", "currentStepIds"})
      if (const json::Value* v = instance.find(name)) variables.set(std::string(name), *v);
    stage_.check_invariants(*played.life, variables);
  }

  void finish(Played& played, const json::Value& instance) {
    const std::string next(instance.string_or("nextInstanceId"));
    if (!next.empty() && !known_.contains(next)) adopt_by_id(*played.life, next);
    if (&played == played.life->instances.front().get()) {
      played.life->end.took = stage_.elapsed() - played.life->began;
      played.life->end.reason = instance.string_or("failureReason");
    }
    if (!instance.string_or("failureReason").empty())
      stage_.tell(*played.life, fmt::format("the reason: {}", instance.string_or("failureReason")));
    played.over = true;
    read_events(played);
  }

  void adopt_by_id(ProcessLife& life, const std::string& id) {
    stage_.read("/v1/instances/" + id, [this, &life, id](const json::Value& instance) {
      if (!known_.contains(id)) see(adopt(life, instance), instance);
    });
  }

  // -- What an instance reached.

  // The events name the rules of decision tables only together with the variables, which cost more.
  void read_events(Played& played) {
    bool tables = false;
    for (const auto& [step, facts] : facts_[played.definition])
      tables = tables || !facts.rules.empty();
    stage_.read(fmt::format("/pawl/v1/processes/instances/{}/events{}", played.id,
                            tables ? "" : "?variables=false"),
                [this, &played](const json::Value& events) {
                  const json::Value* items = events.find("items");
                  if (!items || !items->is_array()) return;
                  for (const json::Value& event : items->array())
                    if (const json::Value* facts = event.find("facts"); facts && facts->is_array())
                      take_facts(played, facts->array());
                });
  }

  // A decision is followed, in the same event, by the entry of the step that it chose.
  void take_facts(Played& played, const json::Array& facts) {
    const Steps& known = facts_[played.definition];
    std::set<Part>& reached = played.life->end.reached;
    std::vector<Steps::const_iterator> decided;
    for (const json::Value& fact : facts) {
      const std::string step(fact.string_or("stepId"));
      auto found = known.find(step);
      if (found == known.end()) continue;
      if (fact.string_or("kind") == "entered") {
        reached.insert(step_part(played.definition, step));
        auto chose = std::find_if(decided.begin(), decided.end(), [&](const auto& decision) {
          return decision->second.branches.contains(step);
        });
        if (chose == decided.end()) continue;
        reached.insert(branch_part(played.definition, (*chose)->first, step));
        decided.erase(chose);
      } else if (fact.string_or("status") == "COMPLETED") {
        if (!found->second.branches.empty()) decided.push_back(found);
        take_rules(played, *found, fact);
      }
    }
  }

  static void take_rules(Played& played, const Steps::value_type& step, const json::Value& fact) {
    const json::Value* rules = fact.find("rules");
    if (!rules || !rules->is_array()) return;
    for (const json::Value& rule : rules->array())
      if (const auto index = rule.as_uint64(); index && *index < step.second.rules.size())
        played.life->end.reached.insert(
            rule_part(played.definition, step.first, step.second, *index));
  }

  // -- Workers.

  void poll() {
    json::Array types;
    for (const std::string& type : job_types_)
      types.emplace_back(type);
    json::Value body = json::object({{"workerId", "simulated"},
                                     {"jobTypes", std::move(types)},
                                     {"maxJobs", 20},
                                     {"leaseSeconds", kLeaseSeconds},
                                     {"maxWaitMs", kPollMs}});
    stage_.poll({{"POST", "/v1/jobs/poll", json::print(body)},
                 "jobs",
                 [this] { return running(); },
                 [this](const json::Value& job) { take_job(job); }});
  }

  void take_job(const json::Value& job) {
    const std::string instance(job.string_or("instanceId"));
    if (auto found = known_.find(instance); found != known_.end()) return work(*found->second, job);
    // The instance was started by another one: by its chain, or as its child.
    call_until_answered(stage_.world(), {"GET", "/v1/instances/" + instance},
                        [this, job, instance](const wire::Response& r) {
                          const json::Value body = body_of(r);
                          for (std::string_view link : {"previousInstanceId", "parentInstanceId"}) {
                            auto from = known_.find(std::string(body.string_or(link)));
                            if (from == known_.end() || known_.contains(instance)) continue;
                            see(adopt(*from->second->life, body), body);
                          }
                          if (auto found = known_.find(instance); found != known_.end())
                            work(*found->second, job);
                        });
  }

  void work(Played& played, const json::Value& job) {
    ProcessLife& life = *played.life;
    const std::string type(job.string_or("jobType")), step(job.string_or("stepId"));
    const int attempt = ++played.attempts[step];
    const std::string name = fmt::format("job {}/{}/{}", played.definition, step, attempt);
    const Behaviour& behaviour = behaviour_of(script_.jobs, type);
    stage_.tell(life, fmt::format("a worker takes job {} of step {}{}", type, step,
                                  attempt > 1 ? fmt::format(", attempt {}", attempt) : ""));
    if (life.dice.happens(name + " dies", behaviour.dies))
      return stage_.tell(life, fmt::format("the worker of {} is never heard of again", type));
    Time takes = life.dice.span(name + " takes", behaviour.takes);
    const Time lease = kLeaseSeconds * kSecond;
    if (life.dice.happens(name + " late", behaviour.late))
      takes = lease + takes + 10 * kSecond;
    else if (takes > lease - 60 * kSecond)
      keep_lease(life, job, stage_.elapsed() + takes);
    stage_.after(takes,
                 [this, &played, &behaviour, job, name] { answer(played, behaviour, job, name); });
    if (life.dice.happens(name + " twice", behaviour.twice))
      stage_.after(
          takes + life.dice.span(name + " again", {kSecond, 600 * kSecond}),
          [this, &played, &behaviour, job, name] { answer(played, behaviour, job, name); });
  }

  // Extends the lease of a job that takes long, as workers do.
  void keep_lease(Life& life, const json::Value& job, Time until) {
    const int64_t seconds = std::min<int64_t>((until - stage_.elapsed()) / kSecond + 60, 12 * 3600);
    json::Value body = json::object({{"workerId", "simulated"}, {"leaseSeconds", seconds}});
    const std::string path = fmt::format("/v1/jobs/{}/heartbeat", job.string_or("id"));
    stage_.world().call({"POST", path, json::print(body)},
                        [](const std::optional<wire::Response>&) {});
    if (stage_.elapsed() + seconds * kSecond > until) return;
    stage_.after((seconds - 60) * kSecond,
                 [this, &life, job, until] { keep_lease(life, job, until); });
  }

  void answer(Played& played, const Behaviour& behaviour, const json::Value& job,
              const std::string& name) {
    ProcessLife& life = *played.life;
    if (life.dice.happens(name + " fails", behaviour.fails))
      return report_failure(played, job, behaviour.message, behaviour.retryable);
    json::Object result = life.dice.pick(name + " result", behaviour.results);
    if (!behaviour.program.empty()) {
      auto made = options_.run_worker(behaviour.program, job);
      if (!made) return report_failure(played, job, made.error().message, true);
      result = std::move(*made);
    }
    const std::string path = fmt::format("/v1/jobs/{}/complete", job.string_or("id"));
    stage_.tell(life, fmt::format("the worker completes {} with {}", job.string_or("jobType"),
                                  json::print(result)));
    json::Value body = json::object({{"workerId", "simulated"}, {"variables", std::move(result)}});
    stage_.send(life, {"POST", path, json::print(body)},
                [this, &played, job](const wire::Response& r) {
                  if (r.status >= 400 && r.status != 404 && r.status != 409) {
                    refused_result(played, job, reason_of(r));
                    return report_failure(played, job, reason_of(r), false);
                  }
                  look(played);
                });
  }

  void refused_result(Played& played, const json::Value& job, const std::string& why) {
    const std::string type(job.string_or("jobType"));
    played.life->end.problems.insert(
        {"refused-result", fmt::format("a result of job {} is refused: {}", type, why)});
  }

  void report_failure(Played& played, const json::Value& job, const std::string& why,
                      bool retryable) {
    stage_.tell(*played.life, fmt::format("job {} fails{}: {}", job.string_or("jobType"),
                                          retryable ? "" : " for good", why));
    json::Value body =
        json::object({{"workerId", "simulated"}, {"errorMessage", why}, {"retryable", retryable}});
    const std::string path = fmt::format("/v1/jobs/{}/fail", job.string_or("id"));
    stage_.send(*played.life, {"POST", path, json::print(body)},
                [this, &played](const wire::Response&) { look(played); });
  }

  // -- People and signals.

  void expect_people(Played& played) {
    std::erase_if(played.expected, [&](const std::string& step) {
      return std::find(played.at.begin(), played.at.end(), step) == played.at.end();
    });
    for (const std::string& step : played.at) {
      const std::string& type = facts_[played.definition][step].type;
      if ((type != "USER_TASK" && type != "WAIT") || !played.expected.insert(step).second) continue;
      const int attempt = ++played.attempts[step];
      const std::string name = fmt::format("{} {}/{}/{}", type, played.definition, step, attempt);
      if (type == "USER_TASK")
        expect_one(played, step, name, script_.tasks, "/user-tasks/" + step + "/complete");
      else
        expect_one(played, step, name, script_.signals, "/signals/" + step);
    }
  }

  void expect_one(Played& played, const std::string& step, const std::string& name,
                  const std::map<std::string, Behaviour>& behaviours, const std::string& path) {
    const Behaviour& behaviour = behaviour_of(behaviours, step);
    if (behaviour.early) return;  // it comes by itself
    come(played, behaviour, name, path,
         fmt::format("{} of step {}",
                     path.starts_with("/user") ? "a person completes the task" : "the signal comes",
                     step));
  }

  void come(Played& played, const Behaviour& behaviour, const std::string& name,
            const std::string& path, const std::string& what) {
    const LifeDice& dice = played.life->dice;
    if (dice.happens(name + " never", behaviour.never)) return;
    const Time takes = dice.span(name + " takes", behaviour.takes);
    const bool tasks = path.starts_with("/user");
    auto act = [this, &played, &behaviour, name, path, what, tasks] {
      const json::Object& result = played.life->dice.pick(name + " result", behaviour.results);
      stage_.tell(*played.life, fmt::format("{} with {}", what, json::print(result)));
      json::Value body = tasks ? json::object({{"workerId", "simulated"}, {"variables", result}})
                               : json::Value(result);
      stage_.send(*played.life, {"POST", "/v1/instances/" + played.id + path, json::print(body)},
                  [this, &played](const wire::Response&) { look(played); });
    };
    stage_.after(takes, act);
    if (dice.happens(name + " twice", behaviour.twice))
      stage_.after(takes + dice.span(name + " again", {kSecond, 600 * kSecond}), act);
  }

  void send_early_signals(Played& played) {
    for (const auto& [step, behaviour] : script_.signals)
      if (behaviour.early && facts_[played.definition].contains(step))
        come(played, behaviour, "early " + step, "/signals/" + step + "?keep=true",
             "the signal comes for step " + step);
  }

  // -- The end of a life.

  void judge_end(ProcessLife& life) {
    LifeEnd& end = life.end;
    if (life.instances.empty()) return;
    end.status = life.instances.front()->status;
    for (const auto& instance : life.instances) {
      if (instance->over) continue;
      end.status = "WAITING";
      end.took = stage_.elapsed() - life.began;
      if (script_.may_wait) continue;
      const std::string at = fmt::format("{}", fmt::join(instance->at, ", "));
      end.problems.insert(
          {"waits-for-ever", fmt::format("{} waits for ever at {}", instance->definition, at)});
      stage_.tell(life,
                  fmt::format("nothing more comes: {} waits at {}", instance->definition, at));
    }
  }

  const Script& script_;
  const PlayOptions& options_;
  std::map<std::string, Steps> facts_;
  std::set<std::string> job_types_;
  std::vector<std::unique_ptr<ProcessLife>> lives_;
  std::map<std::string, Played*> known_;  // by instance id
  size_t started_ = 0;
  Stage stage_;  // last: its end drops the requests that are open
};

}  // namespace

Result<std::vector<LifeEnd>> play_processes(const Script& script, const PlayOptions& options) {
  return ProcessPlayer(script, options).play();
}

void add_definition_parts(const Script& script, AllParts& parts) {
  for (const auto& [definition, of] : facts_of(script))
    for (const auto& [step, facts] : of) {
      const Part own = step_part(definition, step);
      parts[own] = {};
      for (const std::string& target : facts.branches)
        parts[branch_part(definition, step, target)] = step_part(definition, target);
      for (size_t rule = 0; rule < facts.rules.size(); ++rule)
        parts[rule_part(definition, step, facts, rule)] = own;
    }
}

}  // namespace pawl::sim
