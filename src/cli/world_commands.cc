// Commands of the worlds face, and the AIR tools that need no server.

#include <fmt/format.h>

#include "cbor/cbor.h"
#include "cli/remote.h"
#include "faces/worlds/air/manifest.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

static Result<std::string> world_path(const Args& args) {
  TRY(std::string id, word(args, 0, "the world"));
  return "/v1/worlds/" + percent_encode(id);
}

// A document from a file, sent as it is.
static Result<int> send_file(const Args& args, const std::string& path, size_t at) {
  TRY(std::string file, word(args, at, "the file"));
  TRY(json::Value body, read_json(file));
  return print_answer(args, "POST", path, &body);
}

// A document as it is; or, with --air, definitions and the WASM of their modules.
static Result<int> world_create(const Args& args) {
  if (!args.has("air")) {
    TRY(std::string file, word(args, 0, "the file"));
    TRY(json::Value body, read_json(file));
    if (body.is_array())
      return fail(Code::invalid, kBadFlag,
                  fmt::format("{0} holds definitions: pawl world create WORLD --air {0}", file));
    return print_answer(args, "POST", "/v1/worlds", &body);
  }
  TRY(std::string id, word(args, 0, "the world"));
  TRY(json::Value air, read_json(args.get("air")));
  json::Object modules;
  for (const std::string& given : args.all("module")) {
    const size_t equals = given.find('=');
    TRY(Bytes wasm, read_file(given.substr(equals + 1)));
    modules.add(given.substr(0, equals), base64(wasm));
  }
  json::Value body = json::object(
      {{"world_id", id}, {"air", std::move(air)}, {"modules", json::Value(std::move(modules))}});
  return print_answer(args, "POST", "/v1/worlds", &body);
}

// A file with the whole event, or its schema and its value.
static Result<int> world_send(const Args& args) {
  TRY(std::string path, world_path(args));
  if (args.words.size() < 3) return send_file(args, path + "/events", 1);
  TRY(json::Value value, json::parse(args.words[2]));
  json::Value body = json::object({{"schema", args.words[1]}, {"value", std::move(value)}});
  return print_answer(args, "POST", path + "/events", &body);
}

// The cell's key as bytes, or as a value: JSON, or else the text itself.
static std::string key_of(const Args& args) {
  if (!args.has("key")) return args.get("key-b64");
  auto value = json::parse(args.get("key"));
  return base64(cbor::canonical(worlds::to_cbor(value ? *value : json::Value(args.get("key")))));
}

static Result<int> world_get(const Args& args, std::string_view what) {
  TRY(std::string path, world_path(args));
  return print_answer(args, "GET", path + std::string(what));
}

static Result<int> world_state(const Args& args, std::string_view end) {
  TRY(std::string path, world_path(args));
  TRY(std::string workflow, word(args, 1, "the workflow"));
  return print_answer(args, "GET",
                      fmt::format("{}/state/{}{}{}", path, percent_encode(workflow), end,
                                  query({{"key_b64", key_of(args)},
                                         {"prefix_b64", args.get("prefix-b64")},
                                         {"after_b64", args.get("after-b64")},
                                         {"limit", args.get("limit")}})));
}

// A record a line, those that come too, until it is stopped.
static Result<int> follow_journal(const Args& args, const std::string& path) {
  TRY(auto client, client_of(args));
  std::string from = args.get("from");
  while (true) {
    TRY(json::Value page, client->call("GET", path + "/journal/wait" +
                                                  query({{"from", from},
                                                         {"limit", args.get("limit")},
                                                         {"kinds", args.get("kinds")}})));
    if (const json::Value* entries = page.find("entries"); entries && entries->is_array())
      for (const json::Value& entry : entries->array())
        fmt::print("{}\n", json::print(entry));
    std::fflush(stdout);
    if (const json::Value* next = page.find("next_from")) from = json::print(*next);
  }
}

static Result<int> world_journal(const Args& args) {
  TRY(std::string path, world_path(args));
  if (args.has("follow")) return follow_journal(args, path);
  return print_answer(args, "GET",
                      path + "/journal" +
                          query({{"from", args.get("from")},
                                 {"limit", args.get("limit")},
                                 {"kinds", args.get("kinds")}}));
}

static Result<int> world_trace(const Args& args, std::string_view which) {
  TRY(std::string path, world_path(args));
  return print_answer(args, "GET",
                      path + std::string(which) +
                          query({{"event_hash", args.get("event")},
                                 {"schema", args.get("schema")},
                                 {"correlate_by", args.get("by")},
                                 {"value", args.get("value")},
                                 {"workflow", args.get("workflow")},
                                 {"key_b64", key_of(args)},
                                 {"window_limit", args.get("limit")}}));
}

