#pragma once
// Which faults hit which requests: a table of fault kinds by code paths. A path that no fault ever
// hit, or a fault that never happened, shows that the simulator is quieter than it seems.

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/faults.h"

namespace pawl::sim {

struct PathRow {
  std::string_view name, method, part;  // a request has the first row whose part its path holds
};
inline constexpr std::array<PathRow, 41> kPaths{{
    {"worlds: poll", "POST", "/v1/effects/poll"},
    {"worlds: receipt", "POST", "/receipts"},
    {"worlds: frame", "POST", "/frames"},
    {"worlds: event", "POST", "/events"},
    {"worlds: governance", "POST", "/governance/"},
    {"worlds: snapshot", "POST", "/checkpoint"},
    {"worlds: stream", "GET", "/journal/stream"},
    {"worlds: journal", "GET", "/journal"},
    {"worlds: state", "GET", "/state/sim"},
    {"lifecycle: watch", "GET", "?stream=true"},
    {"processes: schedule", "", "/schedules/"},
    {"processes: move", "POST", "/move"},
    {"processes: migrate", "POST", "/migrate"},
    {"processes: bulk", "POST", "/pawl/v1/processes/bulk/"},
    {"processes: signal by name", "", "/pawl/v1/processes/signals"},
    {"processes: batch", "POST", "/start-batch"},
    {"processes: operator", "POST", "/pawl/v1/processes/instances/"},
    {"processes: poll", "POST", "/v1/jobs/poll"},
    {"processes: complete a job", "POST", "/complete"},
    {"processes: fail a job", "POST", "/fail"},
    {"processes: cancel", "POST", "/cancel"},
    {"processes: signal", "POST", "/signals/"},
    {"processes: start", "POST", "/v1/instances"},
    {"processes: history", "GET", "/v1/instances/0"},
    {"processes: list", "GET", "/v1/instances?"},
    {"processes: upload", "POST", "/v1/definitions"},
    {"lifecycle: list", "GET", "/instances/order?"},
    {"lifecycle: create", "POST", "/instances/order/"},
    {"lifecycle: remove", "DELETE", "/instances/order/"},
    {"lifecycle: move", "POST", "/transition"},
    {"lifecycle: patch", "POST", "/state"},
    {"lifecycle: get", "GET", "/workflows/order/"},
    {"entities: two at once", "PUT", "/both"},
    {"entities: search job", "", "/api/search/async/"},
    {"entities: create", "POST", "/api/entity/JSON/"},
    {"entities: put, move", "PUT", "/api/entity/JSON/"},
    {"entities: search", "POST", "/api/search/"},
    {"entities: delete", "DELETE", "/api/entity/"},
    {"entities: get", "GET", "/api/entity/"},
    {"entities: model", "", "/api/model/"},
    {"other", "", ""},
}};

inline size_t path_of(std::string_view method, std::string_view path) {
  for (size_t i = 0; i < kPaths.size(); ++i)
    if ((kPaths[i].method.empty() || kPaths[i].method == method) &&
        path.find(kPaths[i].part) != std::string_view::npos)
      return i;
  return kPaths.size() - 1;
}

// The face of a path: the part of its name before the colon.
inline std::string_view face_of(size_t path) {
  return kPaths[path].name.substr(0, kPaths[path].name.find(':'));
}

struct Coverage {
  std::array<uint64_t, kPaths.size()> answers{};
  std::array<std::array<uint64_t, kPaths.size()>, kFaults> hits{};
  void hit(Fault fault, std::string_view method, std::string_view path) {
    ++hits[static_cast<size_t>(fault)][path_of(method, path)];
  }
};

}  // namespace pawl::sim
