#pragma once
// A load generator: N connections to a server on loopback. Each sends its next request when the
// answer to the last one has come. It uses one thread in every scenario, so that ratios are fair.

#include <functional>
#include <string>

#include "bench/measure.h"

namespace pawl::bench {

struct Load {
  std::string address;  // 127.0.0.1:PORT
  size_t connections = 64;
  double seconds = 2;
  // Returns the next request of a connection; empty: none now, it is asked again soon.
  std::function<std::string(size_t connection)> next;
  // Called with each answer's status and body; may be empty.
  std::function<void(size_t connection, int status, std::string_view body)> got{};
  std::function<bool()> until{};  // ends the run early when it returns true
};

struct Loaded {
  double rps = 0, p50_us = 0, p99_us = 0;
  uint64_t answers = 0, failures = 0;  // failures: status 400 and above
};

Loaded run(const Load& load);
std::string request(std::string_view method, std::string_view path, std::string_view body = {});

}  // namespace pawl::bench