static Result<int> world_fork(const Args& args) {
  TRY(std::string path, world_path(args));
  TRY(std::string name, word(args, 1, "the new world"));
  json::Object body;
  body.add("world_id", name);
  if (args.has("height")) body.add("height", json::Value(args.number("height", 0)));
  for (const char* name : {"effects", "receipts"})
    if (args.has(name)) body.add(name, args.get(name));
  json::Value request(std::move(body));
  return print_answer(args, "POST", path + "/fork", &request);
}

// A command that came to nothing is an answer to the server and a failure to whoever ran it.
static Result<int> govern(const Args& args, const std::string& path, const json::Value& body) {
  TRY(auto client, client_of(args));
  TRY(json::Value answer, client->call("POST", path, &body));
  show(args, answer, [&] { fmt::print("{}\n", json::print_pretty(answer)); });
  return answer.string_or("status") == "failed" ? kFailed : kDone;
}

static Result<int> world_gov(const Args& args) {
  TRY(std::string path, world_path(args));
  if (args.words.size() == 1) return print_answer(args, "GET", path + "/governance");
  TRY(std::string action, word(args, 1, "propose, shadow, approve, reject or apply"));
  path += "/governance/" + percent_encode(action) + query({{"mode", args.get("mode")}});
  if (args.words.size() > 2 && action == "propose") {
    TRY(json::Value document, read_json(args.words[2]));
    return govern(args, path,
                  document.find("patch") ? document : json::object({{"patch", document}}));
  }
  json::Object body;
  if (args.words.size() > 2)
    body.add("proposal_id",
             json::parse(args.words[2]) ? *json::parse(args.words[2]) : json::Value(args.words[2]));
  if (args.has("approver")) body.add("approver", args.get("approver"));
  if (args.has("reason")) body.add("reason", args.get("reason"));
  return govern(args, path, json::Value(std::move(body)));
}

// A list of nodes with its manifest, or one node. A manifest as a world shows it does not say its
// kind.
static Result<json::Value> read_air(const std::string& path) {
  TRY(json::Value document, read_json(path));
  if (document.is_object() && document.find("air_version") && !document.find("$kind"))
    document.object().set("$kind", "manifest");
  return document;
}

static Result<int> air_check(const Args& args) {
  TRY(std::string path, word(args, 0, "the file"));
  TRY(json::Value document, read_air(path));
  worlds::Builtins builtins;
  if (!document.is_array()) {
    TRY_OK(worlds::parse_node(document));
    show(args, json::object({{"valid", true}}),
         [&] { fmt::print("{}: a valid {}\n", path, document.string_or("$kind")); });
    return kDone;
  }
  TRY(worlds::Authored authored, worlds::author(document, builtins));
  TRY(worlds::LoadedManifest loaded,
      worlds::load(authored.manifest, worlds::finder(authored.nodes), builtins));
  show(args, json::object({{"valid", true}, {"manifest", loaded.hash}}), [&] {
    fmt::print("{}: {} definitions, {} workflows, manifest {}\n", path, authored.nodes.size(),
               authored.manifest.workflows.size(), loaded.hash);
  });
  return kDone;
}

// A manifest is known by another hash than a definition; in a list its refs are filled in first.
static Result<int> air_hash(const Args& args) {
  TRY(std::string path, word(args, 0, "the file"));
  TRY(json::Value document, read_air(path));
  json::Array nodes = document.is_array() ? document.array() : json::Array{document};
  json::Array rows;
  for (const json::Value& n : nodes) {
    TRY(worlds::Node node, worlds::parse_node(n));
    std::string hash = worlds::node_hash(node);
    if (const auto* manifest = std::get_if<worlds::Manifest>(&node)) {
      worlds::Builtins builtins;
      auto authored = document.is_array()
                          ? worlds::author(document, builtins)
                          : Result<worlds::Authored>(worlds::Authored{*manifest, {}});
      if (!authored) return fail(std::move(authored.error()));
      hash = worlds::manifest_hash(authored->manifest);
    }
    rows.push_back(json::object({{"kind", worlds::kind_of(node)},
                                 {"name", worlds::node_name(node)},
                                 {"hash", std::move(hash)}}));
  }
  json::Value all(std::move(rows));
  show(args, all, [&] {  // whole hashes: a table would shorten them
    for (const json::Value& row : all.array())
      fmt::print("{}  {:<11}  {}\n", row.string_or("hash"), row.string_or("kind"),
                 row.string_or("name"));
  });
  return kDone;
}

