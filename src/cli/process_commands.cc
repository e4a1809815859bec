// Commands of the processes face.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/graph.h"
#include "cli/remote.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

static const json::Value& member(const json::Value& v, std::string_view name) {
  static const json::Value none;
  const json::Value* m = v.find(name);
  return m ? *m : none;
}

static bool over(const json::Value& instance) {
  std::string_view s = instance.string_or("status");
  return s == "COMPLETED" || s == "FAILED" || s == "CANCELLED";
}

static void print_instance(const json::Value& v) {
  fmt::print("{}  {} v{}  {}", v.string_or("id"), v.string_or("definitionId"),
             json::print(member(v, "definitionVersion")), v.string_or("status"));
  if (const json::Value* steps = v.find("currentStepIds");
      steps && steps->is_array() && !steps->array().empty())
    fmt::print("  at {}", json::print(*steps));
  if (!v.string_or("failureReason").empty()) fmt::print("\n  {}", v.string_or("failureReason"));
  fmt::print("\n  variables {}\n", json::print(member(v, "variables")));
}

static Result<int> deploy(const Args& args) {
  if (args.words.empty()) return fail(Code::invalid, "BAD_USE", "name the files to deploy");
  TRY(auto client, client_of(args));
  json::Array done;
  for (const std::string& path : args.words) {
    TRY(json::Value definition, read_json(path));
    auto summary = client->call("POST", "/v1/definitions", &definition);
    if (!summary) {
      summary.error().message = fmt::format("{}: {}", path, summary.error().message);
      return fail(std::move(summary.error()));
    }
    done.push_back(std::move(*summary));
  }
  json::Value all(std::move(done));
  show(args, all, [&] {
    for (const auto& s : all.array())
      fmt::print("{} version {}\n", s.string_or("id"), json::print(member(s, "version")));
  });
  return kDone;
}

static Result<int> validate(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string path, word(args, 0, "the file"));
  TRY(json::Value definition, read_json(path));
  TRY(json::Value verdict, client->call("POST", "/pawl/v1/processes/validate", &definition));
  show(args, verdict, [&] { fmt::print("{}\n", json::print_pretty(verdict)); });
  const json::Value* valid = verdict.find("valid");
  return !valid || (valid->is_bool() && valid->boolean()) ? kDone : kFailed;
}

static Graph graph_of(const json::Value& definition) {
  Graph g;
  static const json::Array none;
  const json::Value* steps = definition.find("steps");
  for (const json::Value& step : steps && steps->is_array() ? steps->array() : none) {
    std::string id(step.string_or("id")), type(step.string_or("type"));
    Graph::Shape shape = type == "DECISION" || type == "DECISION_TABLE" ? Graph::Shape::diamond
                         : type == "END"                                ? Graph::Shape::circle
                         : type == "USER_TASK" || type == "WAIT"        ? Graph::Shape::round
                                                                        : Graph::Shape::box;
    g.nodes.push_back({id, std::string(step.string_or("name", id)), shape});
    if (auto next = step.string_or("nextStep"); !next.empty())
      g.edges.push_back({id, std::string(next), ""});
    if (const json::Value* branches = step.find("conditionalNextSteps");
        branches && branches->is_object())
      for (const auto& m : branches->object())
        if (m.value.is_string()) g.edges.push_back({id, m.value.string(), m.name});
    if (const json::Value* parallel = step.find("parallelNextSteps");
        parallel && parallel->is_array())
      for (const auto& to : parallel->array())
        if (to.is_string()) g.edges.push_back({id, to.string(), ""});
    if (const json::Value* events = step.find("boundaryEvents"); events && events->is_array())
      for (const auto& e : events->array())
        g.edges.push_back({id, std::string(e.string_or("targetStepId")),
                           std::string(e.string_or("duration")), true});
  }
  return g;
}

// Where either a file or an id may be named; "-" is standard input.
static bool is_file(const std::string& name) {
  return name == "-" || access(name.c_str(), R_OK) == 0;
}

static Result<int> render(const Args& args) {
  TRY(std::string name, word(args, 0, "a file or the id of a deployed definition"));
  json::Value definition;
  if (is_file(name)) {
    TRY(definition, read_json(name));
  } else {
    TRY(auto client, client_of(args));
    TRY(definition, client->call("GET", "/v1/definitions/" + percent_encode(name)));
  }
  TRY(std::string picture, draw(graph_of(definition), args.get("format", "svg")));
  fmt::print("{}", picture);
  return kDone;
}

