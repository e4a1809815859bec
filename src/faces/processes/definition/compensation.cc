#include "faces/processes/definition/compensation.h"

#include "faces/processes/definition/decision_table.h"
#include "faces/processes/definition/fields.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

using namespace document_fields;

namespace {

bool can_be_undone(const Step& step) {
  return step.kind == Kind::service_task || step.kind == Kind::user_task ||
         (step.kind == Kind::call && (!step.call || step.call->waits));
}

}  // namespace

void read_compensation(const Value& v, Step& step, const std::string& where, Problems& problems,
                       Problems& broken) {
  const std::string at = where + " compensation";
  if (!check(v, document::kCompensation, at, problems)) return;
  if (!can_be_undone(step))
    broken.push_back(where +
                     ": compensation belongs to a SERVICE_TASK, a USER_TASK or a CALL that waits");
  auto undo = std::make_shared<Step>();
  undo->id = step.id + ".compensation";
  undo->name = "Compensation of " + step.name;
  undo->type = "SERVICE_TASK";
  undo->kind = Kind::service_task;
  undo->job_type = v.string_or("jobType");
  if (undo->job_type.empty() || undo->job_type.size() > kNameBytes)
    broken.push_back(at + ".jobType is required, at most " + std::to_string(kNameBytes) + " bytes");
  if (const Value* n = member(v, "retryCount"))
    undo->retries = static_cast<uint32_t>(std::clamp<int64_t>(*n->as_int64(), 0, 1'000'000));
  if (const Value* map = member(v, "variables")) {
    step.compensation_variables.emplace();
    for (const json::Member& m : map->object()) {
      Output output = make_output(m.name, m.value);
      if (const Error* problem = output.expression ? output.expression->problem() : nullptr)
        broken.push_back(at + ".variables \"" + m.name.substr(0, 64) +
                         "\" is not an expression: " + problem->message);
      step.compensation_variables->push_back(std::move(output));
    }
  }
  step.compensation = std::move(undo);
}

bool read_on_failure(std::string_view text, Problems& broken) {
  if (text == "compensate") return true;
  if (!text.empty() && text != "fail")
    broken.push_back("definition: onFailure must be \"fail\" or \"compensate\", got \"" +
                     std::string(text.substr(0, 64)) + "\"");
  return false;
}

}  // namespace pawl::processes
