// The rules of the definition format, and the warnings. A problem refuses the upload; a warning is
// returned with it. Texts of problems begin as the original's do: clients match on them.

#include "faces/processes/definition/definition.h"
#include "faces/processes/definition/durations.h"
#include "faces/processes/definition/steps.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

namespace {

constexpr std::string_view kIdLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:-";

std::string quoted(std::string_view id) { return "\"" + std::string(id) + "\""; }

void check_top(const Definition& d, Problems& out) {
  if (d.id.empty())
    out.push_back("id is required");
  else if (d.id.size() > kDefinitionIdBytes)
    out.push_back("id must have at most 256 characters, got " + std::to_string(d.id.size()));
  else if (d.id.find_first_not_of(kIdLetters) != std::string::npos)
    out.push_back("id " + quoted(d.id) + " must match ^[A-Za-z0-9_:\\-]+$");
  if (d.name.empty()) out.push_back("name is required");
  if (d.steps.empty()) out.push_back("steps must not be empty");
  if (d.steps.size() > kMaxSteps)
    out.push_back("steps: at most " + std::to_string(kMaxSteps) + ", got " +
                  std::to_string(d.steps.size()));
  bool chains = d.chains || std::any_of(d.steps.begin(), d.steps.end(),
                                        [](const Step& s) { return s.chains.value_or(false); });
  if (chains && d.next_workflow.empty())
    out.push_back("nextWorkflowId is required when autoStartNextWorkflow is true");
}

// Visits every reference of a step: its field, the id of its target, and the index to set.
template <class Visit>
void each_reference(Step& s, Visit&& visit) {
  visit("nextStep", s.next_id, s.next);
  for (Branch& b : s.branches)
    visit("conditionalNextSteps", b.target_id, b.target);
  s.parallel.assign(s.parallel_ids.size(), kNoStep);
  for (size_t i = 0; i < s.parallel_ids.size(); ++i)
    visit("parallelNextSteps", s.parallel_ids[i], s.parallel[i]);
  visit("joinStep", s.join_id, s.join);
  for (Timer& t : s.timers)
    visit("boundaryEvents[].targetStepId", t.target_id, t.target);
}

void check_timers(Step& s, Problems& out) {
  for (size_t i = 0; i < s.timers.size(); ++i) {
    Timer& t = s.timers[i];
    std::string where = "step " + quoted(s.id) + " boundaryEvents[" + std::to_string(i) + "]: ";
    if (t.type != "TIMER")
      out.push_back(where + "unsupported type " + quoted(t.type) + "; only TIMER is known");
    if (t.duration_text.empty())
      out.push_back(where + "duration is required, for example \"PT30S\"");
    else
      set_duration(t.duration_text, where + "duration", t.duration, out);
    if (t.target_id.empty()) out.push_back(where + "targetStepId is required");
  }
}

// The checks of every step, then those of its type, then the references, which get their index
// here.
void check_step(Step& s, size_t index, const Definition& d, Problems& out) {
  std::string where = "step " + quoted(s.id);
  if (s.id.empty())
    out.push_back("step[" + std::to_string(index) + "] id is required");
  else if (d.by_id.at(s.id) != index)
    out.push_back("duplicate step id " + quoted(s.id));
  if (s.id.size() > kNameBytes)
    out.push_back(where + ": id must have at most " + std::to_string(kNameBytes) + " bytes");
  if (s.name.empty()) out.push_back(where + ": name is required");
  if (s.job_type.size() > kNameBytes)
    out.push_back(where + ": jobType must have at most " + std::to_string(kNameBytes) + " bytes");
  const StepType* type = find_step_type(s.type);
  if (!type)
    out.push_back(where + ": unsupported type " + quoted(s.type) +
                  "; known types: " + step_type_names());
  else
    type->validate(s, out);
  check_timers(s, out);
  each_reference(s, [&](std::string_view field, const std::string& id, uint32_t& target) {
    if (id.empty()) return;
    target = d.find(id);
    if (target == kNoStep)
      out.push_back(where + " " + std::string(field) + " references unknown step " + quoted(id));
  });
}

template <class Visit>
// All references, whether or not the step's type follows them. Invalid ones are kNoStep.
void each_successor(const Step& s, Visit&& visit) {
  visit(s.next);
  for (const Branch& b : s.branches)
    visit(b.target);
  for (uint32_t p : s.parallel)
    visit(p);
  visit(s.join);
  for (const Timer& t : s.timers)
    visit(t.target);
}

// A definition starts at its first step. Boundary targets and joins count as reachable.
void check_reach(const Definition& d, Problems& out) {
  std::vector<bool> seen(d.steps.size());
  std::vector<uint32_t> todo{0};
  bool end = false;
  seen[0] = true;
  while (!todo.empty()) {
    const Step& s = d.steps[todo.back()];
    todo.pop_back();
    end |= s.type == "END";
    each_successor(s, [&](uint32_t i) {
      if (i == kNoStep || seen[i]) return;
      seen[i] = true;
      todo.push_back(i);
    });
  }
  for (size_t i = 0; i < d.steps.size(); ++i)
    if (!seen[i])
      out.push_back("step " + quoted(d.steps[i].id) + " is unreachable from the first step");
  if (!end) out.push_back("no END step is reachable from the first step");
}

// A longer timer may be due after the last time that a Time can hold.
constexpr Time kLongDuration = 200LL * 365 * 24 * 3600 * kSecond;

bool takes_timers(const Step& s) {
  return s.kind == Kind::service_task || s.kind == Kind::user_task || s.kind == Kind::wait ||
         s.kind == Kind::call;
}

// Visits the steps that a token can go to from this step. A non-interrupting timer does not move
// the token.
template <class Visit>
void each_way(const Step& s, Visit&& visit) {
  switch (s.kind) {
    case Kind::decision:
      for (const Branch& b : s.branches)
        visit(b.target);
      break;
    case Kind::parallel_gateway: visit(s.join); break;  // its branches are checked separately
    case Kind::end: break;
    default:
      if (!takes_timers(s) || s.branches.empty())
        visit(s.next);
      else
        for (const Branch& b : s.branches)
          visit(b.target);
  }
  if (!takes_timers(s)) return;
  for (const Timer& t : s.timers)
    if (t.interrupting) visit(t.target);
}

// Warns about branches that can end without reaching their join.
void check_branches(const Definition& d, const Step& gateway, std::vector<std::string>& out) {
  for (uint32_t first : gateway.parallel) {
    std::vector<bool> seen(d.steps.size());
    std::vector<uint32_t> todo{first};
    bool leaves = false;
    while (!todo.empty() && !leaves) {
      uint32_t at = todo.back();
      todo.pop_back();
      if (at == gateway.join || (at != kNoStep && seen[at])) continue;
      if (at == kNoStep || d.steps[at].kind == Kind::end) {
        leaves = true;
        continue;
      }
      seen[at] = true;
      each_way(d.steps[at], [&](uint32_t next) { todo.push_back(next); });
    }
    if (leaves)
      out.push_back("step " + quoted(gateway.id) + ": the branch that begins with " +
                    quoted(d.steps[first].id) + " can end without meeting its join " +
                    quoted(gateway.join_id) + "; the join would wait for ever");
  }
}

void check_expressions(const Step& s, std::vector<std::string>& out) {
  auto check = [&](const expr::Expression& e) {
    if (const Error* problem = e.problem())
      out.push_back("step " + quoted(s.id) + ": " + problem->message +
                    "; the step will fail when it runs");
  };
  for (const Branch& b : s.branches)
    check(b.when);
  for (const Output& o : s.outputs)
    if (o.expression) check(*o.expression);
  for (const Rule& r : s.rules) {
    for (const Rule::Column& c : r.when)
      check(c.when);
    for (const Output& o : r.outputs)
      if (o.expression) check(*o.expression);
  }
}

}  // namespace

