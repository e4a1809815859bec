// The lifecycle library in process, with a durable journal: its speed compared with the bare
// kernel, and the cost of reads, lists and watches.

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "bench/scenario.h"
#include "pawl/lifecycle.h"

namespace pawl::bench {

namespace lc = pawl::lifecycle;

// `slot` is indexed and `owner` is not, so a list by each shows the price of a scan.
struct Unit {
  std::string id{}, phase = "idle", owner{}, slot{};
  std::int64_t count = 0;
  static constexpr std::string_view workflow = "bench-unit", bucket = "BENCH";
  static constexpr auto fields =
      lc::fields(lc::field<&Unit::id>("id", lc::id), lc::field<&Unit::phase>("phase", lc::phase),
                 lc::field<&Unit::owner>("owner"), lc::field<&Unit::slot>("slot", lc::indexable),
                 lc::field<&Unit::count>("count"));
  static constexpr auto transitions = lc::table(lc::from("idle", "busy"), lc::from("busy", "idle"));
};

// A bare kernel turn of about the size of a lifecycle write, to compare with.
class Small final : public Program {
 public:
  std::string_view name() const override { return "put"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    turn.write(key({"put", input.caller.user}), input.body);
    return Bytes();
  }
};

// Runs threads that call `step` until the time is over. Returns calls per second.
static double calls_per_second(size_t threads, double for_seconds,
                               const std::function<void(size_t)>& step) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0};
  std::vector<std::thread> all;
  double begin = seconds();
  for (size_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      uint64_t n = 0;
      // The step runs at least once.
      do {
        step(t);
        ++n;
      } while (!stop);
      done += n;
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(for_seconds));
  stop = true;
  for (auto& t : all)
    t.join();
  return static_cast<double>(done) / (seconds() - begin);
}

static Input small_input(uint64_t i) {
  return {.program = "put",
          .verb = "put",
          .body = std::string(150, 'v'),
          .caller = {"t", "c" + std::to_string(i % 16), ""}};
}

static void bench_writes(Report& report, lc::manager& m) {
  double kernel = 0, moves = 0, updates = 0;
  // Processor time of one call over all threads; more reliable than rates on a busy machine.
  double kernel_us = 0, moves_us = 0, updates_us = 0;
  auto costed = [](double& us, double rate, double cpu_before) {
    us += (cpu_seconds() - cpu_before) * 1e6 / rate / 3;
    return rate / 3;
  };
  std::array<bool, 16> busy{};
  for (int t = 0; t < 16; ++t)
    CHECK(m.create(Unit{.id = "w" + std::to_string(t)}));
  CHECK(m.create(Unit{.id = "one"}));
  std::atomic<uint64_t> refused{0};
  // The journal stays open as long as the engine: a new journal first allocates its segment.
  Folder folder("lc-kernel");
  Small put;
  auto shard = open_shard(folder.path(), {&put});
  CHECK(shard->start());
  turns_per_second(*shard, small_input, 16, 1);
  // The runs alternate, because the speed of the disk changes from minute to minute.
  for (int round = 0; round < 3; ++round) {
    double cpu = cpu_seconds();
    kernel += costed(kernel_us, turns_per_second(*shard, small_input, 16, 1), cpu);
    cpu = cpu_seconds();
    moves += costed(moves_us,
                    calls_per_second(16, 1,
                                     [&](size_t t) {
                                       busy[t] = !busy[t];
                                       refused += !m.transition<Unit>("w" + std::to_string(t),
                                                                      busy[t] ? "busy" : "idle")
                                                       .has_value();
                                     }),
                    cpu);
    cpu = cpu_seconds();
    updates += costed(updates_us,
                      calls_per_second(16, 1,
                                       [&](size_t) {
                                         refused += !m.update<Unit>("one", [](Unit& u) {
                                                        ++u.count;
                                                      }).has_value();
                                       }),
                      cpu);
  }
  report.line("kernel turns, 16 submitters", kernel, "/s");
  report.line("transitions, 16 threads, 16 instances", moves, "/s");
  report.line("updates, 16 threads, one instance", updates, "/s");
  report.line("CPU of a kernel turn", kernel_us, "us");
  report.line("CPU of a transition", moves_us, "us");
  report.line("CPU of an update", updates_us, "us");
  report.bar({"transitions / kernel turns", moves / kernel, 0.6, true, ""});
  report.bar({"updates of one instance / kernel turns", updates / kernel, 0.3, true, ""});
  report.bar({"writes refused", static_cast<double>(refused), 0, false, ""});
}

