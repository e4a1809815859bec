#include "faces/processes/run/dry_run.h"

#include "faces/processes/definition/steps.h"
#include "faces/processes/limits.h"
#include "json/merge.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

class NoEffects final : public EffectSink {
 public:
  void open(Effect) override {}
  void withdraw(const std::string&) override {}
};

class DryRun {
 public:
  DryRun(const Definition& definition, const json::Object& variables, const json::Value& script,
         Time now)
      : definition_(definition),
        script_(script),
        walk_(no_effects_, now, "", instance_, definition, budget_) {
    instance_.id = std::string(26, '0');
    instance_.definition_id = definition.id;
    instance_.version = definition.version;
    instance_.started = now;
    instance_.variables = make_variables(variables);
  }

  Result<std::string> run() {
    TRY_OK(check_script());
    walk_.begin();
    while (!is_final(instance_.status)) {
      const Token* token = next();
      if (!token) break;
      if (++results_ > kStepsPerTurn)
        return fail(Code::invalid, "DRY_RUN_TOO_LONG",
                    "the dry run did not end within " + std::to_string(kStepsPerTurn) +
                        " results: is the script looping?");
      TRY_OK(play(*token));
    }
    Note note = walk_.finish(0);
    return report(note);
  }

 private:
  const Token* next() const {
    for (const Token& t : instance_.tokens)
      if (t.state == TokenState::running && definition_.steps[t.step].kind != Kind::join_gateway)
        return &t;
    return nullptr;
  }

  // Unknown steps and members are refused: ignoring them would show a path that was not meant.
  Result<void> check_script() const {
    if (!script_.is_object()) return {};
    for (const json::Member& m : script_.object()) {
      if (definition_.find(m.name) == kNoStep)
        return fail(Code::invalid, "BAD_SCRIPT",
                    "script: the definition has no step \"" + m.name + "\"");
      if (!m.value.is_array()) {
        TRY_OK(check_result(m.name, m.value));
        continue;
      }
      for (const json::Value& result : m.value.array())
        TRY_OK(check_result(m.name, result));
    }
    return {};
  }
  static Result<void> check_result(const std::string& step, const json::Value& result) {
    constexpr std::string_view known[] = {"variables", "error", "retryable", "timer"};
    if (!result.is_object())
      return fail(Code::invalid, "BAD_SCRIPT",
                  "script of step \"" + step + "\": a result must be an object");
    for (const json::Member& m : result.object())
      if (std::find(std::begin(known), std::end(known), m.name) == std::end(known))
        return fail(Code::invalid, "BAD_SCRIPT",
                    "script of step \"" + step + "\": a result has no member \"" + m.name +
                        "\"; known are variables, error, retryable and timer");
    return {};
  }

  // The scripted result for this visit of the step; null when there is none.
  const json::Value* scripted(const std::string& step) {
    const json::Value* entry = script_.find(step);
    if (!entry || !entry->is_array()) return entry;
    size_t visit = visits_[step]++;
    if (entry->array().empty()) return nullptr;
    return &entry->array()[std::min(visit, entry->array().size() - 1)];
  }

  Result<void> play(const Token& token) {
    const Step& step = definition_.steps[token.step];
    uint32_t execution = token.execution;
    const json::Value* result = scripted(step.id);
    if (const json::Value* timer = result ? result->find("timer") : nullptr) {
      auto index = timer->is_number() ? timer->as_int64() : std::nullopt;
      if (!index || *index < 0 || static_cast<size_t>(*index) >= step.timers.size())
        return fail(Code::invalid, "BAD_SCRIPT",
                    "script of step \"" + step.id + "\": it has no timer " + json::print(*timer));
      walk_.fire(execution, static_cast<uint32_t>(*index));
      return {};
    }
    if (result && step.kind == Kind::service_task && result->find("error")) {
      const json::Value* retryable = result->find("retryable");
      walk_.fail_job(execution, std::string(result->string_or("error")),
                     retryable && retryable->is_bool() && retryable->boolean());
      return {};
    }
    const json::Value* variables = result ? result->find("variables") : nullptr;
    if (variables && !variables->is_object())
      return fail(Code::invalid, "BAD_SCRIPT",
                  "script of step \"" + step.id + "\": variables must be an object, got " +
                      std::string(variables->kind_name()));
    if (variables) {
      if (step.kind == Kind::service_task)
        json::merge_deep(walk_.edit(), variables->object());
      else
        json::merge_shallow(walk_.edit(), variables->object());
    }
    walk_.complete(execution);
    return {};
  }

  std::string report(const Note& note) const {
    json::Array path;
    for (const Fact& f : note.facts) {
      if (f.kind == Fact::Kind::entered) continue;
      json::Object line;
      if (f.kind == Fact::Kind::event) {
        line.add("event", json::Value(f.text));
        if (!f.step.empty()) line.add("stepId", json::Value(f.step));
      } else {
        line.add("stepId", json::Value(f.step));
        line.add("stepType", json::Value(type_of(f.step_kind).name));
        line.add("attempt", json::Value(static_cast<int64_t>(f.attempt)));
        line.add("status", json::Value(execution_name(f.status)));
        if (!f.text.empty()) line.add("reason", json::Value(f.text));
      }
      path.push_back(json::Value(std::move(line)));
    }
    json::Object out;
    out.add("status", json::Value(status_name(instance_.status)));
    if (!instance_.failure.empty()) out.add("failureReason", json::Value(instance_.failure));
    json::Array current;
    for (std::string& id : current_steps(instance_, definition_))
      current.push_back(json::Value(std::move(id)));
    out.add("currentStepIds", json::Value(std::move(current)));
    out.add("variables", json::Value(instance_.variables->object));
    out.add("path", json::Value(std::move(path)));
    return json::print(json::Value(std::move(out)));
  }

  const Definition& definition_;
  const json::Value& script_;
  NoEffects no_effects_;
  Instance instance_;
  WalkBudget budget_;
  size_t results_ = 0;
  std::map<std::string, size_t> visits_;
  Walk walk_;
};

}  // namespace

Result<std::string> dry_run(const Definition& definition, const json::Object& variables,
                            const json::Value& script, Time now) {
  return DryRun(definition, variables, script, now).run();
}

}  // namespace pawl::processes
