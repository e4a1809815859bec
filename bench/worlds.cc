// Worlds in process, with a durable journal: the speed of events compared with the bare kernel, and
// costs that must not grow with the number of cells.

#include "faces/worlds/program.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <semaphore>
#include <sstream>

#include "bench/scenario.h"
#include "cbor/in.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"
#include "kernel/verify.h"
#include "storage/memory/memory.h"
#include "storage/open.h"
#include "wasm/host.h"

namespace pawl::bench {

namespace {

using namespace worlds;

constexpr size_t kSubmitters = 64;
// Scenarios with 10,000 cells keep all of them in memory, like a server with --workflow-cells
// 16384: they measure the cost of an event. The scenario with 1,000,000 cells uses the default of
// 4,096.
constexpr size_t kWorkflowCells = 16'384;

// Adds `inc` to a counter, like the module counter.wasm, but in C++.
class Counter final : public NativeModule {
 public:
  Result<Bytes> step(std::string_view, BytesView input) const override {
    TRY(StepInput in, decode_input(input));
    const uint64_t count = cbor::In(follow(in.event.value, inc_)).head().n +
                           (in.state ? cbor::In(follow(*in.state, count_)).head().n : 0);
    Bytes state(cbor::kSelfDescribed);
    cbor::Out(state).map(1).text("count").uint(count);
    return encode_output({std::move(state), {}, {}, {}, false});
  }

 private:
  const std::vector<std::string> inc_{"inc"}, count_{"count"};
};

// A world with one keyed workflow. `artifact` adds the hash of a WASM module; without it the module
// is native.
std::string counter_air(std::string_view artifact) {
  return fmt::format(
      R"([{{"$kind":"defschema","name":"b/Inc@1","type":{{"record":{{"cell":{{"text":{{}}}},"inc":{{"nat":{{}}}}}}}}}},
    {{"$kind":"defschema","name":"b/State@1","type":{{"record":{{"count":{{"nat":{{}}}}}}}}}},
    {{"$kind":"defschema","name":"b/Cell@1","type":{{"text":{{}}}}}},
    {{"$kind":"defmodule","name":"b/counter@1","runtime":{{"kind":"wasm","artifact":{{"kind":"wasm_module"{}}}}}}},
    {{"$kind":"defworkflow","name":"b/count@1","state":"b/State@1","event":"b/Inc@1","key_schema":"b/Cell@1","effects_emitted":[],
      "impl":{{"module":"b/counter@1","entrypoint":"step"}}}},
    {{"$kind":"manifest","air_version":"2","schemas":[{{"name":"b/Inc@1"}},{{"name":"b/State@1"}},{{"name":"b/Cell@1"}}],
      "modules":[{{"name":"b/counter@1"}}],"workflows":[{{"name":"b/count@1"}}],"effects":[],
      "routing":{{"subscriptions":[{{"event":"b/Inc@1","workflow":"b/count@1","key_field":"cell"}}]}}}}])",
      artifact);
}

Event inc(uint64_t cell) {
  return {"b/Inc@1",
          cbor::canonical(cbor::Map{{"cell", fmt::format("cell-{:07}", cell)}, {"inc", 1}}),
          {}};
}

// One world on a shard of its own.
class Bed {
 public:
  explicit Bed(const std::string& folder, size_t workflow_cells = ShardOptions().family_cells,
               wasm::Runner* runner = nullptr, BytesView wasm = {})
      : modules_(runner) {
    if (wasm.empty()) modules_.add("b/counter@1", std::make_unique<Counter>());
    program_ = std::make_unique<WorldsProgram>(modules_);
    shard_ = open_shard(folder, {program_.get()}, 0, workflow_cells);
    CHECK(shard_->start());
    std::string artifact;
    if (!wasm.empty()) {
      artifact = fmt::format(R"(,"hash":"{}")", hash_text(sha256(wasm)));
      say("put_blob", Bytes(wasm));
    }
    auto air = author(*json::parse(counter_air(artifact)), program_->builtins(), {});
    CHECK(air);
    say("create", encode(CreateWorld{"w", encode_bundle(air->manifest, air->nodes), {}, true, {}}));
  }
  ~Bed() { close(); }

