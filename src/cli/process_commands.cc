// Commands of the processes face: definitions and instances. Each function is the `run` of one row
// of the table at the end; --json prints the server's answer, and without it the answer is printed
// for a person.

#include "cli/process_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/graph.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

const json::Value& member(const json::Value& v, std::string_view name) {
  static const json::Value none;
  const json::Value* m = v.find(name);
  return m ? *m : none;
}

bool is_file(const std::string& name) { return name == "-" || access(name.c_str(), R_OK) == 0; }

Result<int> post_to(const Args& args, const std::string& path, const json::Value* body,
                    std::string_view said) {
  TRY(auto client, client_of(args));
  TRY(json::Value answer, client->call("POST", path, body));
  show(args, answer, [&] { fmt::print("{}\n", said); });
  return kDone;
}

// True in the three terminal states of an instance.
static bool over(const json::Value& instance) {
  std::string_view s = instance.string_or("status");
  return s == "COMPLETED" || s == "FAILED" || s == "CANCELLED";
}

// Two or three lines: identity and status, the reason of a failure, the variables.
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
  if (args.words.empty()) return fail(Code::invalid, kBadUsage, "name the files to deploy");
  TRY(auto client, client_of(args));
  json::Array done;
  for (const std::string& path : args.words) {
    // Files before the one that fails stay deployed.
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
      fmt::print("{} version {}{}\n", s.string_or("id"), json::print(member(s, "version")),
                 s.find("activated") ? ", an earlier text that is active again" : "");
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
  // The server answers 200 to a definition with problems, too.
  return !valid || (valid->is_bool() && valid->boolean()) ? kDone : kFailed;
}

// Edges come from the four members that name a next step. Timers on the border of a step are
// dashed.
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

// A name that is a readable file is a file; every other name is the id of a deployed definition.
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

// Polls every 50 ms. The instance goes on after the time is over.
static Result<json::Value> wait_until_over(Client& client, const std::string& id, double seconds) {
  auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    TRY(json::Value instance, client.call("GET", "/v1/instances/" + percent_encode(id)));
    if (over(instance)) return instance;
    if (std::chrono::steady_clock::now() > until)
      return fail(Code::unavailable, "TIMED_OUT",
                  fmt::format("instance {} is {} after {} s; it continues: pawl instance watch {}",
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
    if (!file.is_object()) return fail(Code::invalid, kBadUsage, "variables are a JSON object");
    // A --var wins over the same name in the file.
    for (const auto& m : variables)
      file.object().set(m.name, m.value);
    variables = std::move(file.object());
  }
  body.add("variables", std::move(variables));
  json::Value request(std::move(body));
  TRY(json::Value instance, client->call("POST", "/v1/instances", &request));
  if (args.has("wait") && !over(instance)) {
    TRY(instance, wait_until_over(*client, std::string(instance.string_or("id")),
                                  args.seconds("timeout", 60)));
  }
  show(args, instance, [&] {
    if (instance.find("existing"))
      fmt::print("the business key has an instance already; nothing was started\n");
    print_instance(instance);
  });
  return instance.string_or("status") == "FAILED" ? kFailed : kDone;
}

static Result<int> signal_it(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  TRY(std::string step, word(args, 1, "the WAIT step"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Value body(std::move(variables));
  return post_to(args,
                 fmt::format("/v1/instances/{}/signals/{}{}", percent_encode(id),
                             percent_encode(step), args.has("keep") ? "?keep=true" : ""),
                 &body, args.has("keep") ? "signalled, or kept for the step" : "signalled");
}

static Result<int> publish(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string name, word(args, 0, "the name of the signal"));
  TRY(json::Object variables, pairs(args.all("var")));
  json::Object body;
  body.add("name", name);
  body.add("correlationKey", args.get("key"));
  if (args.has("ttl")) body.add("ttl", args.get("ttl"));
  body.add("variables", std::move(variables));
  json::Value request(std::move(body));
  TRY(json::Value answer, client->call("POST", "/pawl/v1/processes/signals", &request));
  show(args, answer, [&] {
    if (answer.find("instanceId"))
      fmt::print("delivered to {} at {}\n", answer.string_or("instanceId"),
                 answer.string_or("stepId"));
    else
      fmt::print("kept until {}\n", answer.string_or("until"));
  });
  return kDone;
}

static Result<int> signals(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value list, client->call("GET", "/pawl/v1/processes/signals" +
                                                query({{"name", args.get("name")},
                                                       {"correlationKey", args.get("key")}})));
  show(args, list, [&] {
    print_table(member(list, "items"),
                {"id", "name", "correlationKey", "at", "until", "variables"});
  });
  return kDone;
}

static Result<int> cancel(const Args& args) {
  TRY(std::string id, word(args, 0, "the instance"));
  json::Value body =
      json::object({{"reason", args.get("reason", "cancelled from the command line")}});
  return post_to(args, fmt::format("/v1/instances/{}/cancel", percent_encode(id)), &body,
                 "cancelled");
}

// The flags of time ranges and the parameters of the API that they become.
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

static Result<int> instance_query(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string id, word(args, 0, "the instance"));
  std::string path = fmt::format("/pawl/v1/processes/instances/{}/queries", percent_encode(id));
  if (args.words.size() > 1) {
    TRY(json::Value answer, client->call("GET", path + "/" + percent_encode(args.words[1])));
    show(args, answer, [&] { fmt::print("{}\n", json::print(member(answer, "value"))); });
    return kDone;
  }
  TRY(json::Value answer, client->call("GET", path));
  show(args, answer, [&] { print_table(member(answer, "items"), {"name", "value", "error"}); });
  return kDone;
}

