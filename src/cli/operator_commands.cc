// Commands of the processes face for operators: retry, move, edit, migrate and pause instances.

#include <fmt/format.h>

#include "cli/process_commands.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

// The request body of an operator's command: one member for each flag that was given. The API calls
// the step `to` when instances are moved, and `stepId` everywhere else.
static Result<json::Object> order_of(const Args& args, std::string_view verb) {
  json::Object body;
  body.add("reason", args.get("reason", "from the command line"));
  if (args.has("step")) body.add(verb == "move" ? "to" : "stepId", args.get("step"));
  if (args.has("from")) body.add("from", args.get("from"));
  if (args.has("version")) body.add("version", json::Number{args.get("version")});
  if (args.has("event")) body.add("event", json::Number{args.get("event")});
  if (args.has("preview")) body.add("preview", true);
  if (!args.all("var").empty()) {
    TRY(json::Object variables, pairs(args.all("var")));
    body.add("variables", std::move(variables));
  }
  if (!args.all("map").empty()) {
    TRY(json::Object steps, pairs(args.all("map")));
    body.add("steps", std::move(steps));
  }
  json::Array removed;
  for (const std::string& name : args.all("remove"))
    removed.emplace_back(name);
  if (!removed.empty()) body.add("remove", std::move(removed));
  return body;
}

static Result<int> operate(const Args& args, std::string_view verb) {
  TRY(std::string id, word(args, 0, "the instance"));
  TRY(json::Object body, order_of(args, verb));
  json::Value request(std::move(body));
  return print_answer(args, "POST",
                      fmt::format("/pawl/v1/processes/instances/{}/{}", percent_encode(id), verb),
                      &request);
}

// Named instances win over the filter. The verb is not checked here: the server refuses others.
static Result<int> bulk(const Args& args) {
  TRY(std::string verb, word(args, 0, "the operation, for example retry"));
  TRY(json::Object body, order_of(args, verb));
  json::Object filter;
  const std::pair<std::string_view, std::string_view> fields[] = {{"status", "status"},
                                                                  {"definition", "definitionId"},
                                                                  {"business-key", "businessKey"},
                                                                  {"at", "step"}};
  for (const auto& [flag, name] : fields)
    if (args.has(flag)) filter.add(std::string(name), args.get(flag));
  json::Array ids;
  for (const std::string& id : args.all("instance"))
    ids.emplace_back(id);
  if (!ids.empty())
    body.add("instanceIds", std::move(ids));
  else
    body.add("filter", std::move(filter));
  json::Value request(std::move(body));
  return print_answer(args, "POST", "/pawl/v1/processes/bulk/" + percent_encode(verb), &request);
}

static Result<int> incidents(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value found,
      client->call("GET", "/pawl/v1/processes/incidents" +
                              query({{"definitionId", args.get("definition")}})));
  show(args, found, [&] {
    print_table(member(found, "items"),
                {"count", "definitionId", "stepId", "lastAt", "sampleInstanceId", "sampleReason"});
  });
  return kDone;
}

static Result<int> dry_run(const Args& args) {
  TRY(std::string name, word(args, 0, "a file or the id of a deployed definition"));
  json::Object body;
  if (is_file(name)) {
    TRY(json::Value definition, read_json(name));
    body.add("definition", std::move(definition));
  } else {
    body.add("definitionId", name);
  }
  TRY(json::Object variables, pairs(args.all("var")));
  body.add("variables", std::move(variables));
  if (args.has("script")) {
    TRY(json::Value script, read_json(args.get("script")));
    body.add("script", std::move(script));
  }
  json::Value request(std::move(body));
  return print_answer(args, "POST", "/pawl/v1/processes/dry-run", &request);
}

// Pauses or resumes a definition or a job type.
static Result<int> switch_all(const Args& args, std::string_view of, std::string_view verb) {
  TRY(std::string id, word(args, 0, "which one"));
  json::Value body = json::object({{"reason", args.get("reason", "from the command line")}});
  return print_answer(args, "POST",
                      fmt::format("/pawl/v1/processes/{}/{}/{}", of, percent_encode(id), verb),
                      &body);
}

