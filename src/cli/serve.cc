// pawl serve and pawl dev.

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/host.h"

namespace pawl::cli {

static std::vector<Flag> setting_flags() {
  std::vector<Flag> out;
  for (const server::Setting& s : server::settings())
    out.push_back({s.flag, s.kind == server::SettingKind::boolean ? kOnOff : "VALUE", s.doc});
  out.push_back(
      {"config", "FILE", "a TOML file with settings; a variable beats it, a flag beats both"});
  return out;
}

static Result<server::Config> load(const Args& args,
                                   const std::map<std::string, std::string>& default_value) {
  if (!args.words.empty())
    return fail(
        Code::invalid, "BAD_USE",
        fmt::format(
            "'{}' belongs to no flag; a flag that is on or off takes its value as --name=false",
            args.words[0]));
  server::ConfigSources sources;
  sources.variable = server::environment;
  sources.file = args.get("config");
  sources.flags = default_value;
  for (const auto& [flag, value] : args.flags())
    for (const server::Setting& s : server::settings())
      if (s.flag == flag) sources.flags[flag] = value;
  return server::Config::load(sources);
}

// Signals are taken by one thread that waits for them; nobody else sees them.
static sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return set;
}

static int wait_for_stop(const sigset_t& set) {
  int got = 0;
  do
    sigwait(&set, &got);
  while (got == SIGHUP);
  return got;
}

static Result<void> set_up_log(const server::Config& config) {
  TRY(Level level, parse_level(config.text("log-level")));
  TRY(LogFormat format, parse_log_format(config.text("log-format")));
  log_setup(level, format);
  return {};
}

static Result<int> serve(const Args& args) {
  TRY(server::Config config, load(args, {}));
  if (args.has("print-config") || args.has("check-config")) {
    if (args.has("print-config"))
      fmt::print("{}", config.print());
    else
      fmt::print("the settings are good\n");
    return kDone;
  }
  TRY_OK(set_up_log(config));
  sigset_t set = block_signals();
  TRY(auto host, Host::start(config));
  log(Level::info, "serving",
      {{"http", host->http()},
       {"grpc", host->grpc()},
       {"admin", host->admin()},
       {"data", config.text("data")}});
  wait_for_stop(set);
  log(Level::info, "stopping: no new requests, finishing those accepted");
  host->stop();
  log(Level::info, "stopped");
  // RocksDB flushes when it is closed and asserts when the disk is full; the rows hold nothing that
  // the journal cannot give back, so they are left as they are.
  if (host->failed()) std::_Exit(kDone);
  return kDone;
}

static Result<int> dev(const Args& args) {
  std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("pawl-dev-{}", getpid())).string();
  struct Removed {
    std::string folder;
    ~Removed() {
      std::error_code ec;
      std::filesystem::remove_all(folder, ec);
    }
  } removed{folder};
  TRY(server::Config config, load(args, {{"data", folder}}));
  TRY_OK(set_up_log(config));
  sigset_t set = block_signals();
  TRY(auto host, Host::start(config));
  TRY_OK(load_example(host->http()));
  fmt::print(
      "pawl dev: everything is forgotten when you stop it (Ctrl+C)\n\n"
      "  HTTP   http://{}\n  gRPC   {}\n  admin  http://{}/readyz  /metrics\n\n"
      "The loan example is deployed. Try:\n\n"
      "  curl -s http://{}/v1/definitions\n\n",
      host->http(), host->grpc(), host->admin(), host->http());
  fflush(stdout);
  wait_for_stop(set);
  host->stop();
  return kDone;
}

std::vector<Command> server_commands() {
  std::vector<Flag> flags = setting_flags(), serve_flags = flags;
  serve_flags.push_back(
      {"check-config", "", "read the settings, say whether they are good, and stop"});
  serve_flags.push_back({"print-config", "", "print every setting with its source, and stop"});
  return {
      {"serve", "", "run the server", std::move(serve_flags), serve},
      {"dev", "", "run a throw-away server with an example loaded", std::move(flags), dev},
  };
}

}  // namespace pawl::cli
