// The commands for a world in a folder: init, build, deploy and patch.

#include <fmt/format.h>

#include <filesystem>

#include "base/hash.h"
#include "cli/remote.h"
#include "cli/world_folder.h"
#include "json/text.h"

namespace pawl::cli {

using wire::percent_encode;

static Result<std::string> folder_word(const Args& args) { return word(args, 0, "the folder"); }

static Result<BuiltWorld> build_named(const Args& args) {
  TRY(std::string path, folder_word(args));
  TRY(WorldFolder folder, read_world_folder(path));
  if (args.has("world")) folder.world = args.get("world");
  return build_world(folder);
}

static Result<int> world_init(const Args& args) {
  TRY(std::string path, folder_word(args));
  std::error_code unknown;
  std::string name = std::filesystem::weakly_canonical(path, unknown).filename().string();
  if (args.has("world")) name = args.get("world");
  TRY_OK(init_world(path, name));
  show(args, json::object({{"folder", path}, {"world", name}}), [&] {
    fmt::print(
        "{0}: the world '{1}' with one workflow\n  pawl world build {0}    compiles and checks it\n"
        "  pawl world deploy {0}   creates it on the server\n",
        path, name);
  });
  return kDone;
}

static Result<int> world_build(const Args& args) {
  TRY(BuiltWorld built, build_named(args));
  json::Object modules;
  for (const auto& [name, wasm] : built.wasm)
    modules.add(name, worlds::hash_text(sha256(wasm)));
  const json::Value shown = json::object({{"world", built.world},
                                          {"manifest_hash", built.manifest_hash},
                                          {"modules", json::Value(std::move(modules))}});
  show(args, shown, [&] {
    fmt::print("{}: {} definitions, {} workflows, manifest {}\n", built.world,
               built.authored.nodes.size(), built.authored.manifest.workflows.size(),
               built.manifest_hash);
    for (const auto& [name, wasm] : built.wasm)
      fmt::print("  {}  {} bytes  {}\n", name, wasm.size(), worlds::hash_text(sha256(wasm)));
  });
  return kDone;
}

// Stores the modules on the server. Bytes that it has already are stored once.
static Result<void> upload_modules(Client& client, const BuiltWorld& built) {
  for (const auto& [name, wasm] : built.wasm) {
    TRY(wire::Response answer,
        client.send("PUT", "/v1/cas/blobs/" + worlds::hash_text(sha256(wasm)), wasm,
                    {{"Content-Type", "application/wasm"}}));
    if (answer.status < 400) continue;
    auto body = json::parse(answer.body);
    return fail(wire::code_of_http(answer.status), "REFUSED",
                fmt::format("module '{}': {}", name,
                            body ? body->string_or("message", answer.body) : answer.body));
  }
  return {};
}

// The manifest hash of the world on the server; empty when there is no such world.
static Result<std::string> active_manifest(Client& client, const std::string& world) {
  auto page = client.call("GET", "/v1/worlds/" + percent_encode(world) + "/manifest");
  if (!page && page.error().code == Code::not_found) return std::string();
  if (!page) return fail(std::move(page.error()));
  return std::string(page->string_or("manifest_hash"));
}

static Result<int> world_deploy(const Args& args) {
  TRY(BuiltWorld built, build_named(args));
  TRY(auto client, client_of(args));
  TRY(std::string active, active_manifest(*client, built.world));
  if (!active.empty() && active != built.manifest_hash)
    return fail(Code::conflict, "WORLD_DIFFERS",
                fmt::format("the world '{}' runs another manifest ({}); propose the change with "
                            "`pawl world patch {}`",
                            built.world, active, args.words[0]));
  if (active.empty()) {
    TRY_OK(upload_modules(*client, built));
    json::Value body = built.document();
    body.object().add("world_id", built.world);
    if (!built.limits.is_null()) body.object().add("limits", built.limits);
    TRY_OK(client->call("POST", "/v1/worlds", &body));
  }
  const json::Value shown = json::object({{"world", built.world},
                                          {"manifest_hash", built.manifest_hash},
                                          {"created", active.empty()}});
  show(args, shown, [&] {
    fmt::print("{}: {}, manifest {}\n", built.world, active.empty() ? "created" : "up to date",
               built.manifest_hash);
  });
  return kDone;
}

// The definitions that differ: added, changed, removed. Routing and other members of the manifest
// have no name of their own; they are one change together when nothing else tells them apart.
static Result<json::Array> changes(Client& client, const BuiltWorld& built) {
  TRY(json::Value page, client.call("GET", "/v1/worlds/" + percent_encode(built.world) + "/defs"));
  std::map<std::pair<std::string, std::string>, std::string> active;
  if (const json::Value* defs = page.find("defs"))
    for (const json::Value& def : defs->array())
      active[{std::string(def.string_or("kind")), std::string(def.string_or("name"))}] =
          def.string_or("hash");
  json::Array out;
  auto add = [&](std::string_view change, std::string_view kind, std::string_view name) {
    out.push_back(json::object({{"change", change}, {"kind", kind}, {"name", name}}));
  };
  for (const worlds::Node& node : built.authored.nodes) {
    auto known =
        active.find({std::string(worlds::kind_of(node)), std::string(worlds::node_name(node))});
    if (known == active.end()) {
      add("add", worlds::kind_of(node), worlds::node_name(node));
      continue;
    }
    if (known->second != worlds::node_hash(node))
      add("replace", worlds::kind_of(node), worlds::node_name(node));
    active.erase(known);
  }
  for (const auto& [def, hash] : active)
    add("remove", def.first, def.second);
  if (out.empty()) add("replace", "manifest", "routing or references");
  return out;
}

// Runs one governance command. A command that failed is an error with the server's message.
static Result<json::Value> govern(Client& client, const std::string& world,
                                  const std::string& action, const json::Value& body) {
  TRY(json::Value answer,
      client.call("POST", fmt::format("/v1/worlds/{}/governance/{}", percent_encode(world), action),
                  &body));
  if (answer.string_or("status") != "failed") return answer;
  const json::Value* error = answer.find("error");
  std::string message =
      fmt::format("{} failed: {}", action, error ? error->string_or("message") : "no reason given");
  if (const json::Value* detail = error ? error->find("detail") : nullptr)
    message += "\n" + json::print_pretty(*detail);
  return fail(Code::conflict, std::string(error ? error->string_or("code") : "REFUSED"),
              std::move(message));
}

static Result<json::Value> shadow(const Args& args, Client& client, const std::string& world,
                                  const json::Value& proposal) {
  json::Value body = json::object({{"proposal_id", proposal}});
  if (args.has("events")) {
    TRY(json::Value events, read_json(args.get("events")));
    body.object().add("seed_events", std::move(events));
  }
  TRY(json::Value answer, govern(client, world, "shadow", body));
  const json::Value* result = answer.find("result");
  return result ? *result : json::Value();
}

// Runs the steps of a proposal that the flags name, in their order.
static Result<int> propose(const Args& args, Client& client, const BuiltWorld& built,
                           json::Object shown) {
  json::Value body = json::object({{"patch", built.document()}});
  if (args.has("description")) body.object().add("description", args.get("description"));
  TRY(json::Value proposed, govern(client, built.world, "propose", body));
  const json::Value* result = proposed.find("result");
  const json::Value* id = result ? result->find("proposal_id") : nullptr;
  if (!id) return fail(Code::internal, "NO_PROPOSAL", "the answer to propose has no proposal_id");
  const json::Value proposal = *id;
  shown.add("proposal_id", proposal);
  std::string state = "proposed";
  if (args.has("shadow")) {
    TRY(json::Value report, shadow(args, client, built.world, proposal));
    shown.add("shadow", std::move(report));
    state = "shadowed";
  }
  const json::Value one = json::object({{"proposal_id", proposal}});
  if (args.has("approve")) {
    json::Value approval = one;
    if (args.has("approver")) approval.object().add("approver", args.get("approver"));
    TRY_OK(govern(client, built.world, "approve", approval));
    state = "approved";
  }
  if (args.has("apply")) {
    json::Value order = one;
    if (args.has("mode")) order.object().add("mode", args.get("mode"));
    TRY_OK(govern(client, built.world, "apply", order));
    state = "applied";
  }
  shown.add("state", state);
  const json::Value all(std::move(shown));
  show(args, all, [&] {
    if (const json::Value* report = all.find("shadow"))
      fmt::print("{}\n", json::print_pretty(*report));
    fmt::print("{}: proposal {} is {}\n", built.world, json::print(proposal), state);
  });
  return kDone;
}

// A proposal goes through all steps in order, so a flag needs the flags of the steps before it.
static Result<void> check_steps(const Args& args) {
  static constexpr std::pair<std::string_view, std::string_view> kNeeds[] = {
      {"events", "shadow"},
      {"approve", "shadow"},
      {"approver", "approve"},
      {"apply", "approve"},
      {"mode", "apply"}};
  for (const auto& [flag, needed] : kNeeds)
    if (args.has(flag) && !args.has(needed))
      return fail(Code::invalid, kBadUsage,
                  fmt::format("--{} needs --{}: a proposal is tried, approved and applied in this "
                              "order",
                              flag, needed));
  return {};
}

static Result<int> world_patch(const Args& args) {
  TRY_OK(check_steps(args));
  TRY(BuiltWorld built, build_named(args));
  TRY(auto client, client_of(args));
  TRY(std::string active, active_manifest(*client, built.world));
  if (active.empty())
    return fail(Code::not_found, "NO_WORLD",
                fmt::format("the server has no world '{}'; create it with `pawl world deploy {}`",
                            built.world, args.words[0]));
  json::Object shown;
  shown.add("world", built.world);
  shown.add("active_manifest_hash", active);
  shown.add("manifest_hash", built.manifest_hash);
  if (active == built.manifest_hash) {
    shown.add("state", "unchanged");
    show(args, json::Value(std::move(shown)),
         [&] { fmt::print("{}: nothing to change\n", built.world); });
    return kDone;
  }
  TRY(json::Array list, changes(*client, built));
  if (!args.json())
    for (const json::Value& c : list)
      fmt::print("{:<8} {:<12} {}\n", c.string_or("change"), c.string_or("kind"),
                 c.string_or("name"));
  shown.add("changes", json::Value(std::move(list)));
  if (args.has("dry-run")) {
    show(args, json::Value(std::move(shown)), [] {});
    return kDone;
  }
  TRY_OK(upload_modules(*client, built));
  return propose(args, *client, built, std::move(shown));
}

static constexpr Flag kWorld{"world", v::text("NAME"),
                             "name of the world (default that of pawl.world.json)"};

static constexpr Command kFolderCommands[] = {
    {"world init",
     "DIR",
     "write a first world into a new folder",
     {{"world", v::text("NAME"), "name of the world (default the name of the folder)"}},
     world_init},
    {"world build",
     "DIR",
     "compile the modules of a folder and check its definitions; needs no server",
     {kWorld},
     world_build},
    {"world deploy",
     "DIR",
     "create the world of a folder",
     {kServer, kToken, kWorld},
     world_deploy},
    {"world patch",
     "DIR",
     "propose what changed in a folder; with flags also try, approve and apply it",
     {kServer,
      kToken,
      kWorld,
      {"dry-run", v::none(), "print what would change, and propose nothing"},
      {"description", v::text("TEXT"), "what the proposal is for"},
      {"shadow", v::none(), "run the live world under the new manifest and print the report"},
      {"events", v::path("FILE"), "JSON list of events for --shadow: [{schema, value}]"},
      {"approve", v::none(), "approve the proposal; with --shadow"},
      {"approver", v::text("NAME"), "name of the approver"},
      {"apply", v::none(), "apply the proposal; with --approve"},
      {"mode", v::one_of("strict|relaxed"),
       "whether running instances block an apply (default strict)"}},
     world_patch},
};

std::span<const Command> world_folder_commands() { return kFolderCommands; }

}  // namespace pawl::cli
