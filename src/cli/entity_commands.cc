// Commands of the entities face: models, workflows, entities, search.

#include <fmt/format.h>

#include "cli/graph.h"
#include "cli/remote.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

// Reads the name and version of a model from NAME.VERSION, as in "order.1".
static Result<std::string> model_path(const Args& args, size_t at) {
  TRY(std::string name, word(args, at, "the model as NAME.VERSION"));
  // The last dot separates the version: a name may hold dots.
  size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 == name.size())
    return fail(Code::invalid, kBadUsage,
                fmt::format("'{}' is not NAME.VERSION, for example order.1", name));
  return percent_encode(name.substr(0, dot)) + "/" + percent_encode(name.substr(dot + 1));
}

static Result<int> model_import(const Args& args) {
  TRY(std::string model, model_path(args, 0));
  TRY(std::string path, word(args, 1, "a file with sample data"));
  TRY(json::Value sample, read_json(path));
  return print_answer(args, "POST", "/api/model/import/JSON/SAMPLE_DATA/" + model, &sample);
}

static Result<int> model_export(const Args& args) {
  TRY(std::string model, model_path(args, 0));
  return print_answer(
      args, "GET",
      fmt::format("/api/model/export/{}/{}", percent_encode(args.get("as", "SIMPLE_VIEW")), model));
}

static Result<int> model_lock(const Args& args, std::string_view verb) {
  TRY(std::string model, model_path(args, 0));
  return print_answer(args, "PUT", fmt::format("/api/model/{}/{}", model, verb));
}

static Result<int> model_list(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value models, client->call("GET", "/api/model/"));
  show(args, models, [&] {
    print_table(models, {"modelName", "modelVersion", "currentState", "modelUpdateDate"});
  });
  return kDone;
}

static Result<int> workflow_import(const Args& args) {
  TRY(std::string model, model_path(args, 0));
  TRY(std::string path, word(args, 1, "the file"));
  TRY(json::Value document, read_json(path));
  return print_answer(args, "POST", fmt::format("/api/model/{}/workflow/import", model), &document);
}

static Result<json::Value> exported(const Args& args, Client& client) {
  TRY(std::string model, model_path(args, 0));
  return client.call("GET", fmt::format("/api/model/{}/workflow/export", model));
}

static Result<int> workflow_export(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value document, exported(args, *client));
  show(args, document, [&] { fmt::print("{}\n", json::print_pretty(document)); });
  return kDone;
}

// All workflows of the model in one picture. Nodes are named "workflow/state", because two
// workflows may have states of the same name.
static Result<int> workflow_render(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(json::Value document, exported(args, *client));
  Graph g;
  const json::Value* workflows = document.find("workflows");
  if (!workflows || !workflows->is_array())
    return fail(Code::not_found, "NO_WORKFLOW", "the model has no workflow of its own");
  for (const json::Value& w : workflows->array()) {
    std::string name(w.string_or("name")), initial(w.string_or("initialState"));
    const json::Value* states = w.find("states");
    if (!states || !states->is_object()) continue;
    for (const auto& state : states->object())
      g.nodes.push_back({name + "/" + state.name, state.name,
                         state.name == initial ? Graph::Shape::circle : Graph::Shape::round});
    for (const auto& state : states->object()) {
      const json::Value* transitions = state.value.find("transitions");
      if (!transitions || !transitions->is_array()) continue;
      for (const auto& t : transitions->array()) {
        const json::Value* manual = t.find("manual");
        g.edges.push_back({name + "/" + state.name, name + "/" + std::string(t.string_or("next")),
                           std::string(t.string_or("name")),
                           manual && manual->is_bool() && manual->boolean()});
      }
    }
  }
  TRY(std::string picture, draw(g, args.get("format", "svg")));
  fmt::print("{}", picture);
  return kDone;
}

static Result<int> entity_get(const Args& args) {
  TRY(std::string id, word(args, 0, "the entity"));
  return print_answer(
      args, "GET",
      "/api/entity/" + percent_encode(id) +
          query({{"pointInTime", args.get("at")}, {"transactionId", args.get("transaction")}}));
}

static Result<int> entity_put(const Args& args) {
  TRY(std::string target,
      word(args, 0, "a model as NAME.VERSION to create one, or an entity's id to update it"));
  TRY(std::string path, word(args, 1, "the file"));
  TRY(json::Value data, read_json(path));
  // An id is a UUID of 36 characters without a dot; a model always has a dot.
  bool update = target.size() == 36 && target.find('.') == std::string::npos;
  if (update) return print_answer(args, "PUT", "/api/entity/JSON/" + percent_encode(target), &data);
  TRY(std::string model, model_path(args, 0));
  return print_answer(args, "POST", "/api/entity/JSON/" + model, &data);
}