static Result<json::Value> wait_until_over(Client& client, const std::string& id,
                                           const std::string& limit) {
  double seconds = limit.empty() ? 60 : std::atof(limit.c_str());
  auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    TRY(json::Value instance, client.call("GET", "/v1/instances/" + percent_encode(id)));
    if (over(instance)) return instance;
    if (std::chrono::steady_clock::now() > until)
      return fail(Code::unavailable, "TIMED_OUT",
                  fmt::format("instance {} is {} after {} s; it goes on: pawl instance watch {}",
                              id, instance.string_or("status"), seconds, id));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

static Result<int> start(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string id, word(args, 0, "the definition"));
  json::Object body;
  body.add("definitionId", id);
  if (args.has("version")) body.add("definitionVersion", json::Number{args.get("version")});
  if (args.has("business-key")) body.add("businessKey", args.get("business-key"));
  TRY(json::Object variables, pairs(args.all("var")));
  if (args.has("variables")) {
    TRY(json::Value file, read_json(args.get("variables")));
    if (!file.is_object()) return fail(Code::invalid, "BAD_USE", "variables are a JSON object");
    for (const auto& m : variables)
      file.object().set(m.name, m.value);
    variables = std::move(file.object());
  }
  body.add("variables", std::move(variables));
  json::Value request(std::move(body));
  TRY(json::Value instance, client->call("POST", "/v1/instances", &request));
  if (args.has("wait") && !over(instance)) {
    TRY(instance,
        wait_until_over(*client, std::string(instance.string_or("id")), args.get("timeout")));
  }
  show(args, instance, [&] { print_instance(instance); });
  return instance.string_or("status") == "FAILED" ? kFailed : kDone;
}

static Result<int> post_to(const Args& args, const std::string& path, const json::Value* body,
                           std::string_view said) {
  TRY(auto client, client_of(args));
  TRY(json::Value answer, client->call("POST", path, body));
  show(args, answer, [&] { fmt::print("{}\n", said); });
  return kDone;
}

