// Raw grouped appends to the journal, and on them kernel turns, recovery and memory.

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "bench/scenario.h"
#include "runtime/pooled_loops.h"
#include "runtime/shard.h"
#include "storage/open.h"

namespace pawl::bench {

// A program that writes its body into the cell that the caller names: the smallest real turn.
class Put final : public Program {
 public:
  std::string_view name() const override { return "put"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    turn.write(key({"put", input.caller.user}), input.body);
    return Bytes();
  }
};

// Bytes of the record in each turn.
static constexpr size_t kRecord = 300;

// Groups of 64, because the turns that are compared come from 64 submitters.
static double raw_appends(double for_seconds) {
  Folder folder("raw");
  auto journal = *open_journal({.backend = "file", .folder = folder.path()});
  std::string entry(kRecord + 90, 'e');  // the size of a frame with that record
  std::vector<BytesView> group(64, entry);
  double begin = seconds(), now = begin;
  Seq last = 0;
  while ((now = seconds()) - begin < for_seconds) {
    CHECK(journal->append(group, last));
    last += group.size();
  }
  return static_cast<double>(last) / (now - begin);
}

double raw_append_us(double pause_seconds) {
  Folder folder("raw1");
  auto journal = *open_journal({.backend = "file", .folder = folder.path()});
  std::string entry(kRecord + 90, 'e');
  BytesView one[] = {entry};
  Latencies l;
  for (Seq i = 0; i < 500; ++i) {
    pause(pause_seconds);
    double begin = seconds();
    CHECK(journal->append(one, i));
    l.us.push_back((seconds() - begin) * 1e6);
  }
  return l.p(50);
}

std::unique_ptr<Shard> open_shard(const std::string& path, std::vector<const Program*> programs,
                                  size_t cache_bytes, size_t family_cells) {
  auto journal = *open_journal({.backend = "file", .folder = path + "/journal"});
  auto rows = *open_rows({.backend = "rocksdb", .folder = path + "/rows"});
  ShardOptions options;
  options.cache_bytes = cache_bytes;
  options.family_cells = family_cells;
  auto shard = Shard::open(std::move(journal), std::move(rows), std::move(programs), options);
  CHECK(shard);
  return std::move(*shard);
}

// The submitters are divided between the shards.
static double turns_of(const std::vector<Shard*>& shards, std::function<Input(uint64_t)> make,
                       size_t submitters, double for_seconds) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> next{0}, done{0};
  std::atomic<size_t> running{submitters};
  // Each submitter sends its next input when the answer to the last one has come.
  struct Chain {
    static void go(Shard& shard, std::function<Input(uint64_t)>& make, std::atomic<bool>& stop,
                   std::atomic<uint64_t>& next, std::atomic<uint64_t>& done,
                   std::atomic<size_t>& running) {
      shard.submit(make(next++), [&](Result<Answer> a) {
        CHECK(a);
        ++done;
        // The chain ends after its last answer, so that no reply uses the counters after this
        // function.
        if (stop)
          --running;
        else
          go(shard, make, stop, next, done, running);
      });
    }
  };
  double begin = seconds();
  for (size_t i = 0; i < submitters; ++i)
    Chain::go(*shards[i % shards.size()], make, stop, next, done, running);
  std::this_thread::sleep_for(std::chrono::duration<double>(for_seconds));
  uint64_t count = done;
  double took = seconds() - begin;
  stop = true;
  while (running)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return static_cast<double>(count) / took;
}

double turns_per_second(Shard& shard, std::function<Input(uint64_t)> make, size_t submitters,
                        double for_seconds) {
  return turns_of(std::vector<Shard*>{&shard}, std::move(make), submitters, for_seconds);
}

