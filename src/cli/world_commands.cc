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

// Sends the JSON document of a file.
static Result<int> send_file(const Args& args, const std::string& path, size_t at) {
  TRY(std::string file, word(args, at, "the file"));
  TRY(json::Value body, read_json(file));
  return print_answer(args, "POST", path, &body);
}

// Sends a document as it is, or with --air builds one from definitions and the WASM of their
// modules.
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

// Sends an event: from a file, or from its schema and its value.
static Result<int> world_send(const Args& args) {
  TRY(std::string path, world_path(args));
  if (args.words.size() < 3) return send_file(args, path + "/events", 1);
  TRY(json::Value value, json::parse(args.words[2]));
  json::Value body = json::object({{"schema", args.words[1]}, {"value", std::move(value)}});
  return print_answer(args, "POST", path + "/events", &body);
}

// The key of a cell in base64, from --key-b64 or from --key, whose value is JSON or else text.
static std::string key_of(const Args& args) {
  if (!args.has("key")) return args.get("key-b64");
  auto value = json::parse(args.get("key"));
  return base64(cbor::canonical(worlds::to_cbor(value ? *value : json::Value(args.get("key")))));
}

static Result<int> world_get(const Args& args, std::string_view what) {
  TRY(std::string path, world_path(args));
  return print_answer(args, "GET", path + std::string(what));
}

// `end` is empty for one cell and "/cells" for the list; parameters without a value are not sent.
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

// Prints one record a line, and new records as they come, until it is stopped.
static Result<int> follow_journal(const Args& args, const std::string& path) {
  TRY(auto client, client_of(args));
  std::string from = args.get("from");
  // /journal/wait answers when there is a record from `from` on, or with an empty page after a
  // while. next_from continues there.
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

// Trace and diagnose take the same parameters. The server decides which of them belong together.
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

// Sends a governance command. The server answers 200 to a command that failed; the exit code is 1.
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
  // A document without "patch" is the patch itself.
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

// Reads a list of AIR nodes with its manifest, or one node. A manifest that was copied from a world
// has no $kind; it is added.
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

// Prints the hashes of AIR nodes. A manifest has a hash of its own kind; in a list its references
// are filled in first.
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
  show(args, all, [&] {  // not a table: a table would cut the hashes
    for (const json::Value& row : all.array())
      fmt::print("{}  {:<11}  {}\n", row.string_or("hash"), row.string_or("kind"),
                 row.string_or("name"));
  });
  return kDone;
}

static constexpr Flag kKeyBase64{"key-b64", v::text("KEY"), "key of the cell in base64"},
    kKey{"key", v::text("VALUE"), "key of the cell, JSON or else text"},
    kLimit{"limit", v::number("N"), "maximum number of results"};
static constexpr Flag kEvent{"event", v::text("HASH"), "start at the event with this hash"},
    kSchema{"schema", v::text("NAME"), "start at the last event of this schema"},
    kBy{"by", v::text("PATH"), "path of a member of that event; with --value"},
    kValue{"value", v::text("VALUE"), "the value that the member --by must have"},
    kWorkflow{"workflow", v::text("NAME"), "the timeline of a cell of this workflow; with --key"};

static constexpr Command kWorldCommands[] = {
    {"world list",
     "",
     "list worlds by id",
     {kServer, kToken, kLimit, {"after", v::text("WORLD"), "only worlds after this id"}},
     [](const Args& a) {
       return print_answer(
           a, "GET", "/v1/worlds" + query({{"limit", a.get("limit")}, {"after", a.get("after")}}));
     }},
    {"world create",
     "FILE|WORLD",
     "create a world from a document, or from definitions and modules",
     {kServer,
      kToken,
      {"air", v::path("FILE"), "file with the definitions"},
      {"module", v::pair("NAME=FILE"),
       "file with the WASM of a module; may be given several times"}},
     world_create},
    {"world show",
     "WORLD",
     "print manifest, height and snapshot of a world",
     {kServer, kToken},
     [](const Args& a) { return world_get(a, ""); }},
    {"world send",
     "WORLD FILE|SCHEMA [VALUE]",
     "send a domain event",
     {kServer, kToken},
     world_send},
    {"world state",
     "WORLD WORKFLOW",
     "print the state of a cell",
     {kServer, kToken, kKeyBase64, kKey},
     [](const Args& a) { return world_state(a, ""); }},
    {"world cells",
     "WORLD WORKFLOW",
     "list the cells of a workflow",
     {kServer,
      kToken,
      {"prefix-b64", v::text("PREFIX"), "only keys with this prefix"},
      {"after-b64", v::text("KEY"), "only keys after this one: next_after_b64 of a page"},
      kLimit},
     [](const Args& a) { return world_state(a, "/cells"); }},
    {"world journal",
     "WORLD",
     "list the records of a world",
     {kServer,
      kToken,
      {"from", v::number("HEIGHT"), "start at this height"},
      kLimit,
      {"kinds", v::text("A,B"), "only records of these kinds"},
      {"follow", v::none(), "print new records too as they come, one a line"}},
     world_journal},
    {"world trace",
     "WORLD",
     "print what followed from an event, or the timeline of a cell",
     {kServer, kToken, kEvent, kSchema, kBy, kValue, kWorkflow, kKeyBase64, kKey, kLimit},
     [](const Args& a) { return world_trace(a, "/trace"); }},
    {"world diagnose",
     "WORLD",
     "explain what an event or a cell waits for",
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
     "create a world from the state of another",
     {kServer,
      kToken,
      {"height", v::number("N"), "the height to fork at (default the newest)"},
      {"receipts", v::one_of("open|stub"), "stub answers open effects with their later receipts"},
      {"effects", v::one_of("detached|live"), "live sends the effects of the new world"}},
     world_fork},
    {"world gov",
     "WORLD [ACTION] [FILE|PROPOSAL]",
     "propose, shadow, approve, reject or apply a change; without an action, list the proposals",
     {kServer,
      kToken,
      {"mode", v::one_of("strict|relaxed"),
       "whether running instances block an apply (default strict)"},
      {"approver", v::text("NAME"), "name of the approver"},
      {"reason", v::text("TEXT"), "why"}},
     world_gov},
    {"air check", "FILE", "check AIR definitions without a server", {}, air_check},
    {"air hash", "FILE", "print the hashes of AIR nodes", {}, air_hash},
};

std::span<const Command> world_commands() { return kWorldCommands; }

}  // namespace pawl::cli
