#include "faces/processes/definition/policies.h"

#include "faces/processes/definition/durations.h"
#include "faces/processes/definition/fields.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

using namespace document_fields;

Retention read_retention(const Value& v, const std::string& where, Problems& problems,
                         Problems& broken) {
  Retention out;
  if (!check(v, document::kRetention, where, problems)) return out;
  const std::pair<std::string_view, std::optional<Duration>*> members[] = {
      {"completed", &out.completed}, {"failed", &out.failed}, {"cancelled", &out.cancelled}};
  for (const auto& [name, target] : members) {
    std::string_view text = v.string_or(name);
    if (text.empty()) continue;
    size_t before = broken.size();
    Duration duration;
    set_duration(text, where + "." + std::string(name), duration, broken);
    if (broken.size() == before && add(0, duration) <= 0)
      broken.push_back(where + "." + std::string(name) + " must be longer than nothing");
    *target = duration;
  }
  return out;
}

std::optional<KeyPolicy> read_key_policy(const Value& v, Problems& problems, Problems& broken) {
  if (!check(v, document::kKeyPolicy, "definition businessKey", problems)) return std::nullopt;
  KeyPolicy out;
  std::string_view unique = v.string_or("unique"), conflict = v.string_or("conflict", "refuse");
  if (unique == "always")
    out.unique = KeyPolicy::Unique::always;
  else if (unique != "running")
    broken.push_back("definition: businessKey.unique must be \"running\" or \"always\", got \"" +
                     std::string(unique) + "\"");
  if (conflict == "return")
    out.conflict = KeyPolicy::Conflict::return_existing;
  else if (conflict != "refuse")
    broken.push_back("definition: businessKey.conflict must be \"refuse\" or \"return\", got \"" +
                     std::string(conflict) + "\"");
  return out;
}

std::vector<Query> read_queries(const Value& v, Problems& broken) {
  std::vector<Query> out;
  if (v.object().size() > kMaxQueries)
    broken.push_back("definition: queries: at most " + std::to_string(kMaxQueries) + ", got " +
                     std::to_string(v.object().size()));
  for (const json::Member& m : v.object()) {
    const std::string where = "definition: query \"" + m.name.substr(0, 64) + "\"";
    if (!m.value.is_string()) continue;  // reported by check()
    if (m.name.empty() || m.name.size() > kNameBytes)
      broken.push_back("definition: the name of a query has 1 to " + std::to_string(kNameBytes) +
                       " bytes");
    expr::Expression expression(m.value.string());
    if (const Error* problem = expression.problem())
      broken.push_back(where + " is not an expression: " + problem->message);
    out.push_back({m.name, std::move(expression)});
  }
  return out;
}

void read_signal(const Value& v, Step& step, const std::string& where, Problems& broken) {
  step.signal = v.string_or("signal");
  std::string_view key = v.string_or("correlationKey");
  if (step.signal.empty() && key.empty()) return;
  if (step.kind != Kind::wait)
    broken.push_back(where + ": signal and correlationKey belong to a WAIT");
  else if (step.signal.empty())
    broken.push_back(where +
                     ": correlationKey needs a signal, the name of the signals to wait for");
  if (step.signal.size() > kNameBytes)
    broken.push_back(where + ": signal must have at most " + std::to_string(kNameBytes) + " bytes");
  if (key.empty()) return;
  step.correlation_key.emplace(key);
  if (const Error* problem = step.correlation_key->problem())
    broken.push_back(where + ": correlationKey is not an expression: " + problem->message);
}

void read_attempt_timeout(const Value& v, Step& step, const std::string& where, Problems& broken) {
  step.attempt_timeout_text = v.string();
  size_t before = broken.size();
  Duration duration;
  set_duration(step.attempt_timeout_text, where + ": attemptTimeout", duration, broken);
  if (step.kind != Kind::service_task)
    broken.push_back(where + ": attemptTimeout belongs to a SERVICE_TASK");
  else if (broken.size() == before && add(0, duration) <= 0)
    broken.push_back(where + ": attemptTimeout must be longer than nothing");
  step.attempt_timeout = duration;
}

}  // namespace pawl::processes
