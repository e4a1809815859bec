#include "faces/processes/definition/call.h"

#include "faces/processes/definition/decision_table.h"
#include "faces/processes/definition/fields.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/limits.h"

namespace pawl::processes {

using namespace document_fields;

namespace {

// Unlike in steps that exist in the original, an expression that does not compile is refused.
std::optional<std::vector<Output>> read_map(const Value& v, std::string_view name,
                                            const std::string& where, Problems& broken) {
  const Value* map = member(v, name);
  if (!map) return std::nullopt;
  std::vector<Output> out;
  for (const json::Member& m : map->object()) {
    out.push_back(make_output(m.name, m.value));
    const auto& expression = out.back().expression;
    if (const Error* problem = expression ? expression->problem() : nullptr)
      broken.push_back(where + "." + std::string(name) + " \"" + m.name.substr(0, 64) +
                       "\" is not an expression: " + problem->message);
  }
  return out;
}

}  // namespace

std::optional<Call> read_call(const Value& v, const std::string& where, Problems& problems,
                              Problems& broken) {
  const std::string at = where + " call";
  if (!check(v, document::kCall, at, problems)) return std::nullopt;
  Call out;
  out.definition_id = v.string_or("workflowId");
  if (out.definition_id.empty() || out.definition_id.size() > kDefinitionIdBytes)
    broken.push_back(at + ".workflowId is required: the id of a definition, at most " +
                     std::to_string(kDefinitionIdBytes) + " characters");
  if (const Value* version = member(v, "version")) {
    int64_t number = *version->as_int64();
    if (number < 0 || number > INT32_MAX)
      broken.push_back(at + ".version must be a version from 1 on");
    out.version = static_cast<uint32_t>(std::clamp<int64_t>(number, 0, INT32_MAX));
  }
  if (const Value* waits = member(v, "wait")) out.waits = waits->boolean();
  out.variables = read_map(v, "variables", at, broken);
  out.outputs = read_map(v, "outputs", at, broken);
  if (out.outputs && !out.waits)
    broken.push_back(at + ".outputs needs the end of the child: leave out \"wait\": false");
  if (std::string_view key = v.string_or("businessKey"); !key.empty()) {
    out.business_key.emplace(key);
    if (const Error* problem = out.business_key->problem())
      broken.push_back(at + ".businessKey is not an expression: " + problem->message);
  }
  return out;
}

}  // namespace pawl::processes
