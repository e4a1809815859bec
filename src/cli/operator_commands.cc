// Commands of the processes face for operators: they mend, move and pause instances.

#include <fmt/format.h>

#include "cli/process_commands.h"

namespace pawl::cli {

using wire::percent_encode;

// What an operator's order says, from the flags that were given: each stands for one member.
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

// Holds or lets go all of a definition or of a job type.
static Result<int> switch_all(const Args& args, std::string_view of, std::string_view verb) {
  TRY(std::string id, word(args, 0, "which one"));
  json::Value body = json::object({{"reason", args.get("reason", "from the command line")}});
  return print_answer(args, "POST",
                      fmt::format("/pawl/v1/processes/{}/{}/{}", of, percent_encode(id), verb),
                      &body);
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
     "try the step again at which an instance failed",
     {kServer, kToken, kReason, kVar},
     [](const Args& a) { return operate(a, "retry"); }},
    {"instance skip",
     "INSTANCE",
     "go on after the failed step",
     {kServer, kToken, kReason, {"step", v::text("ID"), "the step"}},
     [](const Args& a) { return operate(a, "skip"); }},
    {"instance move",
     "INSTANCE",
     "go on from another step",
     {kServer,
      kToken,
      kReason,
      kVar,
      {"step", v::text("ID"), "where to"},
      {"from", v::text("ID"), "the step to leave, where it stands at several"}},
     [](const Args& a) { return operate(a, "move"); }},
    {"instance edit",
     "INSTANCE",
     "change variables",
     {kServer,
      kToken,
      kReason,
      kVar,
      {"remove", v::text("NAME"), "a variable to remove; may be given several times"}},
     [](const Args& a) { return operate(a, "variables"); }},
    {"instance migrate",
     "INSTANCE",
     "go on under another version of its definition",
     {kServer, kToken, kReason, kVersion, kMap, kPreview},
     [](const Args& a) { return operate(a, "migrate"); }},
    {"instance restart",
     "INSTANCE",
     "begin a new instance at a past step of this one",
     {kServer,
      kToken,
      kReason,
      kVar,
      {"step", v::text("ID"), "the step (default the first)"},
      {"event", v::number("N"), "as of this event"}},
     [](const Args& a) { return operate(a, "restart"); }},
    {"instance pause",
     "INSTANCE",
     "hold it where it is",
     {kServer, kToken, kReason},
     [](const Args& a) { return operate(a, "pause"); }},
    {"instance resume",
     "INSTANCE",
     "let it go on",
     {kServer, kToken, kReason},
     [](const Args& a) { return operate(a, "resume"); }},
    {"bulk",
     "OPERATION",
     "retry, skip, move, variables, cancel, pause, resume or migrate many instances",
     {kServer,
      kToken,
      kReason,
      kVar,
      kVersion,
      kMap,
      kPreview,
      {"instance", v::text("ID"), "one of them; may be given several times"},
      {"status", v::one_of("ACTIVE|WAITING|COMPLETED|FAILED|CANCELLED"), "all with this status"},
      {"definition", v::text("ID"), "all of this definition"},
      {"business-key", v::text("KEY"), "all with this key"},
      {"at", v::text("ID"), "all that stand at this step"},
      {"step", v::text("ID"), "the step that the operation wants"}},
     bulk},
    {"incidents",
     "",
     "failed instances, by definition, step and kind of failure",
     {kServer, kToken, {"definition", v::text("ID"), "of one definition"}},
     incidents},
    {"dry-run",
     "FILE|ID",
     "walk a definition with scripted results and write nothing",
     {kServer, kToken, kVar, {"script", v::path("FILE"), "a JSON object: results by step"}},
     dry_run},
    {"definition pause",
     "ID",
     "take no new instances of it",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "definitions", "pause"); }},
    {"definition resume",
     "ID",
     "take new instances again",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "definitions", "resume"); }},
    {"job types",
     "",
     "job types with what is offered, leased and waited for",
     {kServer, kToken},
     job_types},
    {"job pause",
     "TYPE",
     "hand out no more jobs of a type",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "job-types", "pause"); }},
    {"job resume",
     "TYPE",
     "hand them out again",
     {kServer, kToken, kReason},
     [](const Args& a) { return switch_all(a, "job-types", "resume"); }},
};

std::span<const Command> operator_commands() { return kOperatorCommands; }

}  // namespace pawl::cli
