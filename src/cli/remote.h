#pragma once
// Functions that all commands that talk to a server share: its address and token, files and JSON on
// the command line, tables on the terminal.

#include "cli/client.h"
#include "cli/command.h"

namespace pawl::cli {

inline constexpr Flag kServer{"server", v::server(),
                              "the server (default PAWL_SERVER, else 127.0.0.1:8080)"};
inline constexpr Flag kToken{"token-file", v::path("FILE"), "a file with the bearer token"};

Result<std::unique_ptr<Client>> client_of(const Args& args);
// The same for a given address.
Result<std::unique_ptr<Client>> client_to(const Args& args, std::string server);
// Sends one request to the server and prints its answer.
Result<int> print_answer(const Args& args, std::string_view method, const std::string& path,
                         const json::Value* body = nullptr);
Result<std::string> read_file(const std::string& path);  // "-" is standard input
Result<json::Value> read_json(const std::string& path);
// The argument at position `at`; `what` names it in the error when it is missing.
Result<std::string> word(const Args& args, size_t at, std::string_view what);
// NAME=VALUE arguments as an object. A value that is JSON is parsed; any other is text.
Result<json::Object> pairs(const std::vector<std::string>& words);
// Prints a table with one row for each item and the named members as columns.
void print_table(const json::Value& items, const std::vector<std::string_view>& columns);
std::string query(const std::vector<std::pair<std::string_view, std::string>>& params);

std::span<const Command> process_commands();
std::span<const Command> operator_commands();
std::span<const Command> job_commands();
std::span<const Command> schedule_commands();
std::span<const Command> worker_commands();
std::span<const Command> simulate_commands();
std::span<const Command> entity_commands();
std::span<const Command> lifecycle_commands();
std::span<const Command> world_commands();
std::span<const Command> world_folder_commands();

}  // namespace pawl::cli
