// bench [NAME...]: the scenarios, all or those named. Every bar is a ratio within this run.

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "bench/scenario.h"

using namespace pawl::bench;

int main(int argc, char** argv) {
  struct Row {
    const char* name;
    void (*run)(Report&, Facts&);
  };
  static constexpr Row rows[] = {{"kernel", bench_kernel}, {"recovery", bench_recovery}, {"http", bench_http}, {"processes", bench_processes}, {"entities", bench_entities}, {"lifecycle", bench_lifecycle}, {"worlds", bench_worlds}, {"world-cells", bench_world_cells}};
  Report report;
  Facts facts;
  fmt::print("disk sync before: {:.3f} ms\n", sync_ms("."));
  for (const Row& row : rows) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || !std::strcmp(argv[i], row.name);
    if (!wanted) continue;
    fmt::print("\n{}\n", row.name);
    row.run(report, facts);
  }
  fmt::print("\ndisk sync after: {:.3f} ms\n{} bars missed\n", sync_ms("."), report.missed());
  return report.missed() ? 1 : 0;
}