static constexpr Flag kKeyBase64{"key-b64", v::text("KEY"), "the cell's key, base64"},
    kKey{"key", v::text("VALUE"), "the cell's key, JSON or text"},
    kLimit{"limit", v::number("N"), "at most so many"};
static constexpr Flag kEvent{"event", v::text("HASH"), "by event"},
    kSchema{"schema", v::text("NAME"), "the last event of this schema"},
    kBy{"by", v::text("PATH"), "where a member of it"},
    kValue{"value", v::text("VALUE"), "has this value"},
    kWorkflow{"workflow", v::text("NAME"), "a cell's own timeline, with --key"};

static constexpr Command kWorldCommands[] = {
    {"world list",
     "",
     "worlds by id",
     {kServer, kToken, kLimit, {"after", v::text("WORLD"), "that follow this one"}},
     [](const Args& a) {
       return print_answer(
           a, "GET", "/v1/worlds" + query({{"limit", a.get("limit")}, {"after", a.get("after")}}));
     }},
    {"world create",
     "FILE|WORLD",
     "a world from a document, or from definitions and modules",
     {kServer,
      kToken,
      {"air", v::path("FILE"), "the definitions"},
      {"module", v::pair("NAME=FILE"), "the WASM of a module"}},
     world_create},
    {"world show",
     "WORLD",
     "manifest, height, snapshot",
     {kServer, kToken},
     [](const Args& a) { return world_get(a, ""); }},
    {"world send",
     "WORLD FILE|SCHEMA [VALUE]",
     "send a domain event",
     {kServer, kToken},
     world_send},
    {"world state",
     "WORLD WORKFLOW",
     "a cell's state",
     {kServer, kToken, kKeyBase64, kKey},
     [](const Args& a) { return world_state(a, ""); }},
    {"world cells",
     "WORLD WORKFLOW",
     "the cells of a workflow",
     {kServer,
      kToken,
      {"prefix-b64", v::text("PREFIX"), "whose keys begin so"},
      {"after-b64", v::text("KEY"), "that follow this one: next_after_b64 of a page"},
      kLimit},
     [](const Args& a) { return world_state(a, "/cells"); }},
    {"world journal",
     "WORLD",
     "its records",
     {kServer,
      kToken,
      {"from", v::number("HEIGHT"), "from there"},
      kLimit,
      {"kinds", v::text("A,B"), "of these kinds"},
      {"follow", v::none(), "and those that come, a line each"}},
     world_journal},
    {"world trace",
     "WORLD",
     "what followed from an event, or a cell's timeline",
     {kServer, kToken, kEvent, kSchema, kBy, kValue, kWorkflow, kKeyBase64, kKey, kLimit},
     [](const Args& a) { return world_trace(a, "/trace"); }},
    {"world diagnose",
     "WORLD",
     "why it stands where it stands",
     {kServer, kToken, kEvent, kSchema, kBy, kValue, kWorkflow, kKeyBase64, kKey},
     [](const Args& a) { return world_trace(a, "/diagnose"); }},
    {"world snapshot",
     "WORLD",
     "take a snapshot",
     {kServer, kToken},
     [](const Args& a) -> Result<int> {
       TRY(std::string p, world_path(a));
       json::Value none = json::Object{};
       return print_answer(a, "POST", p + "/checkpoint", &none);
     }},
    {"world fork",
     "WORLD NEW",
     "another world as this one was",
     {kServer,
      kToken,
      {"height", v::number("N"), "at that height (default now)"},
      {"receipts", v::one_of("open|stub"), "answer what is open with what it got later"},
      {"effects", v::one_of("detached|live"), "let its effects go out"}},
     world_fork},
    {"world gov",
     "WORLD [ACTION] [FILE|PROPOSAL]",
     "propose, shadow, approve, reject, apply; without an action the proposals",
     {kServer,
      kToken,
      {"mode", v::one_of("strict|relaxed"), "of apply"},
      {"approver", v::text("NAME"), "who approves"},
      {"reason", v::text("TEXT"), "why"}},
     world_gov},
    {"air check", "FILE", "check AIR definitions without a server", {}, air_check},
    {"air hash", "FILE", "the hashes of AIR nodes", {}, air_hash},
};

std::span<const Command> world_commands() { return kWorldCommands; }

}  // namespace pawl::cli
