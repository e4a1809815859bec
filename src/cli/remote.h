#pragma once
// What the commands that talk to a server share: where it is, who calls, files and JSON on the
// command line, tables on the terminal.

#include "cli/client.h"
#include "cli/command.h"

namespace pawl::cli {

inline constexpr Flag kServer{"server", v::server(),
                              "the server (default PAWL_SERVER, else 127.0.0.1:8080)"};
inline constexpr Flag kToken{"token-file", v::path("FILE"), "a file with the bearer token"};

Result<std::unique_ptr<Client>> client_of(const Args& args);
// One request to the server; its answer is printed.
Result<int> print_answer(const Args& args, std::string_view method, const std::string& path,
                         const json::Value* body = nullptr);
Result<std::string> read_file(const std::string& path);  // "-" is standard input
Result<json::Value> read_json(const std::string& path);
// The one word that the command wants.
Result<std::string> word(const Args& args, size_t at, std::string_view what);
// NAME=VALUE flags as an object; values that are JSON are taken as such, others as text.
Result<json::Object> pairs(const std::vector<std::string>& words);
// A table: one row an item, the named members as columns.
void print_table(const json::Value& items, const std::vector<std::string_view>& columns);
std::string query(const std::vector<std::pair<std::string_view, std::string>>& params);

std::span<const Command> process_commands();
std::span<const Command> operator_commands();
std::span<const Command> job_commands();
std::span<const Command> worker_commands();
std::span<const Command> entity_commands();
std::span<const Command> lifecycle_commands();
std::span<const Command> world_commands();

}  // namespace pawl::cli