static std::string definition_path(std::string_view id, std::string_view what = "") {
  return fmt::format("/pawl/v1/processes/definitions/{}{}", percent_encode(std::string(id)), what);
}

static Result<int> definition_versions(const Args& args) {
  TRY(std::string id, word(args, 0, "the definition"));
  TRY(auto client, client_of(args));
  TRY(json::Value found, client->call("GET", definition_path(id, "/versions")));
  show(args, found, [&] {
    print_table(member(found, "items"), {"version", "active", "name", "uploadedAt"});
  });
  return kDone;
}

static Result<int> definition_diff(const Args& args) {
  TRY(std::string id, word(args, 0, "the definition"));
  TRY(auto client, client_of(args));
  TRY(json::Value found,
      client->call("GET", definition_path(id, "/diff") +
                              query({{"from", args.get("from")}, {"to", args.get("to")}})));
  show(args, found, [&] { print_table(member(found, "changes"), {"path", "from", "to"}); });
  return kDone;
}

static Result<int> definition_activate(const Args& args) {
  TRY(std::string id, word(args, 0, "the definition"));
  TRY(std::string version, word(args, 1, "the version"));
  json::Value body = json::object({{"version", json::Value(json::Number{version})}});
  return print_answer(args, "POST", definition_path(id, "/activate"), &body);
}

static Result<int> definition_delete(const Args& args) {
  TRY(std::string id, word(args, 0, "the definition"));
  return print_answer(args, "DELETE", definition_path(id), nullptr);
}

static Result<int> instance_delete(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  return print_answer(args, "DELETE", "/v1/instances/" + percent_encode(id), nullptr);
}

// Without a flag it only shows the defaults. A flag with an empty duration means for ever.
static Result<int> retention(const Args& args) {
  constexpr std::string_view kPath = "/pawl/v1/processes/retention";
  constexpr std::string_view kStatuses[] = {"completed", "failed", "cancelled"};
  TRY(auto client, client_of(args));
  TRY(json::Value current, client->call("GET", std::string(kPath)));
  bool change = false;
  for (std::string_view name : kStatuses) {
    if (!args.has(name)) continue;
    current.object().set(std::string(name), json::Value(args.get(name)));
    change = true;
  }
  if (change) {
    TRY(current, client->call("PUT", std::string(kPath), &current));
  }
  show(args, current, [&] { fmt::print("{}\n", json::print_pretty(current)); });
  return kDone;
}

static Result<int> job_types(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value types, client->call("GET", "/pawl/v1/processes/job-types"));
  show(args, types, [&] {
    print_table(member(types, "items"),
                {"jobType", "offered", "leased", "waitingPolls", "paused", "reason"});
  });
  return kDone;
}

static constexpr Flag kVersion{"version", v::number("N"),
                               "version of the definition (default the newest)"};
static constexpr Flag kMap{"map", v::pair("OLD=NEW"),
                           "the new name of a step; may be given several times"};
static constexpr Flag kPreview{"preview", v::none(), "print what would happen and change nothing"};