// Polls five times a second and prints the instance when its JSON differs from the last one.
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

static constexpr Command kProcessCommands[] = {
    {"deploy", "FILE...", "upload process definitions", {kServer, kToken}, deploy},
    {"validate",
     "FILE",
     "check a definition without storing it; exit 1 when it has problems",
     {kServer, kToken},
     validate},
    {"render",
     "FILE|ID",
     "draw a definition",
     {kServer,
      kToken,
      {"format", v::one_of("svg|mermaid|dot"), "format of the picture (default svg)"}},
     render},
    {"start",
     "DEFINITION",
     "start an instance",
     {kServer,
      kToken,
      kVar,
      {"variables", v::path("FILE"), "file with variables, a JSON object; - is standard input"},
      {"version", v::number("N"), "version of the definition (default the newest)"},
      {"business-key", v::text("KEY"), "business key of the instance"},
      {"wait", v::none(), "wait until the instance has ended"},
      {"timeout", v::seconds(), "how long --wait waits (default 60)"}},
     start},
    {"signal",
     "INSTANCE STEP",
     "resume a WAIT step",
     {kServer, kToken, kVar, {"keep", v::none(), "keep the signal when the step is not open yet"}},
     signal_it},
    {"publish",
     "SIGNAL",
     "resume the WAIT step that has waited longest for a signal, or keep the signal",
     {kServer,
      kToken,
      kVar,
      {"key", v::text("KEY"), "correlation key, by default the business key of the instance"},
      {"ttl", v::text("DURATION"), "how long the signal is kept, as PT1H (default P1D)"}},
     publish},
    {"signals",
     "",
     "list signals that are kept",
     {kServer,
      kToken,
      {"name", v::text("SIGNAL"), "only with this name"},
      {"key", v::text("KEY"), "only with this correlation key"}},
     signals},
    {"cancel", "INSTANCE", "end an instance", {kServer, kToken, kReason}, cancel},
    {"instance list",
     "",
     "list instances, newest first",
     {kServer,
      kToken,
      {"status", v::one_of("ACTIVE|WAITING|COMPLETED|FAILED|CANCELLED"),
       "only instances with this status"},
      {"definition", v::text("ID"), "only of this definition"},
      {"business-key", v::text("KEY"), "only with this business key"},
      {"step", v::text("ID"), "only instances at this step"},
      {"limit", v::number("N"), "maximum number of instances (default 20)"},
      {"var", v::pair("PATH=VALUE"),
       "only with this value of a variable; may be given several times"},
      {"started-from", v::time(), "started at that time or later"},
      {"started-to", v::time(), "started at that time or earlier"},
      {"updated-from", v::time(), "changed at that time or later"},
      {"updated-to", v::time(), "changed at that time or earlier"}},
     instance_list},
    {"instance show",
     "INSTANCE",
     "print an instance",
     {kServer, kToken, {"event", v::number("N"), "the state after this event of its history"}},
     instance_show},
    {"instance history",
     "INSTANCE",
     "list the events of an instance",
     {kServer, kToken},
     instance_history},
    {"instance query",
     "INSTANCE [NAME]",
     "evaluate a stored query of an instance's definition, or all of them",
     {kServer, kToken},
     instance_query},
    {"instance watch",
     "INSTANCE",
     "print an instance whenever it changes, until it has ended",
     {kServer, kToken},
     instance_watch},
};

std::span<const Command> process_commands() { return kProcessCommands; }

}  // namespace pawl::cli
