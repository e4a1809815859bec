#pragma once
// The scenarios, and the results of earlier scenarios that later ones compare with.

#include <functional>
#include <memory>

#include "bench/measure.h"
#include "runtime/shard.h"

namespace pawl::bench {

struct Facts {
  double append_us = 0;     // one raw synchronous append
  double kernel_turns = 0;  // a second, 64 submitters
  double bare_rps = 0;      // the bare HTTP server, 64 connections
  double bare_us = 0;       // one bare round trip, 1 connection
};

// `cache_bytes` 0 is the default of the shard. The caller starts and stops the shard.
std::unique_ptr<Shard> open_shard(const std::string& path, std::vector<const Program*> programs,
                                  size_t cache_bytes = 0,
                                  size_t family_cells = ShardOptions().family_cells);
// Each submitter sends its next input when the answer to the last one has come.
double turns_per_second(Shard& shard, std::function<Input(uint64_t)> make, size_t submitters,
                        double for_seconds);

// Each scenario prints its lines and bars. One that needs a fact which no earlier scenario has left
// measures it itself.
void bench_kernel(Report& report, Facts& facts);
void bench_recovery(Report& report, Facts& facts);
// p50 of one append of the size of a small frame, with fdatasync. The pause before each leaves the
// disk idle.
double raw_append_us(double pause_seconds = 0);
void bench_http(Report& report, Facts& facts);
void bench_flow(Report& report, Facts& facts);
void bench_stream(Report& report, Facts& facts);
void bench_pickup(Report& report, Facts& facts);
void bench_timers(Report& report, Facts& facts);
void bench_waiting(Report& report, Facts& facts);
void bench_requests(Report& report, Facts& facts);
void bench_member(Report& report, Facts& facts);
void bench_growth(Report& report, Facts& facts);
void bench_lifecycle(Report& report, Facts& facts);
void bench_worlds(Report& report, Facts& facts);
void bench_world_cells(Report& report, Facts& facts);

}  // namespace pawl::bench