void validate(Definition& d, Problems& out) {
  check_top(d, out);
  if (d.steps.empty() || d.steps.size() > kMaxSteps) return;
  for (size_t i = 0; i < d.steps.size(); ++i)
    check_step(d.steps[i], i, d, out);
  check_reach(d, out);
}

std::vector<std::string> warnings(const Definition& d) {
  std::vector<std::string> out;
  // Each branch is followed through the whole definition, so huge definitions are not checked.
  bool small = d.steps.size() <= 2'000;
  for (const Step& s : d.steps) {
    check_expressions(s, out);
    if (s.kind == Kind::parallel_gateway && small && s.parallel.size() <= 100)
      check_branches(d, s, out);
    if (s.kind == Kind::parallel_gateway && s.join != kNoStep &&
        d.steps[s.join].kind != Kind::join_gateway)
      out.push_back("step " + quoted(s.id) + ": joinStep " + quoted(s.join_id) +
                    " is not a JOIN_GATEWAY; its branches are never joined");
    for (const Timer& t : s.timers)
      if (add(0, t.duration) > kLongDuration)
        out.push_back("step " + quoted(s.id) + ": the duration " + quoted(t.duration_text) +
                      " is cut where time ends, in the year 2262");
    if ((!takes_timers(s) || s.kind == Kind::call) && s.outputs_schema)
      out.push_back("step " + quoted(s.id) + ": outputsSchema has no effect on " + s.type);
    if (!takes_timers(s) && !s.timers.empty())
      out.push_back("step " + quoted(s.id) + ": boundaryEvents have no effect on " + s.type);
  }
  return out;
}

Result<Definition> make_definition(const json::Value& document) {
  Problems problems, broken;
  Definition d = read_definition(document, problems, broken);
  bool whole = problems.empty();
  problems.insert(problems.end(), std::make_move_iterator(broken.begin()),
                  std::make_move_iterator(broken.end()));
  // Before validate() adds its own: the message tells parse errors from validation errors.
  bool parsed = problems.empty();
  // A document with unreadable parts would give problems that follow from them only.
  if (whole) validate(d, problems);
  auto listed = [&](std::string head) {
    for (const std::string& p : problems)
      head += "\n  " + p;
    return fail(Code::invalid, "BAD_DEFINITION", std::move(head));
  };
  if (!parsed && problems.size() == 1)
    return fail(Code::invalid, "BAD_DEFINITION", "parse error: " + problems[0]);
  if (!parsed) return listed("parse error: several problems:");
  if (!problems.empty()) return listed("validation error: validation errors:");
  d.document = tidy_document(document);
  return d;
}

}  // namespace pawl::processes
