// Routes of schedules.

#include <charconv>

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "faces/processes/schedule/schedules.h"
#include "faces/processes/schedule/shape.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr AnswerShape kScheduleCounts{
    "ScheduleCounts", {count("started"), count("skipped"), count("failed"), count("missed")}};
constexpr AnswerShape kScheduleState{"Schedule",
                                     {text("id").example(R"("nightly")"),
                                      text("definitionId").example(R"("loan")"),
                                      integer("definitionVersion").optional(),
                                      variables("variables").optional(),
                                      text("businessKey").optional(),
                                      text("cron").optional().example(R"("0 3 * * *")"),
                                      text("interval").optional(),
                                      object("calendar", "", kCalendar).optional(),
                                      text("timeZone").optional(),
                                      time("startAt").optional(),
                                      time("endAt").optional(),
                                      choice("catchUp", kSchedule["catchUp"].choices),
                                      choice("overlap", kSchedule["overlap"].choices),
                                      text("timeVariable").optional(),
                                      text("description").optional(),
                                      choice("state", {"active", "paused", "finished"}),
                                      text("pauseReason").optional(),
                                      time("createdAt"),
                                      time("updatedAt"),
                                      time("nextRunAt").optional(),
                                      texts("running", "Instances that are not finished."),
                                      count("queued"),
                                      object("counts", "How its runs went.", kScheduleCounts)}};
constexpr AnswerShape kSchedulesPage{
    "Schedules",
    {list("items", "By id.", kScheduleState),
     text("after", "For the next page; absent: there is none.").optional()}};
constexpr AnswerShape kRun{"ScheduleRun",
                           {integer("run").optional(), time("scheduledFor"), time("at").optional(),
                            choice("outcome", {"started", "skipped", "failed", "missed", "queued"}),
                            text("instanceId").optional(), text("message").optional()}};
constexpr AnswerShape kRuns{"ScheduleRuns", {list("items", "The newest first.", kRun)}};
constexpr AnswerShape kTimes{"ScheduleTimes",
                             {texts("items", "Times.").example(R"(["2026-12-01T03:00:00Z"])")}};
constexpr AnswerShape kGone{"DeletedSchedule", {text("id"), flag("deleted")}};
constexpr RequestShape kSchedulePath{"", {text("id", "The id of the schedule.")}};
constexpr RequestShape kSchedulesQuery{
    "",
    {text("definitionId"), text("after", "The id after which the page begins."),
     integer("limit", "How many.").range(1, kMaxPage).by_default(50)}};
constexpr RequestShape kNextQuery{
    "",
    {integer("count", "How many.").range(1, kShownRuns).by_default(10),
     time("from", "The time after which; none: now.")}};

constexpr Operation kCreate{.id = "createSchedule",
                            .headers = &wire::kIdempotencyHeader,
                            .body = {kSchedule},
                            .replies = {{201, "The schedule.", kScheduleState}},
                            .errors = {404, 409, 422}};
constexpr Operation kList{.id = "listSchedules",
                          .query = &kSchedulesQuery,
                          .replies = {{200, "A page of schedules.", kSchedulesPage}}};
constexpr Operation kShow{.id = "getSchedule",
                          .path = &kSchedulePath,
                          .replies = {{200, "The schedule.", kScheduleState}}};
constexpr Operation kReplace{.id = "putSchedule",
                             .path = &kSchedulePath,
                             .headers = &wire::kIdempotencyHeader,
                             .body = {kSchedule},
                             .replies = {{200, "The schedule.", kScheduleState}},
                             .errors = {409, 422}};
constexpr Operation kNext{.id = "listNextScheduleRuns",
                          .path = &kSchedulePath,
                          .query = &kNextQuery,
                          .replies = {{200, "The times.", kTimes}}};
constexpr Operation kListRuns{
    .id = "listScheduleRuns", .path = &kSchedulePath, .replies = {{200, "The runs.", kRuns}}};
