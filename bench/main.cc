// bench [NAME...] runs all scenarios or the named ones; `processes` means all of `processes.*`.
// Most bars are ratios of two measurements of the same run, so that they hold on fast and slow
// machines; the disk is measured before and after, because its speed may change. Exits with 1 when
// a bar is missed.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "bench/scenario.h"

using namespace pawl::bench;

int main(int argc, char** argv) {
  struct Row {
    const char* name;
    void (*run)(Report&, Facts&);
  };
  static constexpr Row rows[] = {{"kernel", bench_kernel},
                                 {"recovery", bench_recovery},
                                 {"http", bench_http},
                                 {"processes.flow", bench_flow},
                                 {"processes.stream", bench_stream},
                                 {"processes.pickup", bench_pickup},
                                 {"processes.timers", bench_timers},
                                 {"processes.waiting", bench_waiting},
                                 {"entities.requests", bench_requests},
                                 {"entities.member", bench_member},
                                 {"entities.growth", bench_growth},
                                 {"lifecycle", bench_lifecycle},
                                 {"worlds.events", bench_worlds},
                                 {"worlds.cells", bench_world_cells}};
  Report report;
  Facts facts;
  fmt::print("disk sync before: {:.3f} ms\n", sync_ms("."));
  for (const Row& row : rows) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i)
      wanted = wanted || row.name == std::string_view(argv[i]) ||
               std::string_view(row.name).starts_with(argv[i] + std::string("."));
    if (!wanted) continue;
    fmt::print("\n{}\n", row.name);
    row.run(report, facts);
  }
  fmt::print("\ndisk sync after: {:.3f} ms\n{} bars missed\n", sync_ms("."), report.missed());
  return report.missed() ? 1 : 0;
}
