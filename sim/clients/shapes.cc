#include "sim/clients/shapes.h"

#include <fmt/format.h>

namespace pawl::sim {
namespace {

json::Value step(std::string_view id, std::string_view type, std::string_view next) {
  json::Value out = json::object({{"id", id}, {"name", id}, {"type", type}});
  if (!next.empty()) out.object().set("nextStep", next);
  return out;
}

json::Value task(std::string_view id, std::string_view next) {
  json::Value out = step(id, "SERVICE_TASK", next);
  out.object().set("jobType", fmt::format("work-{}", id.back() % 3));
  out.object().set("retryCount", 1000);
  return out;
}

// A task that can be undone.
json::Value undoable(std::string_view id, std::string_view next) {
  json::Value out = task(id, next);
  out.object().set("compensation", json::object({{"jobType", "work-0"}, {"retryCount", 1000}}));
  return out;
}

json::Value timer_event(std::string_view duration, std::string_view target) {
  return json::Array{json::object({{"type", "TIMER"},
                                   {"duration", duration},
                                   {"interrupting", true},
                                   {"targetStepId", target}})};
}

Shape shape(std::string_view id, json::Array steps, std::vector<std::string> entered = {}) {
  Shape out{std::string(id),
            json::object({{"id", id}, {"name", id}, {"steps", std::move(steps)}}),
            {},
            {}};
  for (const std::string& name : entered)
    ++out.even[name];
  out.odd = out.even;
  return out;
}

json::Value fork_step(std::string_view id, json::Array branches, std::string_view join) {
  json::Value out = step(id, "PARALLEL_GATEWAY", "");
  out.object().set("parallelNextSteps", std::move(branches));
  out.object().set("joinStep", join);
  return out;
}

Shape brief() {
  json::Value set = step("set", "TRANSFORMATION", "end");
  set.object().set("transformations", json::object({{"seen", "${kind}"}}));
  Shape out = shape("brief", {set, step("end", "END", "")});
  out.definition.object().set("retention", json::object({{"completed", "PT10M"}}));
  return out;
}

Shape undo() {
  Shape out = shape("undo", {undoable("u1", "u2"), undoable("u2", "doomed"), task("doomed", "end"),
                             step("end", "END", "")});
  out.definition.object().set("onFailure", "compensate");
  return out;
}

Shape chained() {
  Shape out = shape("chained", {task("s1", "end"), step("end", "END", "")}, {"s1", "end"});
  out.definition.object().set("autoStartNextWorkflow", true);
  out.definition.object().set("nextWorkflowId", "child");
  return out;
}

// Puts blocks one after the other. `next` is the step that follows the block.
class Builder {
 public:
  Builder(Schedule& schedule, std::string id) : schedule_(schedule), id_(std::move(id)) {}

  Shape build() {
    const uint64_t blocks = 1 + schedule_.roll(4);
    std::vector<std::string> entries;
    for (uint64_t i = 0; i < blocks; ++i)
      entries.push_back(fmt::format("x{}", i));
    entries.emplace_back("end");
    for (uint64_t i = 0; i < blocks; ++i)
      block(entries[i], entries[i + 1]);
    add(step("end", "END", ""), 1);
    Shape out{id_, json::object({{"id", id_}, {"name", id_}, {"steps", std::move(steps_)}}),
              std::move(even_), std::move(odd_)};
    return out;
  }

 private:
  void add(json::Value step, size_t times) { add(std::move(step), times, times); }
  void add(json::Value step, size_t even, size_t odd) {
    const std::string id(step.string_or("id"));
    if (even) even_[id] = even;
    if (odd) odd_[id] = odd;
    steps_.push_back(std::move(step));
  }

  void block(const std::string& id, const std::string& next) {
    switch (schedule_.roll(6)) {
      case 0: return loop(id, next);
      case 1: return table(id, next);
      case 2: return call(id, next);
      case 3: return fork(id, next);
      case 4: return wait(id, next);
      default: return add(task(id, next), 1);
    }
  }

