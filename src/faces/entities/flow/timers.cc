#include <fmt/format.h>

#include <charconv>

#include "faces/entities/store/store.h"
#include "json/text.h"

// The timers of scheduled transitions and the times at which they are due.

namespace pawl::entities {

namespace {

constexpr char kSeparator = '\x1f';  // between the parts of a timer id

std::unexpected<Error> invalid_schedule(const std::string& transition, std::string_view why) {
  return fail(Code::internal, "SCHEDULE_FUNCTION_INVALID_RESULT",
              fmt::format("the schedule of transition \"{}\": {}", transition, why));
}

// Milliseconds since 1970 that a Time can hold: up to the year 2262.
constexpr int64_t kLastMs = INT64_MAX / kMillisecond;
Time after(Time t, int64_t ms) { return add(t, {.nanos = std::min(ms, kLastMs) * kMillisecond}); }

Result<std::optional<int64_t>> milliseconds(const json::Value& from, std::string_view name,
                                            const std::string& transition) {
  const json::Value* v = from.find(name);
  if (!v || v->is_null()) return std::optional<int64_t>();
  auto n = v->as_int64();
  if (!n || *n > kLastMs || *n < -kLastMs)
    return invalid_schedule(transition, fmt::format("{} is not a number of milliseconds", name));
  return std::optional(*n);
}

Timing timing_of(const Transition& t, Time now) {
  Timing out{t.name, after(now, t.schedule->delay_ms)};
  if (t.schedule->timeout_ms >= 0) out.expires = after(out.at, t.schedule->timeout_ms);
  return out;
}

}  // namespace

Result<Timing> read_timing(const std::string& transition, std::string_view answer, Time now) {
  TRY(json::Value parsed, json::parse(answer));
  if (parsed.string_or("resultKind") != "Schedule")
    return invalid_schedule(transition, fmt::format("the resultKind is '{}', not Schedule",
                                                    parsed.string_or("resultKind")));
  const json::Value* result = parsed.find("result");
  if (!result || !result->is_object())
    return invalid_schedule(transition, "the result is not an object");
  constexpr std::string_view kNames[] = {"fireAt", "fireAfterMs", "expireAt", "expireAfterMs"};
  for (const json::Member& m : result->object())
    if (std::find(std::begin(kNames), std::end(kNames), m.name) == std::end(kNames))
      return invalid_schedule(transition,
                              fmt::format("the result has an unknown member '{}'", m.name));
  TRY(auto at, milliseconds(*result, "fireAt", transition));
  TRY(auto after, milliseconds(*result, "fireAfterMs", transition));
  TRY(auto expire_at, milliseconds(*result, "expireAt", transition));
  TRY(auto expire_after, milliseconds(*result, "expireAfterMs", transition));
  if (at.has_value() == after.has_value())
    return invalid_schedule(transition, "exactly one of fireAt and fireAfterMs is needed");
  if (expire_at && expire_after)
    return invalid_schedule(transition, "at most one of expireAt and expireAfterMs may be given");
  int64_t fire_ms = at ? *at : now / kMillisecond + *after;
  int64_t expire_ms = expire_at ? *expire_at : expire_after ? fire_ms + *expire_after : 0;
  if (fire_ms > kLastMs || expire_ms > kLastMs)
    return invalid_schedule(transition, "the time is too far away");
  // A time before 1970 is due at once, like 1970 itself.
  Timing out{transition, std::max<int64_t>(fire_ms, 0) * kMillisecond};
  if (expire_at || expire_after)
    out.expires = std::max<int64_t>(std::max<int64_t>(expire_ms, 0) * kMillisecond, 1);
  return out;
}

void rearm_timers(Turn& turn, std::string_view tenant, const Workflow* flow,
                  const std::vector<Timing>& timings, Entity& entity, std::vector<Event>& events) {
  for (const std::string& timer : entity.timers) {
    turn.withdraw(timer);
    auto due = parse_timer_id(timer);
    if (due && (!flow || !flow->find(entity.state, due->transition)))
      events.push_back({EventKind::schedule_cancel,
                        entity.state,
                        fmt::format("scheduled transition \"{}\" cancelled", due->transition),
                        {}});
  }
  entity.timers.clear();
  if (!flow) return;
  for (const Transition& t : flow->transitions(entity.state)) {
    if (!t.schedule || t.disabled) continue;
    auto chosen = std::find_if(timings.begin(), timings.end(),
                               [&](const Timing& timing) { return timing.transition == t.name; });
    Timing timing = chosen == timings.end() ? timing_of(t, turn.now()) : *chosen;
    if (chosen != timings.end() && timing.expires && timing.expires <= timing.at) {
      events.push_back({EventKind::schedule_expire,
                        entity.state,
                        fmt::format("scheduled transition \"{}\" expires at {}, before it is due",
                                    t.name, rfc3339(timing.expires)),
                        {}});
      continue;
    }
    Effect effect;
    effect.id = encode_timer_id({std::string(tenant), entity.id, t.name, timing.at, timing.expires},
                                entity.tx);
    effect.to = To::clock;
    effect.program = kProgram;
    effect.tenant = tenant;
    effect.due = timing.at;
    entity.timers.push_back(effect.id);
    events.push_back({EventKind::schedule_arm,
                      entity.state,
                      fmt::format("transition \"{}\" scheduled for {}", t.name, rfc3339(timing.at)),
                      {}});
    turn.open(std::move(effect));
  }
}

std::string encode_timer_id(const TimerId& due, std::string_view tx) {
  std::string when =
      due.expires ? fmt::format("{}/{}", due.at, due.expires) : std::to_string(due.at);
  return fmt::format("due{0}{1}{0}{2}{0}{3}{0}{4}{0}{5}", kSeparator, due.tenant, due.entity, when,
                     tx, due.transition);
}

Result<TimerId> parse_timer_id(std::string_view id) {
  std::vector<std::string_view> parts;
  for (int i = 0; i < 5; ++i) {
    size_t end = id.find(kSeparator);
    if (end == id.npos) break;
    parts.push_back(id.substr(0, end));
    id.remove_prefix(end + 1);
  }
  TimerId due;
  auto number = [](std::string_view text, Time& out) {
    return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
  };
  if (parts.size() != 5 || parts[0] != "due" || !number(parts[3], due.at))
    return fail(Code::not_found, "UNKNOWN_TIMER",
                "the receipt names no timer of the entities face");
  if (size_t slash = parts[3].find('/'); slash != parts[3].npos)
    number(parts[3].substr(slash + 1), due.expires);
  due.tenant = parts[1];
  due.entity = parts[2];
  due.transition = id;
  return due;
}

}  // namespace pawl::entities
