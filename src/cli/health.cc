// `pawl health` asks a server whether it is ready. It is the health check of a container: it needs
// no other program, and its exit code is 0 when the server is ready and 1 otherwise.

#include <fmt/format.h>

#include "cli/command.h"
#include "net/http_client.h"
#include "server/http/address.h"
#include "server/ops/config.h"

namespace pawl::cli {

namespace {

constexpr double kTimeoutSeconds = 3;
constexpr size_t kMaxAnswerBytes = size_t{1} << 20;

struct Target {
  std::string url;
  std::string ca_file;
};

// Without flags, the address and the certificate of a server with the same environment: inside of
// its container. A server that listens on all interfaces is asked over loopback.
Result<Target> target_of(const Args& args) {
  Target target{args.get("admin"), args.get("ca-file")};
  if (args.has("admin")) {
    target.url = net::server_url(target.url);
    return target;
  }
  TRY(server::Config config,
      server::Config::load({.flags = {}, .variable = server::environment, .file = {}}));
  TRY(server::Address address, server::parse_address(config.text("admin")));
  if (address.host.empty() || address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  const std::string& certificate = config.text("tls-certificate");
  if (target.ca_file.empty()) target.ca_file = certificate;
  target.url = fmt::format("{}://{}", certificate.empty() ? "http" : "https", address.text());
  return target;
}

int show_health(const Args& args, std::string_view url, bool ready, std::string_view message) {
  show(args, json::object({{"ready", ready}, {"server", url}, {"message", message}}), [&] {
    if (!args.has("quiet")) fmt::print("{}: {}\n", url, message);
  });
  return ready ? kDone : kFailed;
}

Result<int> health(const Args& args) {
  TRY(Target target, target_of(args));
  const double seconds = args.seconds("timeout", kTimeoutSeconds);
  net::HttpClient client(
      {.base_url = target.url,
       .timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)),
       .ca_file = target.ca_file,
       .max_answer_bytes = kMaxAnswerBytes});
  auto answer = client.send({"GET", "/readyz"});
  if (!answer) return show_health(args, target.url, false, "not ready: " + answer.error().message);
  if (answer->status == 200) return show_health(args, target.url, true, "ready");
  std::string why = answer->body.substr(0, answer->body.find('\n'));
  return show_health(
      args, target.url, false,
      fmt::format("not ready: status {}{}{}", answer->status, why.empty() ? "" : ": ", why));
}

constexpr Command kHealthCommands[] = {
    {"health",
     "",
     "say whether a server is ready: exit code 0 when it is, 1 otherwise",
     {{"admin", v::server(), "its admin address (default PAWL_ADMIN, else 127.0.0.1:9091)"},
      {"ca-file", v::path("FILE"),
       "trusted certificate authorities, for https (default PAWL_TLS_CERTIFICATE, else the "
       "system's)"},
      {"timeout", v::seconds(), "how long to wait for the answer (default 3)"}},
     health},
};

}  // namespace

std::span<const Command> health_commands() { return kHealthCommands; }

}  // namespace pawl::cli