static constexpr Command kOperatorCommands[] = {
    {"retry",
     "INSTANCE",
     "retry the step at which an instance failed",
     {kServer, kToken, kReason, kVar},
     [](const Args& a) { return operate(a, "retry"); }},
    {"instance skip",
     "INSTANCE",
     "continue after the failed step",
     {kServer, kToken, kReason, {"step", v::text("ID"), "the step"}},
     [](const Args& a) { return operate(a, "skip"); }},
    {"instance move",
     "INSTANCE",
     "continue at another step",
     {kServer,
      kToken,
      kReason,
      kVar,
      {"step", v::text("ID"), "the step to continue at"},
      {"from", v::text("ID"), "the step to leave, when the instance is at several"}},
     [](const Args& a) { return operate(a, "move"); }},
    {"instance edit",
     "INSTANCE",
     "change variables of an instance",
     {kServer,
      kToken,
      kReason,
      kVar,
      {"remove", v::text("NAME"), "a variable to remove; may be given several times"}},
     [](const Args& a) { return operate(a, "variables"); }},
    {"instance migrate",
     "INSTANCE",
     "move an instance to another version of its definition",
     {kServer, kToken, kReason, kVersion, kMap, kPreview},
     [](const Args& a) { return operate(a, "migrate"); }},
    {"instance restart",
     "INSTANCE",
     "start a new instance at a past step of this one",
     {kServer,
      kToken,
      kReason,
      kVar,
      {"step", v::text("ID"), "the step (default the first)"},
      {"event", v::number("N"), "with the variables as of this event"}},
     [](const Args& a) { return operate(a, "restart"); }},
    {"instance compensate",
     "INSTANCE",
     "undo the steps that an instance has done, the last one first",
     {kServer, kToken, kReason},
     [](const Args& a) { return operate(a, "compensate"); }},
    {"instance delete",
     "INSTANCE",
     "delete an instance that has ended, with its history",
     {kServer, kToken},
     instance_delete},
    {"retention",
     "",
     "show or set how long instances stay after their end, unless their definition says it",
     {kServer,
      kToken,
      {"completed", v::text("DURATION"), "completed instances, for example P30D"},
      {"failed", v::text("DURATION"), "failed instances"},
      {"cancelled", v::text("DURATION"), "cancelled instances"}},
     retention},
    {"instance pause",
     "INSTANCE",
     "pause an instance",
     {kServer, kToken, kReason},
     [](const Args& a) { return operate(a, "pause"); }},
    {"instance resume",
     "INSTANCE",
     "resume an instance",
     {kServer, kToken, kReason},
     [](const Args& a) { return operate(a, "resume"); }},
    {"bulk",
     "OPERATION",
     "retry, skip, move, variables, cancel, pause, resume, migrate or compensate many instances",
     {kServer,
      kToken,
      kReason,
      kVar,
      kVersion,
      kMap,
      kPreview,
      {"instance", v::text("ID"), "an instance; may be given several times"},
      {"status", v::one_of("ACTIVE|WAITING|COMPLETED|FAILED|CANCELLED"), "all with this status"},
      {"definition", v::text("ID"), "all instances of this definition"},
      {"business-key", v::text("KEY"), "all instances with this business key"},
      {"at", v::text("ID"), "all instances at this step"},
      {"step", v::text("ID"), "the step that the operation needs"}},
     bulk},
    {"incidents",
     "",
     "count failed instances by definition, step and failure",
     {kServer, kToken, {"definition", v::text("ID"), "only of this definition"}},
     incidents},
    {"dry-run",
     "FILE|ID",
     "run a definition with scripted results, without storing anything",
     {kServer, kToken, kVar, {"script", v::path("FILE"), "JSON object with the results by step"}},
     dry_run},
    {"definition pause",
     "ID",
     "stop starting instances of a definition",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "definitions", "pause"); }},
    {"definition resume",
     "ID",
     "allow new instances of a definition again",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "definitions", "resume"); }},
    {"definition versions",
     "ID",
     "list the versions of a definition and the active one",
     {kServer, kToken},
     definition_versions},
    {"definition activate",
     "ID VERSION",
     "let new instances start on this version",
     {kServer, kToken},
     definition_activate},
    {"definition retire",
     "ID",
     "refuse new instances until a version is activated",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "definitions", "retire"); }},
    {"definition delete",
     "ID",
     "delete a definition of which no instance runs",
     {kServer, kToken},
     definition_delete},
    {"definition diff",
     "ID",
     "list what changed between two versions",
     {kServer,
      kToken,
      {"from", v::number("N"), "the earlier version (default the one before)"},
      {"to", v::number("N"), "the later version (default the last)"}},
     definition_diff},
    {"job types",
     "",
     "list job types with offered jobs, leased jobs and waiting polls",
     {kServer, kToken},
     job_types},
    {"job pause",
     "TYPE",
     "stop handing out jobs of a type",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "job-types", "pause"); }},
    {"job resume",
     "TYPE",
     "hand out jobs of a type again",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "job-types", "resume"); }},
};

std::span<const Command> operator_commands() { return kOperatorCommands; }

}  // namespace pawl::cli
