// Commands of the lifecycle face: the operator API from the command line.

#include <fmt/format.h>

#include "cli/graph.h"
#include "cli/remote.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

static Result<std::string> instance_path(const Args& args) {
  TRY(std::string type, word(args, 0, "the type"));
  TRY(std::string id, word(args, 1, "the instance"));
  return fmt::format("/workflows/{}/{}", percent_encode(type), percent_encode(id));
}

// A phase that is only a target has no row of its own, and so it is terminal.
static Graph phases_of(const json::Value& definition) {
  Graph g;
  const json::Value* table = definition.find("transitions");
  if (!table || !table->is_object()) return g;
  auto node = [&](const std::string& phase, bool terminal) {
    for (const auto& n : g.nodes)
      if (n.id == phase) return;
    g.nodes.push_back({phase, phase, terminal ? Graph::Shape::circle : Graph::Shape::round});
  };
  for (const auto& row : table->object())
    node(row.name, row.value.is_array() && row.value.array().empty());
  for (const auto& row : table->object())
    if (row.value.is_array())
      for (const auto& to : row.value.array())
        if (to.is_string()) {
          node(to.string(), true);
          g.edges.push_back({row.name, to.string(), ""});
        }
  return g;
}

static Result<int> types(const Args& args) {
  if (!args.has("render")) {
    if (args.words.empty()) return print_answer(args, "GET", "/workflows");
    return print_answer(args, "GET", "/pawl/v1/lifecycle/types/" + percent_encode(args.words[0]));
  }
  TRY(std::string type, word(args, 0, "the type to draw"));
  TRY(auto client, client_of(args));
  TRY(json::Value definition,
      client->call("GET", "/pawl/v1/lifecycle/types/" + percent_encode(type)));
  TRY(std::string picture, draw(phases_of(definition), args.get("render")));
  fmt::print("{}", picture);
  return kDone;
}

static Result<int> list(const Args& args) {
  TRY(std::string type, word(args, 0, "the type"));
  // Holds the names that `params` only refers to.
  std::vector<std::pair<std::string, std::string>> match;
  for (const std::string& pair : args.all("match")) {
    size_t equals = pair.find('=');
    match.emplace_back("match." + pair.substr(0, equals), pair.substr(equals + 1));
  }
  std::vector<std::pair<std::string_view, std::string>> params = {
      {"phase", args.get("phase")},
      {"active", args.has("active") ? "true" : ""},
      {"updated_after", args.get("updated-after")},
      {"limit", args.get("limit")},
      {"offset", args.get("offset")},
      {"cursor", args.get("cursor")}};
  params.insert(params.end(), match.begin(), match.end());
  TRY(auto client, client_of(args));
  wire::Headers answered;
  TRY(json::Value states, client->call("GET", "/workflows/" + percent_encode(type) + query(params),
                                       nullptr, {}, &answered));
  show(args, states, [&] { fmt::print("{}\n", json::print_pretty(states)); });
  // The hint goes to standard error, so that scripts can read the list.
  if (const std::string* next = wire::find_header(answered, "X-Pawl-Cursor");
      next && !args.has("quiet"))
    fmt::print(stderr, "there are more: --cursor {}\n", *next);
  return kDone;
}

static Result<int> show_one(const Args& args) {
  TRY(std::string path, instance_path(args));
  return print_answer(args, "GET", path);
}

static Result<int> history(const Args& args) {
  TRY(std::string path, instance_path(args));
  return print_answer(args, "GET", path + "/history");
}

static Result<int> transition(const Args& args) {
  TRY(std::string path, instance_path(args));
  TRY(std::string phase, word(args, 2, "the phase to go to"));
  json::Value body =
      json::object({{"phase", phase}, {"note", args.get("note", "from the command line")}});
  return print_answer(args, "POST", path + "/transition", &body);
}

static Result<int> patch(const Args& args) {
  TRY(std::string path, instance_path(args));
  TRY(json::Object fields, pairs(args.all("set")));
  if (fields.empty())
    return fail(Code::invalid, kBadUsage, "say what to change: --set FIELD=VALUE");
  json::Value body(std::move(fields));
  return print_answer(args, "POST", path + "/state", &body);
}

static Result<int> watch(const Args& args) {
  TRY(std::string type, word(args, 0, "the type"));
  TRY(auto client, client_of(args));
  std::string after = args.has("after") ? "&after=" + percent_encode(args.get("after")) : "";
  TRY_OK(client->stream("/workflows/" + percent_encode(type) + "?stream=true" + after,
                        [](std::string_view piece) {
                          if (piece == ":\n") return true;  // a keep-alive
                          fmt::print("{}", piece);
                          return fflush(stdout) == 0;
                        }));
  return kDone;
}

static constexpr Command kLifecycleCommands[] = {
    {"lifecycle types",
     "[TYPE]",
     "list all types with counts by phase, or print or draw one type",
     {kServer, kToken, {"render", v::one_of("svg|mermaid|dot"), "draw the phases of TYPE"}},
     types},
    {"lifecycle list",
     "TYPE",
     "list the instances of a type",
     {kServer,
      kToken,
      {"phase", v::text("PHASE"), "only instances in this phase"},
      {"active", v::none(), "only instances that are not in a terminal phase"},
      {"match", v::pair("FIELD=VALUE"),
       "only instances with this value; may be given several times"},
      {"updated-after", v::time(),
       "only instances changed after that time, for example 2026-01-31T12:00:00Z"},
      {"limit", v::number("N"), "maximum number of instances"},
      {"offset", v::number("N"), "number of instances to skip"},
      {"cursor", v::text("CURSOR"), "continue after a page; the filters must be the same"}},
     list},
    {"lifecycle show", "TYPE ID", "print an instance", {kServer, kToken}, show_one},
    {"lifecycle history",
     "TYPE ID",
     "list the phase changes of an instance",
     {kServer, kToken},
     history},
    {"lifecycle transition",
     "TYPE ID PHASE",
     "move an instance to another phase",
     {kServer, kToken, {"note", v::text("TEXT"), "why; kept in the history"}},
     transition},
    {"lifecycle patch",
     "TYPE ID",
     "set operator-writable fields of an instance",
     {kServer,
      kToken,
      {"set", v::pair("FIELD=VALUE"),
       "a value, JSON or else text (digits as text: FIELD='\"7\"'); may be given several times"}},
     patch},
    {"lifecycle watch",
     "TYPE",
     "print the instances, then their changes, as Server-Sent Events",
     {kServer,
      kToken,
      {"after", v::text("REVISION"),
       "only changes after this revision, which is the id of an event"}},
     watch},
};

std::span<const Command> lifecycle_commands() { return kLifecycleCommands; }

}  // namespace pawl::cli
