#include "cli/world_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/child.h"
#include "cli/example_files.h"
#include "cli/remote.h"
#include "faces/worlds/air/entrypoints.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"
#include "wasm/inspect.h"

namespace pawl::cli {

namespace fs = std::filesystem;

namespace {

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "WORLD_FOLDER", std::move(why));
}

// Members of pawl.world.json; another member is a spelling mistake.
constexpr std::string_view kMembers[] = {"world", "modules", "limits"};
// The lists of a manifest with the kind of their definitions.
constexpr std::pair<const char*, std::string_view> kLists[] = {{"schemas", "defschema"},
                                                               {"modules", "defmodule"},
                                                               {"workflows", "defworkflow"},
                                                               {"effects", "defeffect"},
                                                               {"secrets", "defsecret"}};

// The path of a file that pawl.world.json names. It stays inside the folder: a folder from
// elsewhere must not upload other files of this machine.
Result<std::string> module_file(const std::string& folder, const std::string& module,
                                const json::Value& given) {
  if (!given.is_string())
    return bad(
        fmt::format("{}/{}: the file of module '{}' must be a string", folder, kWorldFile, module));
  const fs::path file(given.string());
  const bool leaves =
      file.is_absolute() ||
      std::any_of(file.begin(), file.end(), [](const fs::path& part) { return part == ".."; });
  if (leaves)
    return bad(fmt::format("{}/{}: module '{}' names '{}', which is outside of the folder", folder,
                           kWorldFile, module, given.string()));
  const std::string path = folder + "/" + given.string();
  if (!fs::is_regular_file(path))
    return bad(fmt::format("{}/{}: there is no file '{}' for module '{}'", folder, kWorldFile,
                           given.string(), module));
  return path;
}

Result<void> read_settings(WorldFolder& out) {
  const std::string file = out.path + "/" + std::string(kWorldFile);
  if (!fs::exists(file))
    return bad(fmt::format("{0} has no {1}: `pawl world init {0}` makes a first world there",
                           out.path, kWorldFile));
  TRY(json::Value settings, read_json(file));
  if (!settings.is_object()) return bad(file + " must be an object: {\"world\": \"NAME\"}");
  for (const auto& [name, value] : settings.object())
    if (std::find(std::begin(kMembers), std::end(kMembers), name) == std::end(kMembers))
      return bad(fmt::format("{}: unknown member '{}'; known: world, modules, limits", file, name));
  out.world = settings.string_or("world");
  if (out.world.empty()) return bad(file + " does not name the world: \"world\": \"NAME\"");
  if (const json::Value* limits = settings.find("limits")) out.limits = *limits;
  const json::Value* modules = settings.find("modules");
  if (!modules) return {};
  if (!modules->is_object())
    return bad(file + ": 'modules' maps the names of modules to files of the folder");
  for (const auto& [name, given] : modules->object()) {
    TRY(out.modules[name], module_file(out.path, name, given));
  }
  return {};
}

Result<std::vector<std::string>> air_files(const std::string& folder) {
  const fs::path air = fs::path(folder) / "air";
  std::error_code failed;
  std::vector<std::string> out;
  for (fs::directory_iterator it(air, failed), end; !failed && it != end; it.increment(failed)) {
    if (it->path().extension() != ".json") continue;
    out.push_back(it->path().string());
    if (out.size() > kMaxAirFiles)
      return bad(fmt::format("{} has more than {} files; put several definitions into one",
                             air.string(), kMaxAirFiles));
  }
  if (out.empty()) return bad(air.string() + " has no *.json file with definitions (AIR nodes)");
  std::sort(out.begin(), out.end());  // the order of a folder is not defined
  return out;
}