// Fires a transition. The data stays as it is unless --data names a file.
static Result<int> entity_transition(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string id, word(args, 0, "the entity"));
  TRY(std::string name, word(args, 1, "the transition"));
  json::Value data;
  if (args.has("data")) {
    TRY(data, read_json(args.get("data")));
  } else {
    // A transition is a write of the whole entity, so the current data is sent back.
    TRY(json::Value entity, client->call("GET", "/api/entity/" + percent_encode(id)));
    if (const json::Value* d = entity.find("data")) data = *d;
  }
  return print_answer(
      args, "PUT", fmt::format("/api/entity/JSON/{}/{}", percent_encode(id), percent_encode(name)),
      &data);
}

static Result<int> entity_history(const Args& args) {
  TRY(std::string id, word(args, 0, "the entity"));
  return print_answer(args, "GET",
                      args.has("audit")
                          ? "/api/audit/entity/" + percent_encode(id)
                          : fmt::format("/api/entity/{}/changes", percent_encode(id)));
}

static Result<int> entity_search(const Args& args) {
  TRY(auto client, client_of(args));
  TRY(std::string model, model_path(args, 0));
  TRY(std::string path, word(args, 1, "the file with the condition"));
  TRY(std::string condition, read_file(path));
  TRY(wire::Response answer,
      client->send("POST",
                   fmt::format("/api/search/direct/{}", model) +
                       query({{"limit", args.get("limit")}, {"pointInTime", args.get("at")}}),
                   condition));
  // A refusal is a problem document (RFC 7807), whose `detail` is for people.
  if (answer.status >= 400) {
    auto problem = json::parse(answer.body);
    return fail(answer.status == 404 ? Code::not_found : Code::invalid, "REFUSED",
                problem ? std::string(problem->string_or("detail", answer.body)) : answer.body);
  }
  // The answer has one entity a line and is printed as it is.
  fmt::print("{}", answer.body);
  if (!answer.body.ends_with('\n')) fmt::print("\n");
  return kDone;
}

static constexpr Flag kAt{"at", v::time(),
                          "the state at that time, for example 2026-01-31T12:00:00Z"};

static constexpr Command kEntityCommands[] = {
    {"model import",
     "NAME.VERSION FILE",
     "infer a model from sample data",
     {kServer, kToken},
     model_import},
    {"model export",
     "NAME.VERSION",
     "print a model",
     {kServer,
      kToken,
      {"as", v::one_of("SIMPLE_VIEW|JSON_SCHEMA"), "format of the output (default SIMPLE_VIEW)"}},
     model_export},
    {"model lock",
     "NAME.VERSION",
     "lock a model, so that entities can be created",
     {kServer, kToken},
     [](const Args& a) { return model_lock(a, "lock"); }},
    {"model unlock",
     "NAME.VERSION",
     "unlock a model, so that it can be changed",
     {kServer, kToken},
     [](const Args& a) { return model_lock(a, "unlock"); }},
    {"model list", "", "list all models", {kServer, kToken}, model_list},
    {"workflow import",
     "NAME.VERSION FILE",
     "import the workflows of a model",
     {kServer, kToken},
     workflow_import},
    {"workflow export",
     "NAME.VERSION",
     "print the workflows of a model",
     {kServer, kToken},
     workflow_export},
    {"workflow render",
     "NAME.VERSION",
     "draw the workflows of a model; manual transitions are dashed",
     {kServer,
      kToken,
      {"format", v::one_of("svg|mermaid|dot"), "format of the picture (default svg)"}},
     workflow_render},
    {"entity get",
     "ID",
     "print an entity",
     {kServer, kToken, kAt, {"transaction", v::text("ID"), "the state after that transaction"}},
     entity_get},
    {"entity put",
     "NAME.VERSION|ID FILE",
     "create or update an entity",
     {kServer, kToken},
     entity_put},
    {"entity transition",
     "ID NAME",
     "fire a transition",
     {kServer, kToken, {"data", v::path("FILE"), "new data; - is standard input"}},
     entity_transition},
    {"entity history",
     "ID",
     "list the changes of an entity",
     {kServer, kToken, {"audit", v::none(), "list all audit events instead"}},
     entity_history},
    {"entity search",
     "NAME.VERSION FILE",
     "list entities that match a condition, one a line",
     {kServer, kToken, kAt, {"limit", v::number("N"), "maximum number of entities"}},
     entity_search},
};

std::span<const Command> entity_commands() { return kEntityCommands; }

}  // namespace pawl::cli
