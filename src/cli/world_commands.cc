// Commands of the worlds face, and the AIR tools that need no server.

#include <fmt/format.h>

#include "cli/remote.h"
#include "faces/worlds/air/manifest.h"
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

static Result<int> world_get(const Args& args, std::string_view what) {
  TRY(std::string path, world_path(args));
  return print_answer(args, "GET", path + std::string(what));
}

static Result<int> world_state(const Args& args, std::string_view end) {
  TRY(std::string path, world_path(args));
  TRY(std::string workflow, word(args, 1, "the workflow"));
  return print_answer(args, "GET", fmt::format("{}/state/{}{}{}", path, percent_encode(workflow), end,
                                               query({{"key_b64", args.get("key-b64")}, {"prefix_b64", args.get("prefix-b64")}, {"limit", args.get("limit")}})));
}

static Result<int> world_journal(const Args& args) {
  TRY(std::string path, world_path(args));
  return print_answer(args, "GET", path + "/journal" + query({{"from", args.get("from")}, {"limit", args.get("limit")}}));
}

static Result<int> world_trace(const Args& args, std::string_view which) {
  TRY(std::string path, world_path(args));
  return print_answer(args, "GET", path + std::string(which) + query({{"event_hash", args.get("event")}, {"correlate_by", args.get("by")}, {"value", args.get("value")}}));
}

static Result<int> world_fork(const Args& args) {
  TRY(std::string path, world_path(args));
  TRY(std::string name, word(args, 1, "the new world"));
  json::Object body;
  body.add("world_id", name);
  if (args.has("height")) body.add("height", json::Number{args.get("height")});
  json::Value request(std::move(body));
  return print_answer(args, "POST", path + "/fork", &request);
}

static Result<int> world_gov(const Args& args) {
  TRY(std::string path, world_path(args));
  if (args.words.size() == 1) return print_answer(args, "GET", path + "/governance");
  TRY(std::string action, word(args, 1, "propose, shadow, approve, reject or apply"));
  path += "/governance/" + percent_encode(action) + query({{"mode", args.get("mode")}});
  if (args.words.size() > 2 && action == "propose") return send_file(args, path, 2);
  json::Object body;
  if (args.words.size() > 2) body.add("proposal_id", json::parse(args.words[2]) ? *json::parse(args.words[2]) : json::Value(args.words[2]));
  if (args.has("approver")) body.add("approver", args.get("approver"));
  if (args.has("reason")) body.add("reason", args.get("reason"));
  json::Value request(std::move(body));
  return print_answer(args, "POST", path, &request);
}

// Either a list of nodes with its manifest, or one node.
static Result<int> air_check(const Args& args) {
  TRY(std::string path, word(args, 0, "the file"));
  TRY(json::Value document, read_json(path));
  worlds::Builtins builtins;
  if (!document.is_array()) {
    TRY_OK(worlds::parse_node(document));
    show(args, json::object({{"valid", true}}), [&] { fmt::print("{}: a valid {}\n", path, document.string_or("$kind")); });
    return kDone;
  }
  TRY(worlds::Authored authored, worlds::author(document, builtins));
  TRY(worlds::Loaded loaded, worlds::load(authored.manifest, worlds::finder(authored.nodes), builtins));
  show(args, json::object({{"valid", true}, {"manifest", loaded.hash}}),
       [&] { fmt::print("{}: {} definitions, {} workflows, manifest {}\n", path, authored.nodes.size(), loaded.workflows.size(), loaded.hash); });
  return kDone;
}

static Result<int> air_hash(const Args& args) {
  TRY(std::string path, word(args, 0, "the file"));
  TRY(json::Value document, read_json(path));
  json::Array nodes = document.is_array() ? document.array() : json::Array{document};
  json::Array rows;
  for (const json::Value& n : nodes) {
    TRY(worlds::Node node, worlds::parse_node(n));
    rows.push_back(json::object({{"kind", worlds::kind_of(node)}, {"name", worlds::node_name(node)}, {"hash", worlds::node_hash(node)}}));
  }
  json::Value all(std::move(rows));
  show(args, all, [&] { print_table(all, {"hash", "kind", "name"}); });
  return kDone;
}

std::vector<Command> world_commands() {
  const Flag key{"key-b64", "KEY", "the cell's key, base64"}, limit{"limit", "N", "at most so many"};
  const Flag event{"event", "HASH", "by event"}, by{"by", "PATH", "by a member of the event"}, value{"value", "VALUE", "that has this value"};
  return {
      {"world list", "", "all worlds", {kServer, kToken}, [](const Args& a) { return print_answer(a, "GET", "/v1/worlds"); }},
      {"world create", "FILE", "a world from a document", {kServer, kToken}, [](const Args& a) { return send_file(a, "/v1/worlds", 0); }},
      {"world show", "WORLD", "manifest, height, snapshot", {kServer, kToken}, [](const Args& a) { return world_get(a, ""); }},
      {"world send", "WORLD FILE", "send a domain event", {kServer, kToken}, [](const Args& a) -> Result<int> { TRY(std::string p, world_path(a)); return send_file(a, p + "/events", 1); }},
      {"world state", "WORLD WORKFLOW", "a cell's state", {kServer, kToken, key}, [](const Args& a) { return world_state(a, ""); }},
      {"world cells", "WORLD WORKFLOW", "the cells of a workflow", {kServer, kToken, {"prefix-b64", "PREFIX", "whose keys begin so"}, limit}, [](const Args& a) { return world_state(a, "/cells"); }},
      {"world journal", "WORLD", "its records", {kServer, kToken, {"from", "HEIGHT", "from there"}, limit}, world_journal},
      {"world trace", "WORLD", "what followed from an event", {kServer, kToken, event, by, value}, [](const Args& a) { return world_trace(a, "/trace"); }},
      {"world diagnose", "WORLD", "why it stands where it stands", {kServer, kToken, event, by, value}, [](const Args& a) { return world_trace(a, "/diagnose"); }},
      {"world snapshot", "WORLD", "take a snapshot", {kServer, kToken}, [](const Args& a) -> Result<int> { TRY(std::string p, world_path(a)); json::Value none = json::Object{}; return print_answer(a, "POST", p + "/checkpoint", &none); }},
      {"world fork", "WORLD NEW", "another world as this one was", {kServer, kToken, {"height", "N", "at that height (default now)"}}, world_fork},
      {"world gov", "WORLD [ACTION] [FILE|PROPOSAL]", "propose, shadow, approve, reject, apply; without an action the proposals",
       {kServer, kToken, {"mode", "relaxed", "of apply"}, {"approver", "NAME", "who approves"}, {"reason", "TEXT", "why"}}, world_gov},
      {"air check", "FILE", "check AIR definitions without a server", {}, air_check},
      {"air hash", "FILE", "the hashes of AIR nodes", {}, air_hash},
  };
}

}  // namespace pawl::cli
