#pragma once
// A load generator: N connections to a server on loopback, each sending its next request when the
// answer to the last has come. One thread; the same for every scenario, so ratios are fair.

#include <functional>
#include <string>

#include "bench/measure.h"

namespace pawl::bench {

struct Load {
  std::string address;  // 127.0.0.1:PORT
  size_t connections = 64;
  double seconds = 2;
  // The next request of a connection, whole; empty: none now, asked again soon.
  std::function<std::string(size_t connection)> next;
  // Called with each answer's status and body; may be empty.
  std::function<void(size_t connection, int status, std::string_view body)> got{};
  std::function<bool()> until{};  // ends earlier when it says so
};

struct Loaded {
  double rps = 0, p50_us = 0, p99_us = 0;
  uint64_t answers = 0, failures = 0;  // failures: status 400 and above
};

Loaded run(const Load& load);
std::string request(std::string_view method, std::string_view path, std::string_view body = {});

}  // namespace pawl::bench
