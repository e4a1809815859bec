// `pawl serve` and `pawl dev`. Both load the settings, start a Host and wait for a signal; dev uses
// a temporary folder and loads an example.

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/host.h"

namespace pawl::cli {

// Every setting of the server is a flag of both commands.
static std::vector<Flag> setting_flags() {
  std::vector<Flag> out;
  for (const server::Setting& setting : server::settings())
    out.push_back({setting.flag, setting.type, setting.doc});
  out.push_back({"config", v::path("FILE"),
                 "TOML file with settings; a variable wins over it, a flag over both"});
  return out;
}

// `defaults` count as flags that the user can override: flags are copied over them.
static Result<server::Config> load(const Args& args,
                                   const std::map<std::string, std::string>& defaults) {
  server::ConfigSources sources;
  sources.variable = server::environment;
  sources.file = args.get("config");
  sources.flags = defaults;
  for (const auto& [flag, value] : args.flags())
    for (const server::Setting& s : server::settings())
      if (s.flag == flag) sources.flags[flag] = value;
  return server::Config::load(sources);
}

// Blocks the signals that stop the server in every thread; wait_for_stop() receives them.
static sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return set;
}

// SIGHUP is ignored: a terminal that closes does not stop the server.
static int wait_for_stop(const sigset_t& set) {
  int got = 0;
  do
    sigwait(&set, &got);
  while (got == SIGHUP);
  return got;
}

// Files that the server makes are readable by its user only, and its secrets leave the environment,
// where the programs that it starts could read them.
static Result<void> set_up_process(const server::Config& config) {
  ::umask(077);
  server::forget_secret_variables();
  TRY(Level level, parse_level(config.text("log-level")));
  TRY(LogFormat format, parse_log_format(config.text("log-format")));
  log_setup(level, format);
  return {};
}

// The page to open first. A server that listens on every interface is reached at the loopback one.
static std::string docs_url(const server::Config& config, std::string address) {
  for (std::string_view any : {"0.0.0.0:", "[::]:"}) {
    if (address.starts_with(any)) address = "127.0.0.1:" + address.substr(any.size());
  }
  bool tls = !config.text("tls-certificate").empty();
  return fmt::format("{}://{}/docs", tls ? "https" : "http", address);
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
  TRY_OK(set_up_process(config));
  sigset_t set = block_signals();
  TRY(auto host, Host::start(config));
  log(Level::info, fmt::format("serving: open {} in a browser", docs_url(config, host->http())),
      {{"http", host->http()},
       {"grpc", host->grpc()},
       {"admin", host->admin()},
       {"data", config.text("data")}});
  wait_for_stop(set);
  log(Level::info, "stopping: no new requests, finishing those accepted");
  host->stop();
  log(Level::info, "stopped");
  // RocksDB flushes when it is closed and aborts when the disk is full. The journal can rebuild the
  // rows, so they are left unflushed after a failure.
  if (host->failed()) std::_Exit(kDone);
  return kDone;
}

static Result<int> dev(const Args& args) {
  std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("pawl-dev-{}", getpid())).string();
  // Removes the folder on every way out, also when the server does not start.
  struct Removed {
    std::string folder;
    ~Removed() {
      std::error_code ec;
      std::filesystem::remove_all(folder, ec);
    }
  } removed{folder};
  TRY(server::Config config, load(args, {{"data", folder}}));
  TRY_OK(set_up_process(config));
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

static constexpr Command kServerCommands[] = {
    {"serve",
     "",
     "run the server",
     {{"check-config", v::none(), "check the settings and stop"},
      {"print-config", v::none(), "print every setting with its source and stop"}},
     serve,
     setting_flags},
    {"dev", "", "run a throw-away server with an example loaded", {}, dev, setting_flags},
};

std::span<const Command> server_commands() { return kServerCommands; }

}  // namespace pawl::cli
