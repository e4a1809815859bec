#pragma once
// A limit bounds the jobs of a SERVICE_TASK that workers may have at the same time, and how often
// one may begin, for each value of a key: {"key": "customer", "concurrent": 3, "rate": "10/s"}.

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "expr/expression.h"
#include "json/value.h"

namespace pawl::processes {

// The limit that one job is under: its limiter, and the numbers that apply to this job. A job keeps
// them while it waits and runs, also when its variables or its definition change.
struct LimitUse {
  // Name of the limiter: "definition", "definition/step" or "~name" (definition ids have no / and
  // no ~).
  std::string scope;
  std::string key;
  uint32_t concurrent = 0;  // 0: any number
  Time interval = 0;        // between two jobs, in nanoseconds; 0: no rate
  uint32_t burst = 1;       // jobs that may begin at once after a quiet time
};

// A limit as the definition has it.
struct Limit {
  std::string name;  // shared by all limits of the tenant that have this name; empty: not shared
  std::optional<expr::Expression> key;
  uint32_t concurrent = 0;
  Time interval = 0;
  uint32_t burst = 1;
  std::string scope;  // as in LimitUse
};

// Reads the member "limit". `where` begins each message, for example `step "charge"`. `problems`
// and `broken` are those of read_definition().
std::optional<Limit> read_limit(const json::Value& v, const std::string& where,
                                std::vector<std::string>& problems,
                                std::vector<std::string>& broken);

// Evaluates the key. The cost of the expression is added to `work`.
Result<LimitUse> limit_use(const Limit& limit, const json::Object& variables, Time now,
                           size_t& work);
// The text of a key: text as it is, "" for null, numbers and booleans as JSON. Nothing for a list
// or an object.
std::optional<std::string> key_text(const json::Value& v);

}  // namespace pawl::processes