  static Input input(std::string verb, Bytes body) {
    return {.program = std::string(kProgram),
            .verb = std::move(verb),
            .body = std::move(body),
            .caller = {"t", "u", ""}};
  }
  // Waiting sleeps, because processor time is measured.
  Answer say(std::string verb, Bytes body) {
    auto done = std::make_shared<std::promise<Answer>>();
    shard_->submit(input(std::move(verb), std::move(body)), [done](Result<Answer> a) {
      CHECK(a);
      done->set_value(std::move(*a));
    });
    return done->get_future().get();
  }
  // Sends events to `cells` cells in pseudo-random order. The next call continues the order.
  double events_per_second(uint64_t cells, double for_seconds) {
    const uint64_t from = sent_;
    return turns_per_second(
        *shard_,
        [=, this](uint64_t i) {
          sent_ = from + i;
          return input("event",
                       encode(SendEvent{"w", inc((from + i) * 0x9e3779b97f4a7c15 % cells), 0}));
        },
        kSubmitters, for_seconds);
  }
  // Sends one event to each of these cells, in batches.
  void touch(uint64_t from, uint64_t to) {
    constexpr std::ptrdiff_t kAhead = 16;
    std::counting_semaphore<kAhead> room(kAhead);
    for (uint64_t at = from; at < to;) {
      SendEvents batch{"w", {}};
      for (; at < to && batch.events.size() < kBatchEvents; ++at)
        batch.events.push_back(inc(at));
      room.acquire();
      shard_->submit(input("events", encode(batch)), [&](Result<Answer> a) {
        CHECK(a);
        room.release();
      });
    }
    for (std::ptrdiff_t i = 0; i < kAhead; ++i)
      room.acquire();
  }
  // Processor time of a snapshot.
  double snapshot_seconds() {
    const double begin = cpu_seconds();
    say("snapshot", "w");
    return cpu_seconds() - begin;
  }
  Shard& shard() { return *shard_; }
  const WorldsProgram& program() const { return *program_; }
  void close() {
    if (shard_) shard_->stop();
    shard_.reset();
  }

 private:
  Modules modules_;
  std::unique_ptr<WorldsProgram> program_;
  std::unique_ptr<Shard> shard_;
  std::atomic<uint64_t> sent_ = 0;
};

struct Rate {
  double per_second = 0, cpu_us = 0;
};
Rate measured(Bed& bed, uint64_t cells, double for_seconds) {
  const double cpu = cpu_seconds();
  const double rate = bed.events_per_second(cells, for_seconds);
  return {rate, (cpu_seconds() - cpu) * 1e6 / (rate * for_seconds)};
}

// Replays the journal of a stopped world: first the recorded outcomes into rows, then every step
// again.
struct Again {
  Rate replayed, rerun;
};
Again again(const std::string& folder, const WorldsProgram& program) {
  std::filesystem::remove_all(folder + "/rows");
  Again out;
  auto rate = [](double frames, double began, double cpu) {
    return Rate{frames / (seconds() - began), (cpu_seconds() - cpu) * 1e6 / frames};
  };
  {
    const double begin = seconds(), cpu = cpu_seconds();
    auto shard = open_shard(folder, {&program});
    out.replayed = rate(static_cast<double>(shard->replayed().frames), begin, cpu);
  }
  auto journal = *open_journal({.backend = "file", .folder = folder + "/journal"});
  MemoryRows scratch;
  const Program* programs[] = {&program};
  const double begin = seconds(), cpu = cpu_seconds();
  auto verified = verify(*journal, scratch, programs);
  CHECK(verified && verified->difference.empty());
  out.rerun = rate(static_cast<double>(verified->rerun), begin, cpu);
  return out;
}

void report_again(Report& report, const Again& a, const Rate& live) {
  report.line("replay from outcomes, without any rows", a.replayed.per_second, "frames/s");
  report.line("CPU of it, all threads", a.replayed.cpu_us, "us a frame");
  report.line("replay from outcomes / live events", a.replayed.per_second / live.per_second, "");
  report.line("re-execution (verify)", a.rerun.per_second, "frames/s");
  report.line("CPU of it", a.rerun.cpu_us, "us a frame");
  report.line("re-execution / live events", a.rerun.per_second / live.per_second, "");
}