// Memory, a start after a clean stop, and a start without rows, on one folder with a million cells.
void bench_recovery(Report& report, Facts&) {
  Put put;
  static constexpr uint64_t kCells = 1'000'000;
  Folder folder("cells");
  size_t before = 0;
  {
    // Half of the cells fill the cache; the memory of the rest is measured.
    auto shard = open_shard(folder.path(), {&put}, 128u << 20);
    CHECK(shard->start());
    auto make = [](uint64_t i) {
      return Input{.program = "put",
                   .verb = "put",
                   .body = std::string(100, 'v'),
                   .caller = {"t", "cell" + std::to_string(i), ""}};
    };
    // The measurement starts with full caches and memtables.
    std::atomic<uint64_t> left{0};
    auto fill = [&](uint64_t from, uint64_t to) {
      for (uint64_t i = from; i < to; ++i) {
        while (left > 20000)
          std::this_thread::yield();
        ++left;
        shard->submit(make(i), [&](Result<Answer>) { --left; });
      }
      while (left)
        std::this_thread::yield();
    };
    fill(0, kCells / 2);
    before = resident_bytes();
    fill(kCells / 2, kCells);
    size_t after = resident_bytes();
    double each = after > before ? static_cast<double>(after - before) / (kCells / 2) : 0;
    report.bar({"resident memory for each idle cell", each, 200, false, "bytes"});
    shard->stop();
  }
  {
    double begin = seconds();
    auto shard = open_shard(folder.path(), {&put});
    CHECK(shard->start());
    report.bar({"start after a clean stop with 1,000,000 cells", seconds() - begin, 2, false, "s"});
    shard->stop();
  }
  std::filesystem::remove_all(folder.path() + "/rows");
  double begin = seconds(), cpu = cpu_seconds();
  auto shard = open_shard(folder.path(), {&put});
  double took = seconds() - begin;
  report.line("CPU of the replay a frame",
              (cpu_seconds() - cpu) * 1e6 / static_cast<double>(shard->replayed().frames), "us");
  report.bar({"replay without any rows", static_cast<double>(shard->replayed().frames) / took,
              500'000, true, "frames/s"});
}

// Turns of 8 shards whose loops share threads, by the same 64 submitters.
static double turns_of_8_shards(const Put& put, const std::function<Input(uint64_t)>& make,
                                double for_seconds) {
  constexpr size_t kShards = 8;
  Folder folder("shards");
  PooledLoops loops(4 + 2 * std::thread::hardware_concurrency());
  auto memory = make_rows_memory(64u << 20, kShards);
  std::vector<std::unique_ptr<Shard>> shards;
  std::vector<Shard*> started;
  for (size_t i = 0; i < kShards; ++i) {
    const std::string path = folder.path() + "/" + std::to_string(i);
    auto journal = *open_journal({.backend = "file", .folder = path + "/journal"});
    auto rows = *open_rows({.backend = "rocksdb", .folder = path + "/rows", .memory = memory});
    ShardOptions options;
    options.scheduler = &loops;
    options.cache_bytes = (64u << 20) / kShards;
    auto shard = Shard::open(std::move(journal), std::move(rows), {&put}, options);
    CHECK(shard && (*shard)->start());
    shards.push_back(std::move(*shard));
    started.push_back(shards.back().get());
  }
  const double rate = turns_of(started, make, 64, for_seconds);
  for (const auto& shard : shards)
    shard->stop();
  return rate;
}

void bench_kernel(Report& report, Facts& facts) {
  Put put;
  facts.append_us = raw_append_us();
  report.line("one raw synchronous append, p50", facts.append_us, "us");
  auto make = [](uint64_t i) {
    return Input{.program = "put",
                 .verb = "put",
                 .body = std::string(kRecord, 'v'),
                 .caller = {"t", "c" + std::to_string(i % 64), ""}};
  };
  // The runs alternate, because the speed of the disk changes from minute to minute.
  double raw = 0, turns = 0, of_8 = 0;
  for (int round = 0; round < 3; ++round) {
    raw += raw_appends(1.5) / 3;
    Folder folder("turns");
    auto shard = open_shard(folder.path(), {&put});
    CHECK(shard->start());
    double cpu = cpu_seconds();
    double rate = turns_per_second(*shard, make, 64, 1.5);
    turns += rate / 3;
    if (round == 2)
      report.line("CPU of a turn, all threads", (cpu_seconds() - cpu) * 1e6 / (rate * 1.5), "us");
    shard->stop();
    of_8 += turns_of_8_shards(put, make, 1.5) / 3;
  }
  facts.kernel_turns = turns;
  report.line("raw grouped appends of the same bytes", raw, "/s");
  report.line("kernel turns, in process, 64 submitters", turns, "/s");
  report.bar({"kernel turns / raw grouped appends", turns / raw, 1.0 / 3, true, ""});
  report.line("kernel turns of 8 shards, the same submitters", of_8, "/s");
  report.bar({"kernel turns, 8 shards / 1 shard", of_8 / turns, 0.9, true, ""});
}

}  // namespace pawl::bench
