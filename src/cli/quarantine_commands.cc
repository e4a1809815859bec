// Commands for effects in quarantine. They call the admin address of the running server, which they
// find in its data folder.

#include <fmt/format.h>

#include "cli/remote.h"
#include "json/text.h"
#include "wire/message.h"

namespace pawl::cli {

static constexpr Flag kServedData{"data", v::path("DIR"),
                                  "the data folder of the running server (default ./data)"};

static Result<std::unique_ptr<Client>> admin_of(const Args& args) {
  const std::string data = args.get("data", "./data");
  auto serving = read_json(data + "/serving.json");
  if (!serving)
    return fail(Code::unavailable, "NOT_SERVED",
                fmt::format("no server runs on {}: start it with pawl serve", data));
  return std::make_unique<Client>(std::string(serving->string_or("admin")), std::string());
}

static Result<int> quarantine_list(const Args& args) {
  TRY(auto admin, admin_of(args));
  TRY(json::Value answer, admin->call("GET", "/quarantine", nullptr));
  show(args, answer, [&] {
    const json::Value* effects = answer.find("effects");
    if (effects && effects->is_array() && !effects->array().empty())
      print_table(*effects, {"effect", "since"});
    else
      fmt::print("no effect is in quarantine\n");
  });
  return kDone;
}

static Result<int> quarantine_release(const Args& args) {
  TRY(std::string effect, word(args, 0, "the effect, as pawl quarantine list shows it"));
  TRY(auto admin, admin_of(args));
  TRY(json::Value answer,
      admin->call("POST", "/quarantine/release?effect=" + wire::percent_encode(effect), nullptr));
  show(args, answer, [&] { fmt::print("released {}\n", effect); });
  return kDone;
}

static constexpr Command kQuarantineCommands[] = {
    {"quarantine list",
     "",
     "list the effects whose delivery crashed the server twice",
     {kServedData},
     quarantine_list},
    {"quarantine release",
     "EFFECT",
     "deliver an effect of the quarantine again",
     {kServedData},
     quarantine_release},
};

std::span<const Command> quarantine_commands() { return kQuarantineCommands; }

}  // namespace pawl::cli
