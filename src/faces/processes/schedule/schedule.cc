#include "faces/processes/schedule/schedule.h"

#include <algorithm>
#include <charconv>

#include "base/codec.h"
#include "faces/processes/limits.h"
#include "faces/processes/schedule/shape.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "BAD_SCHEDULE", std::move(why));
}

constexpr std::string_view kOverlaps[] = {"allow", "skip", "queue", "cancel"};
constexpr std::string_view kCatchUps[] = {"none", "last", "all"};
// Texts that are stored as they are.
constexpr std::string_view kTexts[] = {kSchedule["id"], kSchedule["definitionId"],
                                       kSchedule["businessKey"], kSchedule["timeVariable"],
                                       kSchedule["description"]};

template <size_t N>
Result<size_t> choice(const json::Value& document, std::string_view name,
                      const std::string_view (&choices)[N], size_t default_value) {
  const json::Value* given = document.find(name);
  if (!given) return default_value;
  for (size_t i = 0; i < N; ++i)
    if (given->is_string() && given->string() == choices[i]) return i;
  std::string known;
  for (std::string_view c : choices)
    known += (known.empty() ? "" : ", ") + std::string(c);
  return bad(std::string(name) + " is " + json::print(*given).substr(0, 100) + "; known: " + known);
}

Result<Time> time_of(const json::Value& document, std::string_view name, Time default_value) {
  const json::Value* given = document.find(name);
  if (!given) return default_value;
  auto time =
      given->is_string() ? parse_rfc3339(given->string()) : Result<Time>(std::unexpected(Error{}));
  if (!time) return bad(std::string(name) + " must be a time, such as \"2026-12-01T00:00:00Z\"");
  return *time;
}

Result<void> check_members(const json::Value& document) {
  if (!document.is_object()) return bad("a schedule must be a JSON object");
  for (const json::Member& m : document.object())
    if (!kSchedule.has(m.name))
      return bad("a schedule has no member \"" + m.name.substr(0, 100) + "\"");
  for (std::string_view name : kTexts)
    if (const json::Value* given = document.find(name); given && !given->is_string())
      return bad(std::string(name) + " must be a text");
  return {};
}

Result<void> check_id(std::string_view id) {
  const bool good = !id.empty() && id.size() <= kScheduleIdBytes &&
                    std::all_of(id.begin(), id.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return bad("id must have 1 to " + std::to_string(kScheduleIdBytes) +
             " characters: letters, digits, '-', '_' and '.'");
}

}  // namespace

Time ScheduleSpec::next(Time after) const {
  auto found = recurrence.next(std::max(after, starts - 1));
  return found && *found <= ends ? *found : 0;
}

Result<ScheduleSpec> parse_schedule(const json::Value& document, Time created) {
  TRY_OK(check_members(document));
  ScheduleSpec out;
  out.id = document.string_or(kSchedule["id"]);
  TRY_OK(check_id(out.id));
  out.definition_id = document.string_or(kSchedule["definitionId"]);
  if (out.definition_id.empty() || out.definition_id.size() > kDefinitionIdBytes)
    return bad("definitionId must name the definition that the schedule starts");
  if (const json::Value* version = document.find(kSchedule["definitionVersion"])) {
    auto number = version->is_number() ? version->as_int64() : std::nullopt;
    if (!number || *number < 1 || *number > UINT32_MAX)
      return bad("definitionVersion must be a number from 1 on");
    out.version = static_cast<uint32_t>(*number);
  }
  if (const json::Value* variables = document.find(kSchedule["variables"])) {
    if (!variables->is_object()) return bad("variables must be an object");
    out.variables = variables->object();
  }
  out.business_key = document.string_or(kSchedule["businessKey"]);
  if (out.business_key.size() + 40 > kBusinessKeyBytes)
    return bad("businessKey may have " + std::to_string(kBusinessKeyBytes - 40) + " bytes");
  out.time_variable = document.string_or(kSchedule["timeVariable"]);
  TRY(size_t overlap,
      choice(document, kSchedule["overlap"], kOverlaps, static_cast<size_t>(Overlap::skip)));
  out.overlap = static_cast<Overlap>(overlap);
  TRY(size_t catch_up,
      choice(document, kSchedule["catchUp"], kCatchUps, static_cast<size_t>(CatchUp::last)));
  out.catch_up = static_cast<CatchUp>(catch_up);
  TRY(out.starts, time_of(document, kSchedule["startAt"], 0));
  TRY(out.ends, time_of(document, kSchedule["endAt"], INT64_MAX));
  if (out.ends < out.starts) return bad("endAt is before startAt");
  const bool has_start = document.find(kSchedule["startAt"]) != nullptr;
  TRY(out.recurrence, Recurrence::parse(document, has_start ? out.starts : created));
  // An interval counts from the creation on: the first run is one interval later.
  if (!has_start && document.find(kSchedule["interval"])) out.starts = created + 1;
  if (json::print(document).size() > kScheduleBytes)
    return fail(Code::too_large, "SCHEDULE_TOO_LARGE",
                "a schedule may have " + std::to_string(kScheduleBytes) +
                    " bytes as JSON: keep large content elsewhere and pass a reference");
  return out;
}