static void bench_reads(Report& report, lc::manager& m) {
  static constexpr int kMany = 100'000;
  std::atomic<int> next{0};
  // Zero seconds: each thread makes one call, which creates instances until all are there.
  calls_per_second(16, 0, [&](size_t) {
    for (int i; (i = next++) < kMany;)
      CHECK(m.create(Unit{.id = "u" + std::to_string(i),
                          .owner = "o" + std::to_string(i),
                          .slot = "s" + std::to_string(i)}));
  });
  Latencies get, indexed;
  for (int i = 0; i < 50'000; ++i) {
    double begin = seconds();
    CHECK(m.get<Unit>("u7777"));
    get.us.push_back((seconds() - begin) * 1e6);
  }
  for (int i = 0; i < 500; ++i) {
    lc::query<Unit> q;
    q.where<&Unit::slot>("s" + std::to_string(i * 199)).limit = 20;
    double begin = seconds();
    CHECK(m.list(q)->size() == 1);
    indexed.us.push_back((seconds() - begin) * 1e6);
  }
  double begin = seconds(), cpu = cpu_seconds();
  for (int i = 0; i < 5; ++i)
    CHECK(m.list(lc::query<Unit>().where<&Unit::owner>("o777"))->size() == 1);
  double scanned = 5.0 * kMany / (seconds() - begin);
  report.line("CPU of an instance that is scanned", (cpu_seconds() - cpu) * 1e6 / (5.0 * kMany),
              "us");
  report.bar({"get, p50", get.p(50), 2, false, "us"});
  report.bar({"list, one indexed match among 100,000, p50", indexed.p(50) / 1000, 1, false, "ms"});
  report.bar({"list, the same unindexed", scanned, 1'000'000, true, "instances/s"});
}

static void bench_watch(Report& report, lc::manager& m) {
  static constexpr size_t kWatchers = 50;
  static constexpr int kWrites = 200;
  std::vector<std::jthread> readers;
  std::mutex mutex;
  Latencies late;
  std::atomic<size_t> ready{0};
  std::atomic<double> durable{0};
  std::atomic<size_t> seen{0};
  for (size_t i = 0; i < kWatchers; ++i)
    readers.emplace_back([&](std::stop_token stop) {
      auto w = *m.watch<Unit>(m.get_with_revision<Unit>("one")->second);
      ++ready;
      while (auto c = w.next(stop)) {
        double now = seconds();
        std::lock_guard lock(mutex);
        late.us.push_back((now - durable) * 1e6);
        ++seen;
      }
    });
  while (ready < kWatchers)
    std::this_thread::yield();
  for (int i = 1; i <= kWrites; ++i) {
    double begin = seconds();
    durable = begin;
    CHECK(m.update<Unit>("one", [](Unit& u) { ++u.count; }));
    double waited = seconds() + 1;
    // The next write waits until every watcher has seen this one, so that latencies do not add up.
    while (seen < i * kWatchers && seconds() < waited)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  report.line("watch: from the call of update to 50 watchers, p99", late.p(99), "us");
  report.bar(
      {"watch: from the call of update to 50 watchers, p50", late.p(50) / 1000, 1, false, "ms"});
}

void bench_lifecycle(Report& report, Facts&) {
  Folder folder("lifecycle");
  auto engine = *Engine::open({.data = folder.path() + "/data"});
  lc::manager m(*engine);
  CHECK(m.register_type<Unit>());
  bench_writes(report, m);
  bench_watch(report, m);
  // Reads do not depend on how the data was flushed, so filling 100,000 instances skips fdatasync.
  auto filled = *Engine::open({.data = folder.path() + "/filled", .unflushed = true});
  lc::manager readers(*filled);
  CHECK(readers.register_type<Unit>());
  bench_reads(report, readers);
}

}  // namespace pawl::bench