  void loop(const std::string& id, const std::string& next) {
    const size_t times = 1 + schedule_.roll(4);
    const std::string body = "loop-" + id, count = "n" + id, again = "again-" + id;
    json::Value begin = step(id, "TRANSFORMATION", body);
    begin.object().set("transformations", json::object({{count, 0}}));
    add(begin, 1);
    add(task(body, "count-" + id), times);
    json::Value plus = step("count-" + id, "TRANSFORMATION", again);
    plus.object().set("transformations",
                      json::object({{count, fmt::format("${{{} + 1}}", count)}}));
    add(plus, times);
    json::Value choice = step(again, "DECISION", "");
    choice.object().set("conditionalNextSteps",
                        json::object({{fmt::format("{} < {}", count, times), body},
                                      {fmt::format("{} >= {}", count, times), next}}));
    add(choice, times);
  }

  // A table sets a variable, and a decision follows it.
  void table(const std::string& id, const std::string& next) {
    const std::string result = "r" + id, left = "l" + id, right = "m" + id;
    auto rule = [&](std::string_view kind, std::string_view value) {
      return json::object({{"when", json::object({{"kind", fmt::format("kind == '{}'", kind)}})},
                           {"outputs", json::object({{result, value}})}});
    };
    json::Value decide = step(id, "DECISION_TABLE", "choose-" + id);
    decide.object().set(
        "decisionTable",
        json::object({{"rules", json::Array{rule("even", "left"), rule("odd", "right")}}}));
    add(decide, 1);
    json::Value choice = step("choose-" + id, "DECISION", "");
    choice.object().set("conditionalNextSteps", json::object({{result + " == 'left'", left},
                                                              {result + " == 'right'", right}}));
    add(choice, 1);
    add(task(left, next), 1, 0);
    add(task(right, next), 0, 1);
  }

  void call(const std::string& id, const std::string& next) {
    json::Value out = step(id, "CALL", next);
    out.object().set("call",
                     json::object({{"workflowId", "child"},
                                   {"variables", json::object({{"kind", "${kind}"}})},
                                   {"outputs", json::object({{"of-" + id, "${answer}"}})}}));
    add(out, 1);
  }

  void fork(const std::string& id, const std::string& next) {
    const std::string left = "a" + id, right = "b" + id, join = "join-" + id;
    add(fork_step(id, json::Array{left, right}, join), 1);
    add(task(left, join), 1);
    add(task(right, join), 1);
    steps_.push_back(step(join, "JOIN_GATEWAY", next));
  }

  // Nobody signals: the timer goes on.
  void wait(const std::string& id, const std::string& next) {
    json::Value out = step(id, "WAIT", next);
    out.object().set("boundaryEvents", timer_event(schedule_.chance(50) ? "PT20S" : "PT15M", next));
    add(out, 1);
  }

  Schedule& schedule_;
  const std::string id_;
  json::Array steps_;
  std::map<std::string, size_t> even_, odd_;
};

}  // namespace

std::vector<Shape> fixed_shapes() {
  json::Value user = step("u", "USER_TASK", "end");
  user.object().set("boundaryEvents", timer_event("PT1M30S", "late1"));
  json::Value choice = step("choice", "DECISION", "");
  choice.object().set("conditionalNextSteps",
                      json::object({{"kind == 'even'", "even1"}, {"kind == 'odd'", "odd2"}}));
  json::Value answer = step("set", "TRANSFORMATION", "c1");
  answer.object().set("transformations", json::object({{"answer", "${kind}"}}));
  json::Value tick = step("set", "TRANSFORMATION", "end");
  tick.object().set("transformations", json::object({{"ticked", true}}));
  const json::Value end = step("end", "END", "");
  return {shape("line", {task("s1", "s2"), task("s2", "s3"), task("s3", "end"), end},
                {"s1", "s2", "s3", "end"}),
          shape("timer", {user, task("late1", "end"), end}),
          shape("wait", {step("w", "WAIT", "a1"), task("a1", "end"), end}, {"w", "a1", "end"}),
          shape("fork",
                {fork_step("fork", json::Array{"b1", "b2", "b3"}, "join"), task("b1", "b4"),
                 task("b4", "join"), task("b2", "join"), task("b3", "join"),
                 step("join", "JOIN_GATEWAY", "a1"), task("a1", "end"), end},
                {"fork", "b1", "b2", "b3", "b4", "a1", "end"}),
          shape("choice", {choice, task("even1", "end"), task("odd2", "end"), end}),
          shape("child", {answer, task("c1", "end"), end}, {"set", "c1", "end"}),
          brief(),
          undo(),
          chained(),
          shape("tick", {tick, end}, {"set", "end"})};
}

Shape random_shape(Schedule& schedule, std::string id) {
  return Builder(schedule, std::move(id)).build();
}

}  // namespace pawl::sim
