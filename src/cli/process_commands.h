#pragma once
// Functions that the commands of the processes face share.

#include "cli/remote.h"

namespace pawl::cli {

inline constexpr Flag kVar{"var", v::pair("NAME=VALUE"),
                           "a variable, JSON or else text; may be given several times"};
inline constexpr Flag kReason{"reason", v::text("TEXT"), "why; kept in the history"};
inline constexpr Flag kWorker{"worker", v::text("ID"), "name of the worker (default pawl-cli)"};

// A member of an object; null when it has no such member.
const json::Value& member(const json::Value& value, std::string_view name);
// True when the name is that of a readable file; "-" is standard input. Commands that take a file
// or an id ask this first.
bool is_file(const std::string& name);
// Sends a request. Prints the answer as JSON, or `said` for a person.
Result<int> post_to(const Args& args, const std::string& path, const json::Value* body,
                    std::string_view said);

}  // namespace pawl::cli
