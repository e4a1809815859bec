#pragma once
// The members of a definition that say how its instances are kept and asked: the uniqueness of
// business keys, stored queries and retention. Each reader adds what it cannot read to `problems`
// and what it refuses to `broken`, as read_definition() does.

#include "faces/processes/definition/definition.h"

namespace pawl::processes {

// {"unique": "running" | "always", "conflict": "refuse" | "return"}
std::optional<KeyPolicy> read_key_policy(const json::Value& v, Problems& problems,
                                         Problems& broken);
// {"name": "expression"}. Unlike in steps, a text that does not compile is refused.
std::vector<Query> read_queries(const json::Value& v, Problems& broken);
// {"completed"?, "failed"?, "cancelled"?}: durations. `where` begins the messages.
Retention read_retention(const json::Value& v, const std::string& where, Problems& problems,
                         Problems& broken);
// The members signal and correlationKey of a WAIT.
void read_signal(const json::Value& v, Step& step, const std::string& where, Problems& broken);
// The attemptTimeout of a SERVICE_TASK.
void read_attempt_timeout(const json::Value& v, Step& step, const std::string& where,
                          Problems& broken);

}  // namespace pawl::processes