void bench_native(Report& report, const Facts& facts) {
  Folder folder("worlds");
  Bed bed(folder.path(), kWorkflowCells);
  bed.touch(0, 10'000);
  let_settle();
  const Rate live = measured(bed, 10'000, 3);
  report.line("events, keyed native workflow, 10,000 cells, 64 submitters", live.per_second, "/s");
  report.line("CPU of an event, all threads", live.cpu_us, "us");
  report.bar({"native events / kernel turns", live.per_second / facts.kernel_turns, 0.6, true, ""});
  bed.close();
  report_again(report, again(folder.path(), bed.program()), live);
}

// The bars for replay and re-execution apply to a WASM module, because worlds are made of those.
void bench_wasm(Report& report) {
  wasm::Host host({wasm::usual_libraries(), {}});
  std::ifstream in("tests/vectors/worlds/modules/counter.wasm", std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  if (host.version().empty() || bytes.str().empty()) {
    fmt::print(
        "  no WASM engine or no tests/vectors/worlds/modules/counter.wasm here: not measured; run "
        "scripts/setup-wasm\n");
    return;
  }
  Folder folder("worlds-wasm");
  Bed bed(folder.path(), kWorkflowCells, &host, bytes.str());
  bed.touch(0, 10'000);
  let_settle();
  const Rate live = measured(bed, 10'000, 3);
  report.line("events, keyed WASM counter, 10,000 cells, 64 submitters", live.per_second, "/s");
  report.bar(
      {"the same for each second of CPU of all threads", 1e6 / live.cpu_us, 30'000, true, "/s"});
  bed.close();
  const Again a = again(folder.path(), bed.program());
  report_again(report, a, live);
  report.bar({"WASM: replay from outcomes / live events", a.replayed.per_second / live.per_second,
              10, true, ""});
  report.bar(
      {"WASM: re-execution / live events", a.rerun.per_second / live.per_second, 1, true, ""});
}

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

void bench_worlds(Report& report, Facts& facts) {
  if (facts.kernel_turns == 0) bench_kernel(report, facts);
  bench_native(report, facts);
  bench_wasm(report);
}

// Both worlds get 1,000,000 events, so that their journals and rows are equally long. They differ
// in the number of cells.
void bench_world_cells(Report& report, Facts&) {
  constexpr uint64_t kEvents = 1'000'000, kFew = 1000;
  auto steps = [](Bed& bed, uint64_t cells) {
    let_settle();
    bed.events_per_second(cells, 2);  // warms caches and rows
    return measured(bed, cells, 4);
  };
  double one = 0, ten = 0;
  Rate many;
  {
    Folder folder("worlds-cells");
    const size_t before = resident_bytes();
    const double begin = seconds();
    Bed bed(folder.path());
    bed.touch(0, kEvents);
    const double whole = bed.snapshot_seconds();
    report.line("1,000,000 new cells and a snapshot of them, all in all", seconds() - begin, "s");
    report.line("the snapshot's CPU a changed cell", whole * 1e6 / kEvents, "us");
    const size_t after = resident_bytes();
    report.bar({"resident memory with 1,000,000 cells", mebibytes(after - std::min(before, after)),
                1024, false, "MiB"});
    many = steps(bed, kEvents);
    bed.snapshot_seconds();
    let_settle();
    bed.touch(0, 1000);
    one = bed.snapshot_seconds();
    bed.touch(0, 10'000);
    ten = bed.snapshot_seconds();
  }
  Folder folder("worlds-few");
  Bed bed(folder.path());
  for (uint64_t done = 0; done < kEvents; done += kFew)
    bed.touch(0, kFew);
  const Rate few = steps(bed, kFew);
  bed.touch(0, 10'000);
  bed.snapshot_seconds();
  bed.touch(0, 1000);
  const double small_world = bed.snapshot_seconds();
  report.line("CPU of a step with 1,000 cells", few.cpu_us, "us");
  report.line("CPU of a step with 1,000,000 cells", many.cpu_us, "us");
  report.bar(
      {"step with 1,000,000 cells / step with 1,000", many.cpu_us / few.cpu_us, 1.3, false, ""});
  report.line("CPU of a snapshot, 1,000 changed of 10,000 cells", small_world * 1000, "ms");
  report.line("CPU of a snapshot, 1,000 changed of 1,000,000 cells", one * 1000, "ms");
  report.line("CPU of a snapshot, 10,000 changed of 1,000,000 cells", ten * 1000, "ms");
  report.bar({"snapshot of a changed cell, 1,000,000 cells / 10,000 cells", one / small_world, 4,
              false, ""});
  report.bar({"snapshot, ten times the changed cells", ten / one, 12, false, ""});
}

}  // namespace pawl::bench