static Result<int> signal_it(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  TRY(std::string step, word(args, 1, "the WAIT step"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Value body(std::move(variables));
  return post_to(
      args, fmt::format("/v1/instances/{}/signals/{}", percent_encode(id), percent_encode(step)),
      &body, "signalled");
}

static Result<int> cancel(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  json::Value body =
      json::object({{"reason", args.get("reason", "cancelled from the command line")}});
  return post_to(args, fmt::format("/v1/instances/{}/cancel", percent_encode(id)), &body,
                 "cancelled");
}

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

static Result<int> task_list(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value tasks, client->call("GET", "/pawl/v1/processes/tasks"));
  show(args, tasks, [&] {
    print_table(member(tasks, "items"),
                {"instanceId", "stepId", "name", "definitionId", "createdAt"});
  });
  return kDone;
}

static Result<int> task_complete(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  TRY(std::string step, word(args, 1, "the user task's step"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Value body = json::object({{"variables", std::move(variables)}});
  return post_to(args,
                 fmt::format("/v1/instances/{}/user-tasks/{}/complete", percent_encode(id),
                             percent_encode(step)),
                 &body, "completed");
}

constexpr std::pair<std::string_view, std::string_view> kRanges[] = {
    {"started-from", "startedFrom"},
    {"started-to", "startedTo"},
    {"updated-from", "updatedFrom"},
    {"updated-to", "updatedTo"}};

static Result<int> instance_list(const Args& args) {
  TRY(auto client, client_of(args));
  std::vector<std::pair<std::string_view, std::string>> filter = {
      {"status", args.get("status")},
      {"definitionId", args.get("definition")},
      {"businessKey", args.get("business-key")},
      {"step", args.get("step")},
      {"limit", args.get("limit", "20")}};
  for (const auto& [flag, name] : kRanges)
    filter.emplace_back(name, args.get(flag));
  for (const std::string& variable : args.all("var"))
    filter.emplace_back("variable", variable);
  std::string params = query(filter);
  TRY(json::Value list, client->call("GET", "/pawl/v1/processes/instances" + params));
  show(args, list, [&] {
    print_table(member(list, "items"),
                {"id", "definitionId", "status", "currentStepIds", "startedAt", "businessKey"});
  });
  return kDone;
}

static Result<int> instance_show(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string id, word(args, 0, "the instance"));
  std::string path = args.has("event")
                         ? fmt::format("/pawl/v1/processes/instances/{}/events/{}",
                                       percent_encode(id), percent_encode(args.get("event")))
                         : "/v1/instances/" + percent_encode(id);
  TRY(json::Value instance, client->call("GET", path));
  show(args, instance, [&] { print_instance(instance); });
  return kDone;
}

static Result<int> instance_history(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string id, word(args, 0, "the instance"));
  TRY(json::Value events, client->call("GET", fmt::format("/pawl/v1/processes/instances/{}/events",
                                                          percent_encode(id))));
  show(args, events, [&] {
    const json::Value& items = member(events, "items");
    if (!items.is_array()) return;
    for (const auto& e : items.array())
      fmt::print("{}\n", json::print(e));
  });
  return kDone;
}

static Result<int> instance_watch(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string id, word(args, 0, "the instance"));
  std::string last;
  while (true) {
    TRY(json::Value instance, client->call("GET", "/v1/instances/" + percent_encode(id)));
    std::string now = json::print(instance);
    if (now != last) {
      if (args.json())
        fmt::print("{}\n", now);
      else
        print_instance(instance);
      fflush(stdout);
      last = now;
    }
    if (over(instance)) return instance.string_or("status") == "COMPLETED" ? kDone : kFailed;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

static Result<int> job_poll(const Args& args) {
  TRY(auto client, client_of(args));
  json::Array types;
  for (const auto& w : args.words)
    types.emplace_back(w);
  if (types.empty()) return fail(Code::invalid, "BAD_USE", "name the job types");
  json::Value body = json::object({{"workerId", args.get("worker", "pawl-cli")},
                                   {"jobTypes", std::move(types)},
                                   {"maxJobs", json::Number{args.get("limit", "1")}}});
  if (args.has("wait"))
    body.object().add("maxWaitMs",
                      static_cast<int64_t>(std::atof(args.get("wait").c_str()) * 1000));
  TRY(json::Value jobs, client->call("POST", "/v1/jobs/poll", &body));
  show(args, jobs, [&] {
    print_table(member(jobs, "jobs"),
                {"id", "jobType", "instanceId", "stepId", "retriesRemaining", "variables"});
  });
  return kDone;
}

static Result<int> job_complete(const Args& args) {
  TRY(std::string id, word(args, 0, "the job"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Value body = json::object(
      {{"workerId", args.get("worker", "pawl-cli")}, {"variables", std::move(variables)}});
  return post_to(args, fmt::format("/v1/jobs/{}/complete", percent_encode(id)), &body, "completed");
}

static Result<int> job_fail(const Args& args) {
  TRY(std::string id, word(args, 0, "the job"));
  json::Value body =
      json::object({{"workerId", args.get("worker", "pawl-cli")},
                    {"errorMessage", args.get("error", "failed from the command line")},
                    {"retryable", args.has("retryable")}});
  return post_to(args, fmt::format("/v1/jobs/{}/fail", percent_encode(id)), &body, "failed");
}

std::vector<Command> process_commands() {
  const Flag var{"var", "NAME=VALUE",
                 "a variable; may be given several times; values are JSON or text"};
  const Flag reason{"reason", "TEXT", "why; kept in the history"};
  const Flag version{"version", "N", "of the definition (default the newest)"};
  const Flag map{"map", "OLD=NEW", "a step's new name; may be given several times"};
  const Flag preview{"preview", "", "say what would happen and change nothing"};
  const Flag worker{"worker", "ID", "the worker's name (default pawl-cli)"};
  return {
      {"deploy", "FILE...", "upload process definitions", {kServer, kToken}, deploy},
      {"validate",
       "FILE",
       "check a definition without storing it; exit 1 when it has problems",
       {kServer, kToken},
       validate},
      {"render",
       "FILE|ID",
       "draw a definition",
       {kServer, kToken, {"format", "svg|mermaid|dot", "the kind of picture (default svg)"}},
       render},
      {"start",
       "DEFINITION",
       "start an instance",
       {kServer,
        kToken,
        var,
        {"variables", "FILE", "a JSON object; - is standard input"},
        {"version", "N", "of the definition (default the newest)"},
        {"business-key", "KEY", "your own name for it"},
        {"wait", "", "until it is over"},
        {"timeout", "SECONDS", "with --wait (default 60)"}},
       start},
      {"signal", "INSTANCE STEP", "resume a WAIT step", {kServer, kToken, var}, signal_it},
      {"cancel", "INSTANCE", "end an instance", {kServer, kToken, reason}, cancel},
      {"retry",
       "INSTANCE",
       "try the step again at which an instance failed",
       {kServer, kToken, reason, var},
       [](const Args& a) { return operate(a, "retry"); }},
      {"instance list",
       "",
       "instances, newest first",
       {kServer,
        kToken,
        {"status", "STATUS", "ACTIVE, WAITING, COMPLETED, FAILED or CANCELLED"},
        {"definition", "ID", "of one definition"},
        {"business-key", "KEY", "with this key"},
        {"step", "ID", "that stand at this step"},
        {"limit", "N", "how many (default 20)"},
        {"var", "PATH=VALUE", "whose variable has this value; may be given several times"},
        {"started-from", "TIME", "begun then or later"},
        {"started-to", "TIME", "begun then or earlier"},
        {"updated-from", "TIME", "changed then or later"},
        {"updated-to", "TIME", "changed then or earlier"}},
       instance_list},
      {"instance show",
       "INSTANCE",
       "one instance",
       {kServer, kToken, {"event", "N", "as it stood after this event of its history"}},
       instance_show},
      {"instance history",
       "INSTANCE",
       "everything that happened to it",
       {kServer, kToken},
       instance_history},
      {"instance watch",
       "INSTANCE",
       "follow it until it is over",
       {kServer, kToken},
       instance_watch},
      {"instance skip",
       "INSTANCE",
       "go on after the failed step",
       {kServer, kToken, reason, {"step", "ID", "the step"}},
       [](const Args& a) { return operate(a, "skip"); }},
      {"instance move",
       "INSTANCE",
       "go on from another step",
       {kServer,
        kToken,
        reason,
        var,
        {"step", "ID", "where to"},
        {"from", "ID", "the step to leave, where it stands at several"}},
       [](const Args& a) { return operate(a, "move"); }},
      {"instance edit",
       "INSTANCE",
       "change variables",
       {kServer,
        kToken,
        reason,
        var,
        {"remove", "NAME", "a variable to remove; may be given several times"}},
       [](const Args& a) { return operate(a, "variables"); }},
      {"instance migrate",
       "INSTANCE",
       "go on under another version of its definition",
       {kServer, kToken, reason, version, map, preview},
       [](const Args& a) { return operate(a, "migrate"); }},
      {"instance restart",
       "INSTANCE",
       "begin a new instance at a past step of this one",
       {kServer,
        kToken,
        reason,
        var,
        {"step", "ID", "the step (default the first)"},
        {"event", "N", "as of this event"}},
       [](const Args& a) { return operate(a, "restart"); }},
      {"instance pause",
       "INSTANCE",
       "hold it where it is",
       {kServer, kToken, reason},
       [](const Args& a) { return operate(a, "pause"); }},
      {"instance resume",
       "INSTANCE",
       "let it go on",
       {kServer, kToken, reason},
       [](const Args& a) { return operate(a, "resume"); }},
      {"bulk",
       "OPERATION",
       "retry, skip, move, variables, cancel, pause, resume or migrate many instances",
       {kServer,
        kToken,
        reason,
        var,
        version,
        map,
        preview,
        {"instance", "ID", "one of them; may be given several times"},
        {"status", "STATUS", "all with this status"},
        {"definition", "ID", "all of this definition"},
        {"business-key", "KEY", "all with this key"},
        {"at", "ID", "all that stand at this step"},
        {"step", "ID", "the step that the operation wants"}},
       bulk},
      {"incidents",
       "",
       "failed instances, by definition, step and kind of failure",
       {kServer, kToken, {"definition", "ID", "of one definition"}},
       incidents},
      {"dry-run",
       "FILE|ID",
       "walk a definition with scripted results and write nothing",
       {kServer, kToken, var, {"script", "FILE", "a JSON object: results by step"}},
       dry_run},
      {"definition pause",
       "ID",
       "take no new instances of it",
       {kServer, kToken, reason},
       [](const Args& a) { return switch_all(a, "definitions", "pause"); }},
      {"definition resume",
       "ID",
       "take new instances again",
       {kServer, kToken, reason},
       [](const Args& a) { return switch_all(a, "definitions", "resume"); }},
      {"job types",
       "",
       "job types with what is offered, leased and waited for",
       {kServer, kToken},
       job_types},
      {"job pause",
       "TYPE",
       "hand out no more jobs of a type",
       {kServer, kToken, reason},
       [](const Args& a) { return switch_all(a, "job-types", "pause"); }},
      {"job resume",
       "TYPE",
       "hand them out again",
       {kServer, kToken, reason},
       [](const Args& a) { return switch_all(a, "job-types", "resume"); }},
      {"task list", "", "open user tasks, oldest first", {kServer, kToken}, task_list},
      {"task complete",
       "INSTANCE STEP",
       "complete a user task",
       {kServer, kToken, var},
       task_complete},
      {"job poll",
       "TYPE...",
       "lease jobs",
       {kServer,
        kToken,
        worker,
        {"limit", "N", "how many (default 1)"},
        {"wait", "SECONDS", "for the first one"}},
       job_poll},
      {"job complete",
       "JOB",
       "complete a leased job",
       {kServer, kToken, worker, var},
       job_complete},
      {"job fail",
       "JOB",
       "fail a leased job",
       {kServer,
        kToken,
        worker,
        {"error", "TEXT", "what went wrong"},
        {"retryable", "", "offer it again"}},
       job_fail},
  };
}

}  // namespace pawl::cli
