#include "faces/processes/definition/steps.h"

#include "faces/processes/definition/decision_table.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

namespace {

std::string where(const Step& s) { return "step \"" + s.id + "\": "; }
void want_next(Step& s, Problems& out) {
  if (s.next_id.empty()) out.push_back(where(s) + "nextStep is required");
}

Result<Next> enter_service(Walk& walk, Token& token, const Step& step) {
  TRY_OK(walk.open_job(token, step));
  walk.arm_timers(token, step);
  return Next{};
}
void validate_service(Step& s, Problems& out) {
  if (s.job_type.empty()) out.push_back(where(s) + "jobType is required");
}

// Nothing is asked for; a person completes the step.
Result<Next> enter_user_task(Walk& walk, Token& token, const Step& step) {
  walk.arm_timers(token, step);
  return Next{};
}
// A signal completes the step. One that came before is taken at once.
Result<Next> enter_wait(Walk& walk, Token& token, const Step& step) {
  TRY(bool signalled, walk.take_kept_signal(token, step));
  if (!signalled) {
    walk.arm_timers(token, step);
    return Next{};
  }
  if (step.branches.empty()) return Next{Next::What::go, step.next};
  TRY(uint32_t target, branch_of(walk, step));
  return Next{Next::What::go, target};
}
void validate_user_task(Step&, Problems&) {}
void validate_wait(Step& s, Problems& out) { want_next(s, out); }

Result<Next> enter_decision(Walk& walk, Token&, const Step& step) {
  TRY(uint32_t target, branch_of(walk, step));
  return Next{Next::What::go, target};
}
void validate_decision(Step& s, Problems& out) {
  if (s.branches.empty()) out.push_back(where(s) + "conditionalNextSteps must not be empty");
  for (const Branch& b : s.branches)
    if (b.target_id.empty())
      out.push_back(where(s) + "conditionalNextSteps \"" + b.when.text() + "\" names no step");
}

// A shallow merge: each output replaces the variable of its name.
Result<Next> merged(Walk& walk, const json::Object& outputs, const Step& step) {
  walk.set(outputs);
  return Next{Next::What::go, step.next};
}

Result<Next> enter_table(Walk& walk, Token&, const Step& step) {
  TRY(json::Object outputs, decide(step, walk.variables(), walk.now(), walk.work()));
  return merged(walk, outputs, step);
}
void validate_table(Step& s, Problems& out) {
  want_next(s, out);
  if (s.rules.empty()) out.push_back(where(s) + "decisionTable.rules must not be empty");
  if (auto policy = find_hit_policy(s.hit_policy_text))
    s.hit_policy = *policy;
  else
    out.push_back(where(s) + "hitPolicy \"" + s.hit_policy_text + "\" is unknown; one of " +
                  hit_policy_codes() + " (an aggregator is valid on C only)");
  // Other step types accept members that they do not use; the document forbids these here by name.
  const std::pair<std::string_view, bool> foreign[] = {
      {"conditionalNextSteps", !s.branches.empty()},
      {"transformations", !s.outputs.empty()},
      {"parallelNextSteps", !s.parallel_ids.empty()},
      {"joinStep", !s.join_id.empty()},
      {"jobType", !s.job_type.empty()},
      {"delegateClass", !s.delegate_class.empty()},
      {"retryCount", s.names_retries},
      {"boundaryEvents", !s.timers.empty()}};
  for (const auto& [name, given] : foreign)
    if (given) out.push_back(where(s) + std::string(name) + " is not valid on a DECISION_TABLE");
}

Result<Next> enter_transformation(Walk& walk, Token&, const Step& step) {
  json::Object outputs;
  for (const Output& o : step.outputs) {
    TRY_OK(check_work(walk.work()));
    auto value = evaluate(o, walk.variables(), walk.now(), walk.work());
    if (!value)
      return fail(Code::invalid, value.error().reason,
                  "transformation of \"" + o.name + "\": " + value.error().message);
    outputs.add(o.name, std::move(*value));  // the names of a JSON object differ
  }
  return merged(walk, outputs, step);
}
void validate_transformation(Step& s, Problems& out) {
  want_next(s, out);
  if (s.outputs.empty()) out.push_back(where(s) + "transformations must not be empty");
}

Result<Next> enter_parallel(Walk&, Token&, const Step&) { return Next{Next::What::fork}; }
void validate_parallel(Step& s, Problems& out) {
  if (s.parallel_ids.size() < 2)
    out.push_back(where(s) + "parallelNextSteps must have at least 2 entries");
  if (s.parallel_ids.size() > kMaxBranches)
    out.push_back(where(s) + "parallelNextSteps may have at most " + std::to_string(kMaxBranches) +
                  " entries");
  if (s.join_id.empty()) out.push_back(where(s) + "joinStep is required");
  for (const std::string& id : s.parallel_ids)
    if (id.empty()) out.push_back(where(s) + "parallelNextSteps has an empty entry");
}

Result<Next> enter_join(Walk&, Token&, const Step&) { return Next{Next::What::join}; }
void validate_join(Step& s, Problems& out) { want_next(s, out); }

// The child starts in a turn of its own. Its end completes the step, unless nobody waits for it.
Result<Next> enter_call(Walk& walk, Token& token, const Step& step) {
  TRY_OK(walk.open_call(token, step));
  if (!step.call->waits) {
    if (step.branches.empty()) return Next{Next::What::go, step.next};
    TRY(uint32_t target, branch_of(walk, step));
    return Next{Next::What::go, target};
  }
  walk.arm_timers(token, step);
  return Next{};
}
void validate_call(Step& s, Problems& out) {
  want_next(s, out);
  if (!s.call) out.push_back(where(s) + "call is required: {\"workflowId\": ...}");
  if (s.names_retries)
    out.push_back(where(s) +
                  "retryCount is not valid on a CALL: give it to the steps of the child");
}

Result<Next> enter_end(Walk&, Token&, const Step&) { return Next{Next::What::finish}; }
void validate_end(Step&, Problems&) {}

// In the order of Kind.
constexpr StepType kTypes[] = {
    {"SERVICE_TASK", Kind::service_task, enter_service, validate_service, false,
     "creates a job that a worker polls, runs and completes"},
    {"USER_TASK", Kind::user_task, enter_user_task, validate_user_task, true,
     "waits until a person completes it"},
    {"DECISION", Kind::decision, enter_decision, validate_decision, false,
     "takes the first branch, in document order, whose expression is true"},
    {"DECISION_TABLE", Kind::decision_table, enter_table, validate_table, false,
     "sets variables from a table of rules"},
    {"TRANSFORMATION", Kind::transformation, enter_transformation, validate_transformation, false,
     "sets variables from literals and expressions"},
    {"WAIT", Kind::wait, enter_wait, validate_wait, true, "waits for a signal"},
    {"PARALLEL_GATEWAY", Kind::parallel_gateway, enter_parallel, validate_parallel, false,
     "starts several branches"},
    {"JOIN_GATEWAY", Kind::join_gateway, enter_join, validate_join, false,
     "waits for every branch of its gateway"},
    {"END", Kind::end, enter_end, validate_end, false, "completes the instance"},
    {"CALL", Kind::call, enter_call, validate_call, false,
     "starts an instance of another definition and waits for its end"},
};

}  // namespace

Result<uint32_t> branch_of(Walk& walk, const Step& step) {
  for (const Branch& b : step.branches) {
    TRY_OK(check_work(walk.work()));
    TRY(bool taken, b.when.test(walk.variables(), walk.now(), &walk.work()));
    if (taken) return b.target;
  }
  return fail(Code::invalid, "DecisionNoBranchMatched",
              "DecisionNoBranchMatched: no branch of step \"" + step.id +
                  "\" is true; add a last branch \"true\" as the fallback");
}

std::span<const StepType> step_types() { return kTypes; }

const StepType* find_step_type(std::string_view name) {
  for (const StepType& t : kTypes)
    if (t.name == name) return &t;
  return nullptr;
}

const StepType& type_of(Kind kind) { return kTypes[static_cast<size_t>(kind)]; }

std::string step_type_names() {
  std::string out;
  for (const StepType& t : kTypes)
    out.append(out.empty() ? "" : ", ").append(t.name);
  return out;
}

}  // namespace pawl::processes
