// Routes of schedules.

#include <charconv>

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "faces/processes/schedule/schedules.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

// A number from 1 to `max` from the query.
Result<size_t> number_of(const wire::Request& request, std::string_view name, size_t default_value,
                         size_t max) {
  auto text = request.query_param(name);
  if (!text || text->empty()) return default_value;
  size_t n = 0;
  auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), n);
  if (failed != std::errc() || end != text->data() + text->size() || n < 1 || n > max)
    return fail(Code::invalid, "BAD_REQUEST",
                std::string(name) + " must be a number from 1 to " + std::to_string(max));
  return n;
}

Result<std::string> list(Schedules& schedules, const wire::Request& request) {
  TRY(size_t limit, number_of(request, "limit", 50, kMaxPage));
  TRY(std::vector<Schedule> found,
      schedules.list(request.caller.tenant, request.query_param("definitionId").value_or(""),
                     request.query_param("after").value_or(""), limit));
  json::Array items;
  for (const Schedule& schedule : found)
    items.push_back(schedule_json(schedule));
  json::Value out = json::object({{"items", json::Value(std::move(items))}});
  if (found.size() == limit) out.object().add("after", found.back().spec->id);
  return json::print(out);
}

Result<std::string> show(Schedules& schedules, const wire::Request& request) {
  TRY(Schedule schedule, schedules.find(request.caller.tenant, request.params[0]));
  return json::print(schedule_json(schedule));
}

Result<std::string> next(Schedules& schedules, const wire::Request& request) {
  TRY(size_t count, number_of(request, "count", 10, kShownRuns));
  TRY(Schedule schedule, schedules.find(request.caller.tenant, request.params[0]));
  Time from = schedules.now();
  if (auto text = request.query_param("from"); text && !text->empty()) {
    auto time = parse_rfc3339(*text);
    if (!time) return fail(Code::invalid, "BAD_TIME", "from: " + time.error().message);
    from = *time;
  }
  json::Array items;
  for (Time at = schedule.spec->next(from); at && items.size() < count;
       at = schedule.spec->next(at))
    items.push_back(json::Value(rfc3339(at)));
  return json::print(json::object({{"items", json::Value(std::move(items))}}));
}

Result<std::string> runs(Schedules& schedules, const wire::Request& request) {
  TRY(Schedule schedule, schedules.find(request.caller.tenant, request.params[0]));
  TRY(std::vector<ScheduleRun> found, schedules.runs(request.caller.tenant, schedule));
  json::Array items;
  for (const ScheduleRun& run : found)
    items.push_back(run_json(run));
  return json::print(json::object({{"items", json::Value(std::move(items))}}));
}

using Read = Result<std::string> (*)(Schedules&, const wire::Request&);
wire::Handler reader(Schedules& schedules, Read read) {
  return [&schedules, read](wire::Request request, wire::Respond respond) {
    respond_with(respond, [&] { return read(schedules, request); });
  };
}

void create(Schedules& schedules, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kBody);
  if (!body) return respond(refusal(body.error()));
  schedules.put(submitter_of(request), std::move(*body).take(), false,
                reply_with(std::move(respond), 201));
}

// The id of the path is the schedule's; the body may repeat it.
void replace(Schedules& schedules, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kBody);
  if (!body) return respond(refusal(body.error()));
  json::Value document = std::move(*body).take();
  const std::string& id = request.params[0];
  if (document.find("id") && document.string_or("id") != id)
    return respond(refusal(
        {Code::invalid, "BAD_SCHEDULE", "the body has another id than the path: leave it out"}));
  document.object().set("id", id);
  schedules.put(submitter_of(request), std::move(document), true,
                reply_with(std::move(respond), 200));
}

wire::Handler operation(Schedules& schedules, std::string_view name) {
  return [&schedules, name](wire::Request request, wire::Respond respond) {
    auto body = wire::BodyReader::of(request, kOptionalBody);
    auto reason = body ? body->text("reason") : Result<std::string>(fail(body.error()));
    if (!reason) return respond(refusal(reason.error()));
    schedules.operate(submitter_of(request), name, request.params[0], *reason,
                      reply_with(std::move(respond), 200));
  };
}

}  // namespace

std::vector<wire::Route> schedule_routes(Schedules& schedules) {
  const std::string all = "/pawl/v1/processes/schedules", one = all + "/{id}";
  auto command = [&](auto handle) -> wire::Handler {
    return [&schedules, handle](wire::Request request, wire::Respond respond) {
      handle(schedules, std::move(request), std::move(respond));
    };
  };
  return {
      {"POST", all, command(create), "Creates a schedule that starts instances when it is due."},
      wire::slow({"GET", all, reader(schedules, list),
                  "Lists schedules by id; definitionId, limit and after."}),
      {"GET", one, reader(schedules, show), "Returns a schedule with its state and counts."},
      {"PUT", one, command(replace), "Creates or replaces a schedule."},
      {"DELETE", one, operation(schedules, "delete"), "Deletes a schedule. Its instances go on."},
      wire::slow({"GET", one + "/next", reader(schedules, next),
                  "Returns the times of the next runs; count (default 10) and from."}),
      wire::slow({"GET", one + "/runs", reader(schedules, runs),
                  "Returns the last 100 runs with their instances, the newest first."}),
      {"POST", one + "/pause", operation(schedules, "pause"),
       "Pauses a schedule. Runs that fall into the pause are not caught up."},
      {"POST", one + "/resume", operation(schedules, "resume"), "Resumes a paused schedule."},
      {"POST", one + "/trigger", operation(schedules, "trigger"),
       "Runs a schedule now, by its overlap policy."},
  };
}

}  // namespace pawl::processes