template <class F, FieldsOf<Schedule> T>
void fields(F& f, T& s) {
  f.format(1);
  f(s.text);
  f(s.created);
  f(s.changed);
  f(s.paused);
  f(s.pause_reason);
  f(s.next);
  f(s.timer);
  f(s.recorded);
  f(s.started);
  f(s.skipped);
  f(s.failed);
  f(s.missed);
  f(s.running);
  f(s.queued);
  f(s.backlog);
}

Bytes encode(const Schedule& schedule) { return encode_fields(schedule); }

Result<Schedule> decode_schedule(BytesView bytes) {
  TRY(Schedule out, decode_fields<Schedule>(bytes, "a stored schedule"));
  TRY(json::Value document, json::parse(out.text));
  TRY(ScheduleSpec spec, parse_schedule(document, out.created));
  out.spec = std::make_shared<const ScheduleSpec>(std::move(spec));
  return out;
}

template <class F, FieldsOf<ScheduleRun> T>
void fields(F& f, T& r) {
  f.format(1);
  f(r.number);
  f(r.due);
  f(r.at);
  f(r.outcome);
  f(r.instance_id);
  f(r.message);
}

Bytes encode(const ScheduleRun& run) { return encode_fields(run); }
Result<ScheduleRun> decode_run(BytesView bytes) {
  return decode_fields<ScheduleRun>(bytes, "a stored run of a schedule");
}

std::string_view outcome_name(RunOutcome outcome) {
  constexpr std::string_view kNames[] = {"", "started", "skipped", "failed", "missed"};
  return kNames[static_cast<size_t>(outcome)];
}

Key schedule_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "c", id});
}
Key schedule_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "c"}); }
Key run_key(std::string_view tenant, std::string_view id, uint64_t number) {
  const std::string slot = std::to_string(number % kRememberedRuns);
  return key({kProgram, tenant, "h", id, std::string(3 - slot.size(), '0') + slot});
}
Key runs_prefix(std::string_view tenant, std::string_view id) {
  return prefix({kProgram, tenant, "h", id});
}
Key run_end_key(std::string_view tenant, std::string_view instance_id) {
  return key({kProgram, tenant, "y", instance_id});
}

static constexpr std::string_view kTimerLead = "processes:schedule:";

std::string schedule_timer_id(const ScheduleTimer& timer) {
  return std::string(kTimerLead) + timer.schedule_id + ":" + std::to_string(timer.number) + ":" +
         timer.tenant;
}

// Ids of schedules have no colon; a tenant may.
std::optional<ScheduleTimer> parse_schedule_timer(std::string_view effect_id) {
  if (!effect_id.starts_with(kTimerLead)) return std::nullopt;
  effect_id.remove_prefix(kTimerLead.size());
  const size_t first = effect_id.find(':');
  const size_t second = first == std::string_view::npos ? first : effect_id.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  ScheduleTimer out{std::string(effect_id.substr(second + 1)),
                    std::string(effect_id.substr(0, first)), 0};
  std::from_chars(effect_id.data() + first + 1, effect_id.data() + second, out.number);
  return out;
}

json::Value schedule_json(const Schedule& schedule) {
  auto document = json::parse(schedule.text);
  json::Value out = document ? std::move(*document) : json::Value(json::Object());
  json::Object& o = out.object();
  const bool finished = schedule.next == 0 && schedule.backlog.empty();
  o.set("overlap", kOverlaps[static_cast<size_t>(schedule.spec->overlap)]);
  o.set("catchUp", kCatchUps[static_cast<size_t>(schedule.spec->catch_up)]);
  o.set("state", schedule.paused ? "paused" : finished ? "finished" : "active");
  if (schedule.paused) o.set("pauseReason", schedule.pause_reason);
  o.set("createdAt", rfc3339(schedule.created, 6));
  o.set("updatedAt", rfc3339(schedule.changed, 6));
  if (schedule.next && !schedule.paused) o.set("nextRunAt", rfc3339(schedule.next, 6));
  json::Array running;
  for (const std::string& id : schedule.running)
    running.push_back(json::Value(id));
  o.set("running", json::Value(std::move(running)));
  o.set("queued", static_cast<uint64_t>(schedule.queued.size()));
  o.set("counts", json::object({{"started", schedule.started},
                                {"skipped", schedule.skipped},
                                {"failed", schedule.failed},
                                {"missed", schedule.missed}}));
  return out;
}

json::Value run_json(const ScheduleRun& run) {
  json::Value out = json::object({{"run", run.number},
                                  {"scheduledFor", rfc3339(run.due, 6)},
                                  {"at", rfc3339(run.at, 6)},
                                  {"outcome", outcome_name(run.outcome)}});
  if (!run.instance_id.empty()) out.object().add("instanceId", run.instance_id);
  if (!run.message.empty()) out.object().add("message", run.message);
  return out;
}

}  // namespace pawl::processes
