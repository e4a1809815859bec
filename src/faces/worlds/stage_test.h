#pragma once
// A stage for worlds: a kernel on memory stores and the worlds program with scripted native
// modules. Inputs are answered at once. Effects are collected; those to cells are delivered.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/face.h"
#include "faces/worlds/store/world_journal.h"
#include "json/text.h"
#include "kernel/commit.h"
#include "kernel/kernel.h"
#include "kernel/replay.h"
#include "kernel/rows_layout.h"
#include "kernel/verify.h"
#include "storage/memory/memory.h"

namespace pawl::worlds {

// Does what the event says. Bytes in `out` become its output as they are. Without them, the event's
// `word` or its tag is appended to the log in the state; the word "ctx" appends the context.
class Scripted final : public NativeModule {
 public:
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override;
};

// The module of the vectors, in C++: states are bare bytes.
class VectorScript final : public NativeModule {
 public:
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override;
};

// The program with one more verb, "lab": code of a test that runs inside a turn.
class Lab final : public Program {
 public:
  explicit Lab(const Modules& modules) : worlds(modules) {}
  std::string_view name() const override { return worlds.name(); }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    return input.verb == "lab" ? experiment(turn) : worlds.run(turn, input);
  }
  void view(const Committed& frame, ViewRows& rows) const override { worlds.view(frame, rows); }
  WorldsProgram worlds;
  std::function<Result<Bytes>(Turn&)> experiment;
};

struct Stage final : KernelAccess, WorkQueue {
  // With `scripts` false every module is WASM.
  explicit Stage(wasm::Runner* runner = nullptr, bool scripts = true);

  // KernelAccess
  void submit(Input input, Reply reply) override;
  Result<Cell> read(BytesView key) const override { return snapshot().read(key); }
  ReadSnapshot snapshot() const override {
    std::lock_guard lock(mutex_);
    CHECK(committer->apply());
    return ReadSnapshot(rows.snapshot());
  }
  Seq durable() const override { return journal.last(); }
  Result<void> frames(Seq, const std::function<Result<bool>(const Frame&)>&) const override {
    return {};
  }
  uint64_t watch(Watcher) override { return 0; }
  void unwatch(uint64_t) override {}
  Time now() const override { return clock; }
  // WorkQueue: answers at once with all open work of the queues that is not leased.
  uint64_t poll(Poll poll, Polled done) override;
  void cancel(uint64_t) override {}
  void give_up(uint64_t) override {}
  void release(std::string_view) override {}
  void pause(std::string_view, std::string_view, std::string_view, bool) override {}
  std::vector<Depth> depths() const override { return {}; }

  // Sends verbs as the service does; returns the answer as JSON.
  Result<json::Value> say(std::string verb, Bytes body, std::string settles = {});
  Result<json::Value> create(const std::string& world, const json::Value& air,
                             AuthorOptions options = {}, bool check_state = true);
  Result<json::Value> send(const std::string& world, const std::string& schema,
                           const cbor::Value& value, std::optional<Bytes> key = {});
  Result<json::Value> settle(const std::string& world, BytesView intent, const cbor::Value& payload,
                             std::string status = "ok");
  Result<json::Value> govern(const std::string& world, Govern g);
  // Calls an HTTP route.
  wire::Response http(std::string method, std::string path, std::string body = {},
                      wire::Headers headers = {});
  Result<Bytes> lab(std::function<Result<Bytes>(Turn&)> experiment);

  Instance cell(const std::string& world, const std::string& workflow, BytesView key) const;
  std::vector<std::string> log(const std::string& world, const std::string& workflow,
                               BytesView key) const;
  WorldHead head(const std::string& world) const;
  std::vector<cbor::Value> records(const std::string& world) const;
  std::vector<std::string> kinds(const std::string& world) const;
  std::vector<PendingIntent> pending(const std::string& world) const;
  // All cells of a world, without the marks for the next snapshot. Equal worlds give equal bytes.
  Bytes dump(const std::string& world) const;
  // Runs the journal again from its beginning, on other rows. Both runs must agree.
  Verified verify_all() const;

  MemoryJournal journal;
  MemoryRows rows;
  Modules modules;  // scripted ones, and WASM when there is a runner
  std::unique_ptr<Lab> program;
  static constexpr size_t kCacheBytes = 1 << 22;
  static constexpr size_t kWorkflowCells = 100, kPackedBytes = 16 << 20;
  CellCache cache{rows,
                  kCacheBytes,
                  {kWorkflowCells, cell_family},
                  {kPackedBytes, [](BytesView key) { return !is_read_again(key); }}};
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Committer> committer;
  BackgroundThreads background;
  std::unique_ptr<Face> face;
  std::map<std::string, EffectPtr> open;  // not to cells
  std::map<std::string, Time> leases;     // until when
  Time clock = 1'000 * kSecond;
  uint64_t dice = 1;
  // Effects to cells. With `holds` they are kept in `held`, and deliver_next() sends the oldest
  // one; otherwise they are delivered at once.
  bool holds = false;
  std::deque<std::string> held;
  void deliver_next();

 private:
  void flush();
  void run_held();
  // Threads of gRPC call as well, and an answer may submit the next input.
  mutable std::recursive_mutex mutex_;
};

json::Value vector_file(const std::string& name);
json::Value test_air();
// Canonical {log: [...]}.
Bytes state_of(std::vector<std::string> log);
// A value of t/Do@1 and similar schemas: the cell's id, and the output that its step gives.
cbor::Value tell(const std::string& id, const std::optional<StepOutput>& out = {});
Bytes key_of(const std::string& id);
StepOutput output(std::vector<std::string> log, std::vector<EmittedEffect> effects = {},
                  std::vector<Event> events = {});
EmittedEffect timer(uint64_t at, std::optional<Bytes> key = {});
Event event_to(const std::string& schema, const std::string& id,
               const std::optional<StepOutput>& out = {});

// Calls the HTTP routes as a client does.
struct Served : testing::Test {
  json::Value get(const std::string& path, int status = 200) {
    return call("GET", path, {}, status);
  }
  json::Value post(const std::string& path, const std::string& body, int status) {
    return call("POST", path, body, status);
  }
  json::Value call(const std::string& method, const std::string& path, const std::string& body,
                   int status) {
    auto r = stage.http(method, path, body);
    EXPECT_EQ(r.status, status) << method << " " << path << ": " << r.body;
    auto parsed = json::parse(r.body);
    return parsed ? *parsed : json::Value();
  }
  void make() {
    post("/v1/worlds", R"({"world_id":"w","air":)" + json::print(test_air()) + "}", 201);
  }
  json::Value event(const std::string& id, const std::string& more = {}) {
    return post("/v1/worlds/w/events",
                R"({"schema":"t/Do@1","value":{"id":")" + id + "\"" + more + "}}", 202);
  }
  json::Value event_with(const std::string& id, const StepOutput& out) {
    return event(id, R"(,"out":")" + base64(encode_output(out)) + "\"");
  }
  Stage stage;
};

}  // namespace pawl::worlds