// A list that the manifest does not have holds every definition of its kind, by name.
void complete_lists(json::Object& manifest, const json::Array& nodes) {
  for (const auto& [list, kind] : kLists) {
    if (manifest.has(list)) continue;
    std::vector<std::string> names;
    for (const json::Value& node : nodes)
      if (node.string_or("$kind") == kind && !node.string_or("name").starts_with("sys/"))
        names.emplace_back(node.string_or("name"));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    json::Array refs;
    for (std::string& name : names)
      refs.push_back(json::object({{"name", std::move(name)}}));
    manifest.add(list, json::Value(std::move(refs)));
  }
}

Result<void> read_definitions(WorldFolder& out) {
  TRY(std::vector<std::string> files, air_files(out.path));
  json::Array nodes;
  json::Value manifest;
  std::string manifest_file;
  for (const std::string& file : files) {
    TRY(json::Value document, read_json(file));
    json::Array items = document.is_array() ? std::move(document.array()) : json::Array{document};
    for (json::Value& node : items) {
      if (node.string_or("$kind") == "manifest") {
        if (!manifest_file.empty())
          return bad(
              fmt::format("{} and {} both hold a manifest; a world has one", manifest_file, file));
        manifest_file = file;
        manifest = std::move(node);
        continue;
      }
      if (auto parsed = worlds::parse_node(node); !parsed) {
        parsed.error().message = file + ": " + parsed.error().message;
        return fail(std::move(parsed.error()));
      }
      nodes.push_back(std::move(node));
    }
  }
  if (manifest_file.empty())
    return bad(fmt::format(
        "no file below {}/air holds a manifest: add {{\"$kind\": \"manifest\", \"air_version\": "
        "\"2\", \"routing\": {{\"subscriptions\": [...]}}}}",
        out.path));
  complete_lists(manifest.object(), nodes);
  nodes.push_back(std::move(manifest));
  out.air = json::Value(std::move(nodes));
  return {};
}

std::string program_folder() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path().string();
}

// The script that compiles modules: of the variable PAWL_SDK, of the prefix that this program is
// installed in, or of the source tree that it was built in.
Result<std::string> sdk_build() {
  std::vector<std::string> places;
  if (const char* named = std::getenv("PAWL_SDK")) places.emplace_back(named);
  places.push_back(program_folder() + "/../share/pawl/sdk/wasm");
  places.push_back(program_folder() + "/../sdk/wasm");
  for (const std::string& place : places)
    if (access((place + "/build").c_str(), X_OK) == 0) return place + "/build";
  return fail(Code::not_found, "NO_SDK",
              fmt::format("the SDK that compiles modules is in none of {}; set PAWL_SDK to "
                          "its folder, or bring the module as a .wasm file",
                          fmt::join(places, ", ")));
}

Result<Bytes> compile(const WorldFolder& folder, const std::string& file) {
  TRY(std::string script, sdk_build());
  const fs::path out =
      fs::path(folder.path) / "build" / fs::path(file).filename().replace_extension(".wasm");
  TRY(ChildResult done, run_child({script, file, "-o", out.string()}, {}, {}));
  if (done.code != 0)
    return fail(Code::invalid, "MODULE_BUILD",
                fmt::format("{} does not compile:\n{}{}", file, done.out, done.err));
  return read_file(out.string());
}

Result<Bytes> module_bytes(const WorldFolder& folder, const std::string& file) {
  if (fs::path(file).extension() == ".wasm") return read_file(file);
  return compile(folder, file);
}

// The modules in WASM that the folder defines.
std::vector<std::string> wasm_modules(const WorldFolder& folder) {
  std::vector<std::string> out;
  for (const json::Value& node : folder.air.array()) {
    const json::Value* runtime = node.find("runtime");
    if (node.string_or("$kind") == "defmodule" && runtime && runtime->string_or("kind") == "wasm")
      out.emplace_back(node.string_or("name"));
  }
  return out;
}