constexpr Operation operating(std::string_view id, const wire::AnyShape& answer,
                              std::string_view doc) {
  return {.id = id,
          .path = &kSchedulePath,
          .headers = &wire::kIdempotencyHeader,
          .body = wire::optional_body(kReason),
          .replies = {{200, doc, answer}},
          .errors = {409, 422}};
}
constexpr Operation kDelete = operating("deleteSchedule", kGone, "The schedule is deleted.");
constexpr Operation kPause = operating("pauseSchedule", kScheduleState, "The schedule.");
constexpr Operation kResume = operating("resumeSchedule", kScheduleState, "The schedule.");
constexpr Operation kTrigger = operating("triggerSchedule", kRun, "The run.");

// A number of the query, within the range of its row.
Result<size_t> number_of(const wire::Request& request, const wire::Member& row) {
  auto text = request.query_param(row);
  if (!text || text->empty()) return static_cast<size_t>(*row.default_integer);
  const size_t max = static_cast<size_t>(*row.max);
  size_t n = 0;
  auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), n);
  if (failed != std::errc() || end != text->data() + text->size() || n < 1 || n > max)
    return fail(Code::invalid, "BAD_REQUEST",
                std::string(row.name) + " must be a number from 1 to " + std::to_string(max));
  return n;
}

Result<std::string> list(Schedules& schedules, const wire::Request& request) {
  TRY(size_t limit, number_of(request, kSchedulesQuery["limit"]));
  TRY(std::vector<Schedule> found,
      schedules.list(request.caller.tenant,
                     request.query_param(kSchedulesQuery["definitionId"]).value_or(""),
                     request.query_param(kSchedulesQuery["after"]).value_or(""), limit));
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
  TRY(size_t count, number_of(request, kNextQuery["count"]));
  TRY(Schedule schedule, schedules.find(request.caller.tenant, request.params[0]));
  Time from = schedules.now();
  if (auto text = request.query_param(kNextQuery["from"]); text && !text->empty()) {
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
  if (document.find(kSchedule["id"]) && document.string_or(kSchedule["id"]) != id)
    return respond(refusal(
        {Code::invalid, "BAD_SCHEDULE", "the body has another id than the path: leave it out"}));
  document.object().set(std::string(kSchedule["id"].name), id);
  schedules.put(submitter_of(request), std::move(document), true,
                reply_with(std::move(respond), 200));
}

wire::Handler operation(Schedules& schedules, std::string_view name) {
  return [&schedules, name](wire::Request request, wire::Respond respond) {
    auto body = wire::BodyReader::of(request, kOptionalBody);
    auto reason = body ? body->text(kReason["reason"]) : Result<std::string>(fail(body.error()));
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
      {"POST", all, command(create), "Creates a schedule that starts instances when it is due.",
       &kCreate},
      wire::slow({"GET", all, reader(schedules, list), "Lists schedules by id.", &kList}),
      {"GET", one, reader(schedules, show), "Returns a schedule with its state and counts.",
       &kShow},
      {"PUT", one, command(replace), "Creates or replaces a schedule.", &kReplace},
      {"DELETE", one, operation(schedules, "delete"), "Deletes a schedule. Its instances go on.",
       &kDelete},
      wire::slow({"GET", one + "/next", reader(schedules, next),
                  "Returns the times of the next runs.", &kNext}),
      wire::slow({"GET", one + "/runs", reader(schedules, runs),
                  "Returns the last 100 runs with their instances, the newest first.", &kListRuns}),
      {"POST", one + "/pause", operation(schedules, "pause"),
       "Pauses a schedule. Runs that fall into the pause are not caught up.", &kPause},
      {"POST", one + "/resume", operation(schedules, "resume"), "Resumes a paused schedule.",
       &kResume},
      {"POST", one + "/trigger", operation(schedules, "trigger"),
       "Runs a schedule now, by its overlap policy.", &kTrigger},
  };
}

}  // namespace pawl::processes
