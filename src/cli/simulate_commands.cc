// `pawl simulate` plays a user's definition with the real engine in a false world: thousands of
// lives in seconds. See docs/guide/simulate.md.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "cli/child.h"
#include "cli/remote.h"
#include "cli/world_folder.h"
#include "json/text.h"
#include "sim/outside/cores.h"
#include "sim/outside/report.h"
#include "wasm/host.h"

namespace pawl::cli {
namespace {

// --worker TYPE=PROGRAM puts a real program in the place of the script's results.
Result<void> add_workers(const Args& args, sim::Script& script) {
  for (const std::string& text : args.all("worker")) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return fail(
          Code::invalid, kBadUsage,
          fmt::format("--worker {} must be TYPE=PROGRAM, such as charge=./charge.py", text));
    const std::string program = text.substr(equals + 1);
    if (access(program.c_str(), X_OK) != 0)
      return fail(Code::invalid, kBadUsage,
                  fmt::format("--worker {}: {} is no program that can be started", text, program));
    script.jobs[text.substr(0, equals)].program = program;
  }
  return {};
}

// Builds the world of a folder. Its modules are called, so this machine needs a WASM engine.
Result<sim::WorldSource> read_world(const std::string& path) {
  TRY(WorldFolder folder, read_world_folder(path));
  TRY(BuiltWorld built, build_world(folder));
  if (!built.wasm.empty() &&
      wasm::Host(wasm::HostOptions{wasm::usual_libraries(), {}}).version().empty())
    return fail(Code::unavailable, "NO_WASM_ENGINE",
                "the world has WASM modules and this machine has no WASM engine: run "
                "scripts/setup-wasm, or set PAWL_WASMTIME to libwasmtime.so");
  return sim::WorldSource{built.world, built.document(), built.limits, std::move(built.wasm)};
}

Result<sim::Script> script_of(const Args& args, const std::string& path) {
  TRY(json::Value document, read_json(path));
  // Files are named relative to the script.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  TRY(sim::Script script,
      sim::read_script(
          document,
          {[&](const std::string& name) { return read_json((folder / name).string()); },
           [&](const std::string& name) { return read_world((folder / name).string()); }}));
  for (const std::string& invariant : args.all("invariant"))
    script.invariants.push_back(invariant);
  script.lives = static_cast<uint64_t>(
      std::max<int64_t>(1, args.number("lives", static_cast<int64_t>(script.lives))));
  TRY_OK(add_workers(args, script));
  return script;
}

Result<void> write_report(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) return fail(Code::unavailable, "CANNOT_WRITE", "cannot write " + path);
  return {};
}

Result<int> simulate(const Args& args) {
  TRY(std::string path, word(args, 0, "the file of the simulation"));
  TRY(sim::Script script, script_of(args, path));
  log_level(Level::off);  // the simulated server is killed on purpose
  sim::SimulateOptions options;
  options.seed = static_cast<uint64_t>(args.number("seed", 1));
  options.crashes = !args.has("no-crashes");
  options.processes = static_cast<size_t>(
      std::max<int64_t>(1, args.number("jobs", static_cast<int64_t>(sim::core_count()))));
  options.run_worker = [](const std::string& program, const json::Value& job) {
    return run_job({program}, job);
  };
  if (args.has("life")) options.only_life = static_cast<uint64_t>(args.number("life", 0));
  ProgressLine progress("lives");
  options.progress = [&](uint64_t done, uint64_t all) { progress.update(done, all); };
  auto report = sim::simulate(script, options);
  if (!report) {
    report.error().message = path + ": " + report.error().message;
    if (report.error().is(sim::kBadInvariant)) report.error().reason = kBadUsage.name;
    return fail(std::move(report.error()));
  }
  std::string command = fmt::format("pawl simulate {} --seed {}", path, options.seed);
  for (const std::string& invariant : args.all("invariant"))
    command += fmt::format(" --invariant '{}'", invariant);
  for (const std::string& worker : args.all("worker"))
    command += fmt::format(" --worker '{}'", worker);
  if (args.has("junit"))
    TRY_OK(write_report(args.get("junit"), sim::report_junit(*report, command)));
  show(args, sim::report_json(*report, command),
       [&] { fmt::print("{}", sim::report_text(*report, command)); });
  return report->findings.empty() ? kDone : kDiffers;
}

}  // namespace

static constexpr Command kSimulateCommands[] = {
    {"simulate",
     "FILE",
     "play a definition or a world thousands of times with crashes, failures and late answers; 6 "
     "when something is found",
     {{"seed", v::number("N"), "choices of the lives; the same seed gives the same lives"},
      {"lives", v::number("N"), "number of lives; the script's, or 1000, by default"},
      {"invariant", v::text("EXPRESSION"), "must always hold; may be given several times"},
      {"worker", v::text("TYPE=PROGRAM"), "a real worker for a job type; may be repeated"},
      {"life", v::number("N"), "play one life alone and tell its story"},
      {"jobs", v::number("N"), "processes that play lives; all cores by default"},
      {"no-crashes", v::none(), "the server is never killed"},
      {"junit", v::text("FILE"), "also write the report as JUnit XML"}},
     simulate}};

std::span<const Command> simulate_commands() { return kSimulateCommands; }

}  // namespace pawl::cli
