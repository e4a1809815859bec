// Commands on schedules of processes.

#include <fmt/format.h>

#include "cli/remote.h"
#include "json/text.h"

namespace pawl::cli {

static constexpr std::string_view kSchedules = "/pawl/v1/processes/schedules";

static Result<std::string> schedule_path(const Args& args) {
  TRY(std::string id, word(args, 0, "the schedule"));
  return std::string(kSchedules) + "/" + wire::percent_encode(id);
}

// The members of a schedule that flags give, by the name of the flag.
static constexpr std::pair<const char*, const char*> kMembers[] = {
    {"definition", "definitionId"}, {"cron", "cron"},
    {"every", "interval"},          {"zone", "timeZone"},
    {"overlap", "overlap"},         {"catch-up", "catchUp"},
    {"start", "startAt"},           {"end", "endAt"},
    {"key", "businessKey"},         {"time-variable", "timeVariable"}};

// A schedule from a JSON file, from flags, or from both; flags win.
static Result<int> schedule_put(const Args& args) {
  TRY(std::string path, schedule_path(args));
  json::Value document = json::Object{};
  if (args.has("file")) {
    TRY(document, read_json(args.get("file")));
    if (!document.is_object())
      return fail(Code::invalid, kBadUsage, args.get("file") + " must hold one schedule");
  }
  document.object().set("id", args.words[0]);
  for (const auto& [flag, member] : kMembers)
    if (args.has(flag)) document.object().set(member, args.get(flag));
  if (args.has("var")) {
    TRY(json::Object variables, pairs(args.all("var")));
    document.object().set("variables", json::Value(std::move(variables)));
  }
  if (args.has("replace")) return print_answer(args, "PUT", path, &document);
  return print_answer(args, "POST", std::string(kSchedules), &document);
}

static Result<int> schedule_list(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value page,
      client->call("GET", std::string(kSchedules) + query({{"definitionId", args.get("definition")},
                                                           {"limit", args.get("limit")},
                                                           {"after", args.get("after")}})));
  show(args, page, [&] {
    if (const json::Value* items = page.find("items"))
      print_table(*items, {"id", "definitionId", "state", "nextRunAt"});
  });
  return kDone;
}

static Result<int> schedule_runs(const Args& args) {
  TRY(std::string path, schedule_path(args));
  TRY(auto client, client_of(args));
  TRY(json::Value page, client->call("GET", path + "/runs"));
  show(args, page, [&] {
    if (const json::Value* items = page.find("items"))
      print_table(*items, {"run", "scheduledFor", "outcome", "instanceId", "message"});
  });
  return kDone;
}

static Result<int> schedule_next(const Args& args) {
  TRY(std::string path, schedule_path(args));
  TRY(auto client, client_of(args));
  TRY(json::Value page,
      client->call("GET", path + "/next" +
                              query({{"count", args.get("count")}, {"from", args.get("from")}})));
  show(args, page, [&] {
    if (const json::Value* items = page.find("items"))
      for (const json::Value& at : items->array())
        fmt::print("{}\n", at.string());
  });
  return kDone;
}

static Result<int> schedule_operate(const Args& args, std::string_view operation) {
  TRY(std::string path, schedule_path(args));
  json::Value body = json::Object{};
  if (args.has("reason")) body.object().add("reason", args.get("reason"));
  return print_answer(args, "POST", path + "/" + std::string(operation), &body);
}

static constexpr Command kScheduleCommands[] = {
    {"schedule put",
     "SCHEDULE",
     "create a schedule, from flags or from a file",
     {kServer,
      kToken,
      {"definition", v::text("DEFINITION"), "the definition that it starts"},
      {"cron", v::text("EXPRESSION"), "minute hour day month weekday, such as '0 9 * * MON-FRI'"},
      {"every", v::text("DURATION"), "an interval, such as PT15M"},
      {"zone", v::text("ZONE"), "time zone of --cron, such as Europe/Berlin (default UTC)"},
      {"overlap", v::one_of("allow|skip|queue|cancel"),
       "when the run before is not finished (default skip)"},
      {"catch-up", v::one_of("none|last|all"), "which missed runs are made up (default last)"},
      {"start", v::text("TIME"), "no run before this time"},
      {"end", v::text("TIME"), "no run after this time"},
      {"key", v::text("KEY"), "business key; {time} in it is the time of the run"},
      {"time-variable", v::text("NAME"), "variable that gets the time of the run"},
      {"var", v::pair("NAME=VALUE"), "variable of the instances; may be given several times"},
      {"file", v::path("FILE"), "JSON of the schedule, for example with a calendar"},
      {"replace", v::none(), "replace a schedule that exists"}},
     schedule_put},
    {"schedule list",
     "",
     "list schedules by id",
     {kServer,
      kToken,
      {"definition", v::text("DEFINITION"), "only schedules of this definition"},
      {"limit", v::number("N"), "maximum number of results"},
      {"after", v::text("SCHEDULE"), "only schedules after this id"}},
     schedule_list},
    {"schedule show",
     "SCHEDULE",
     "print a schedule with its state and counts",
     {kServer, kToken},
     [](const Args& a) -> Result<int> {
       TRY(std::string path, schedule_path(a));
       return print_answer(a, "GET", path);
     }},
    {"schedule next",
     "SCHEDULE",
     "print the times of the next runs",
     {kServer,
      kToken,
      {"count", v::number("N"), "how many (default 10)"},
      {"from", v::text("TIME"), "only runs after this time (default now)"}},
     schedule_next},
    {"schedule runs",
     "SCHEDULE",
     "list the last runs with the instances that they started",
     {kServer, kToken},
     schedule_runs},
    {"schedule pause",
     "SCHEDULE",
     "pause a schedule; runs of the pause are not caught up",
     {kServer, kToken, {"reason", v::text("TEXT"), "why"}},
     [](const Args& a) { return schedule_operate(a, "pause"); }},
    {"schedule resume",
     "SCHEDULE",
     "resume a paused schedule",
     {kServer, kToken},
     [](const Args& a) { return schedule_operate(a, "resume"); }},
    {"schedule trigger",
     "SCHEDULE",
     "run a schedule now, by its overlap policy",
     {kServer, kToken},
     [](const Args& a) { return schedule_operate(a, "trigger"); }},
    {"schedule delete",
     "SCHEDULE",
     "delete a schedule; its instances go on",
     {kServer, kToken},
     [](const Args& a) -> Result<int> {
       TRY(std::string path, schedule_path(a));
       return print_answer(a, "DELETE", path);
     }},
};

std::span<const Command> schedule_commands() { return kScheduleCommands; }

}  // namespace pawl::cli