Result<void> check_names(const WorldFolder& folder, const std::vector<std::string>& defined) {
  for (const std::string& name : defined)
    if (!folder.modules.contains(name))
      return bad(
          fmt::format("{}/{} names no file for module '{}': add \"modules\": {{\"{}\": "
                      "\"modules/FILE\"}}",
                      folder.path, kWorldFile, name, name));
  for (const auto& [name, file] : folder.modules)
    if (std::find(defined.begin(), defined.end(), name) == defined.end())
      return bad(
          fmt::format("{}/{} has a file for module '{}', which no definition below air/ "
                      "names (known: {})",
                      folder.path, kWorldFile, name, fmt::join(defined, ", ")));
  return {};
}

Result<void> write_file(const fs::path& path, std::string_view text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return fail(Code::unavailable, "NO_FILE", "cannot write " + path.string());
  return {};
}

}  // namespace

Result<WorldFolder> read_world_folder(const std::string& path) {
  WorldFolder out;
  out.path = path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  std::error_code unknown;
  if (!fs::is_directory(out.path, unknown))
    return fail(Code::not_found, "NO_FOLDER",
                fmt::format("{0} is not a folder: `pawl world init {0}` makes a first world there",
                            out.path));
  TRY_OK(read_settings(out));
  TRY_OK(read_definitions(out));
  return out;
}

json::Value BuiltWorld::document() const {
  json::Array nodes;
  for (const worlds::Node& node : authored.nodes)
    nodes.push_back(worlds::plain_json(worlds::to_value(node, true)));
  return json::object({{"manifest", worlds::plain_json(worlds::to_value(authored.manifest, true))},
                       {"nodes", json::Value(std::move(nodes))}});
}

Result<BuiltWorld> build_world(const WorldFolder& folder) {
  BuiltWorld out{
      .world = folder.world, .limits = folder.limits, .authored = {}, .manifest_hash = {}};
  const std::vector<std::string> defined = wasm_modules(folder);
  TRY_OK(check_names(folder, defined));
  std::error_code failed;
  fs::create_directories(fs::path(folder.path) / "build", failed);
  worlds::AuthorOptions options;
  for (const auto& [name, file] : folder.modules) {
    TRY(Bytes wasm, module_bytes(folder, file));
    options.artifacts[name] = worlds::hash_text(sha256(wasm));
    out.wasm[name] = std::move(wasm);
  }
  worlds::Builtins builtins;
  TRY(out.authored, worlds::author(folder.air, builtins, options));
  TRY(worlds::LoadedManifest loaded,
      worlds::load(out.authored.manifest, worlds::finder(out.authored.nodes), builtins));
  out.manifest_hash = loaded.hash;
  for (const auto& [name, entrypoints] : worlds::entrypoints_of(loaded)) {
    auto wasm = out.wasm.find(name);
    if (wasm == out.wasm.end()) continue;
    if (auto checked = wasm::check_module(wasm->second, entrypoints); !checked) {
      checked.error().message = fmt::format("module '{}' ({}): {}", name, folder.modules.at(name),
                                            checked.error().message);
      return fail(std::move(checked.error()));
    }
  }
  TRY_OK(write_file(fs::path(folder.path) / "build" / "manifest.json",
                    json::print_pretty(out.document()) + "\n"));
  return out;
}

Result<void> init_world(const std::string& path, const std::string& world) {
  std::error_code unknown;
  if (fs::exists(path, unknown) &&
      (!fs::is_directory(path, unknown) || !fs::is_empty(path, unknown)))
    return fail(Code::conflict, "NOT_EMPTY",
                path + " exists and is not an empty folder; choose another");
  for (const ExampleFile& file : starter_files()) {
    std::string text(file.text);
    if (file.name == kWorldFile) {
      TRY(json::Value settings, json::parse(text));
      settings.object().set("world", world);
      text = json::print_pretty(settings) + "\n";
    }
    // The template of .gitignore has no dot, so that git does not obey it in this tree.
    const std::string name = file.name == "gitignore" ? ".gitignore" : std::string(file.name);
    TRY_OK(write_file(fs::path(path) / name, text));
  }
  return {};
}

}  // namespace pawl::cli
