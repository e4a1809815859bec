#include "faces/processes/http/operators.h"

#include "faces/processes/http/answers.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

// Sets one field of a filter from its text, which is not empty. `name` is for errors.
using SetField = Result<void>(InstanceFilter& f, std::string_view name, const std::string& value);

template <auto Field>
Result<void> set_text(InstanceFilter& f, std::string_view, const std::string& value) {
  f.*Field = value;
  return {};
}

template <auto Field>
Result<void> set_time(InstanceFilter& f, std::string_view name, const std::string& value) {
  auto parsed = parse_rfc3339(value);
  if (!parsed)
    return fail(Code::invalid, "BAD_TIME", std::string(name) + ": " + parsed.error().message);
  f.*Field = *parsed;
  return {};
}

// Answers show times to the microsecond, so the end of a range includes its whole microsecond.
template <auto Field>
Result<void> set_end(InstanceFilter& f, std::string_view name, const std::string& value) {
  TRY_OK(set_time<Field>(f, name, value));
  if (f.*Field % kMicrosecond == 0) f.*Field += kMicrosecond - 1;
  return {};
}

Result<void> set_paused(InstanceFilter& f, std::string_view, const std::string& value) {
  f.paused = value == "true";
  return {};
}

Result<void> set_status(InstanceFilter& f, std::string_view, const std::string& value) {
  TRY(f.status, status_of_filter(value));
  return {};
}

struct FilterField {
  std::string_view name;
  SetField* set;
};
constexpr FilterField kFields[] = {
    {kFilter["definitionId"], set_text<&InstanceFilter::definition_id>},
    {kFilter["businessKey"], set_text<&InstanceFilter::business_key>},
    {kFilter["step"], set_text<&InstanceFilter::step>},
    {kFilter["parentInstanceId"], set_text<&InstanceFilter::parent_id>},
    {kFilter["paused"], set_paused},
    {kFilter["status"], set_status},
    {kFilter["startedFrom"], set_time<&InstanceFilter::started_from>},
    {kFilter["startedTo"], set_end<&InstanceFilter::started_to>},
    {kFilter["updatedFrom"], set_time<&InstanceFilter::updated_from>},
    {kFilter["updatedTo"], set_end<&InstanceFilter::updated_to>},
};

}  // namespace

Result<InstanceFilter> filter_of_query(const wire::Request& request) {
  InstanceFilter f;
  for (const FilterField& field : kFields)
    if (std::string value = request.query_param(field.name).value_or(""); !value.empty())
      TRY_OK(field.set(f, field.name, value));
  for (const std::string& text : request.query_params(kFilterQuery["variable"])) {
    size_t cut = text.find('=');
    if (cut == std::string::npos)
      return fail(Code::invalid, "BAD_VARIABLE",
                  "variable must read path=value, got \"" + text + "\"");
    auto value = json::parse(text.substr(cut + 1));
    f.variables.emplace_back(text.substr(0, cut),
                             value ? std::move(*value) : json::Value(text.substr(cut + 1)));
  }
  return f;
}

Result<InstanceFilter> filter_of_body(const json::Value& filter) {
  InstanceFilter f;
  for (const json::Member& m : filter.object()) {
    if (m.name == kFilterBody["variables"].name && m.value.is_object()) {
      for (const json::Member& v : m.value.object())
        f.variables.emplace_back(v.name, v.value);
      continue;
    }
    auto field = std::find_if(std::begin(kFields), std::end(kFields),
                              [&](const FilterField& known) { return known.name == m.name; });
    if (field == std::end(kFields))
      return fail(Code::invalid, "BAD_FILTER", "a filter has no member \"" + m.name + "\"");
    bool flag = m.name == kFilter["paused"].name && m.value.is_bool();
    if (!flag && !m.value.is_string())
      return fail(Code::invalid, "BAD_FILTER", "filter." + m.name + " must be a string");
    std::string value = flag ? (m.value.boolean() ? "true" : "false") : m.value.string();
    if (!value.empty()) TRY_OK(field->set(f, field->name, value));
  }
  return f;
}

json::Value tokens_value(const Instance& i, const Definition& d) {
  constexpr std::string_view states[] = {"", "running", "held", "failed", "stuck"};
  json::Array out;
  for (const Token& t : i.tokens) {
    const Step& step = step_of(i, d, t.step);
    json::Value item = json::object({{"stepId", step.id},
                                     {"stepType", step.type},
                                     {"state", states[static_cast<size_t>(t.state)]}});
    json::Object& o = item.object();
    if (t.execution) {
      o.add("executionId", json::Value(ordinal_id(i.id, t.execution)));
      o.add("attempt", json::Value(static_cast<int64_t>(t.attempt)));
      o.add("enteredAt", json::Value(rfc3339(t.entered, 6)));
    }
    if (t.job) {
      o.add("jobId", json::Value(ordinal_id(i.id, t.job)));
      o.add("jobType", json::Value(step.job_type));
      o.add("failedTries", json::Value(static_cast<int64_t>(t.tries)));
      if (t.attempt_due) o.add("attemptEndsAt", json::Value(rfc3339(t.attempt_due, 6)));
    }
    if (!t.child_id.empty()) o.add("childInstanceId", json::Value(t.child_id));
    json::Array timers;
    for (const Token::ArmedTimer& a : t.timers) {
      const Timer& timer = step.timers[a.index];
      json::Value line = json::object({{"index", static_cast<int64_t>(a.index)},
                                       {"interrupting", timer.interrupting},
                                       {"targetStepId", timer.target_id}});
      if (i.suspended)
        line.object().add("remainingMs", json::Value(a.due / kMillisecond));
      else
        line.object().add("dueAt", json::Value(rfc3339(a.due, 6)));
      timers.push_back(std::move(line));
    }
    if (!timers.empty()) o.add("timers", json::Value(std::move(timers)));
    out.push_back(std::move(item));
  }
  return json::Value(std::move(out));
}

}  // namespace pawl::processes
