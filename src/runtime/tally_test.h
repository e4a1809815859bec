#pragma once
// A shard with a small program, its clock and its workers, on memory stores.

#include <gtest/gtest.h>

#include <future>

#include "runtime/clock.h"
#include "runtime/shard.h"
#include "runtime/workers.h"
#include "storage/memory/memory.h"

namespace pawl {

// Counts in the cell named by the body. "later:MS:NAME" adds one after MS milliseconds, "job:NAME"
// opens an effect to a worker ("job of SIZE" one with so large a body), and a receipt adds ten.
class Tally final : public Program {
 public:
  std::string_view name() const override { return "tally"; }
  BytesView family(BytesView key) const override {
    return key.starts_with(pawl::key({"tally", "kin"})) ? key.substr(0, 9) : BytesView();
  }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    std::string name = input.settles.empty() ? input.body : input.settles;
    if (input.verb == "later" || input.verb == "job" || input.verb == "send") {
      Time due = input.verb == "later" ? turn.now() + 20 * kMillisecond : 0;
      To to = input.verb == "later" ? To::clock : input.verb == "job" ? To::worker : To::cell;
      turn.open({name, to, "tally", "t", "work", due, name});
      return Bytes();
    }
    if (input.verb.starts_with("job of ")) {
      const size_t size = std::stoul(input.verb.substr(7));
      turn.open({name, To::worker, "tally", "t", "work", 0, Bytes(size, 'x')});
      return Bytes();
    }
    if (input.verb == "ask") {
      turn.ask({name, To::member, "tally", "t", "m", 0, ""});
      return Bytes();
    }
    if (name == "shy") {
      TRY(Cell kernel, turn.read(key({"tally", "door"})));
      if (!kernel.exists()) return fail(Code::unavailable, "SHUT", "the door is shut");
    }
    TRY(Cell cell, turn.read(key({"tally", name})));
    int64_t n = cell.exists() ? std::stoll(std::string(cell.value())) : 0;
    n += input.settles.empty() ? 1 : 10;
    turn.write(key({"tally", name}), std::to_string(n));
    return std::to_string(n);
  }
};

struct Host {
  Tally tally;
  MemoryJournal* journal;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<Workers> workers;

  explicit Host(bool started = true, ShardOptions options = {}) {
    auto j = std::make_unique<MemoryJournal>();
    journal = j.get();
    shard =
        *Shard::open(std::move(j), std::make_unique<MemoryRows>(), {&tally}, std::move(options));
    clock = std::make_unique<Clock>(*shard, shard->scheduler());
    workers = std::make_unique<Workers>(*shard, shard->scheduler());
    shard->connect(To::clock, *clock);
    shard->connect(To::worker, *workers);
    if (started) start();
  }
  void start() {
    clock->start();
    workers->start();
    CHECK(shard->start());
  }
  ~Host() {
    workers->stop();
    clock->stop();
    shard->stop();
  }
  Result<Answer> say(std::string verb, std::string body, std::string settles = {}) {
    auto promise = std::make_shared<std::promise<Result<Answer>>>();
    auto future = promise->get_future();
    Input input{.program = "tally",
                .verb = std::move(verb),
                .body = std::move(body),
                .caller = {"t", "u", ""}};
    input.settles = std::move(settles);
    shard->submit(std::move(input),
                  [promise](Result<Answer> a) { promise->set_value(std::move(a)); });
    if (future.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
      return fail(Code::unavailable, "SILENT", "");
    return future.get();
  }
  std::string value(const std::string& name) {
    return std::string(shard->read(key({"tally", name}))->value());
  }
  bool becomes(const std::string& name, const std::string& want) {
    for (int i = 0; i < 2000; ++i) {
      if (value(name) == want) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  std::vector<Leased> poll(size_t limit, Time wait = 0, Time lease = 30 * kSecond,
                           std::vector<std::string> queues = {"work"}) {
    auto promise = std::make_shared<std::promise<std::vector<Leased>>>();
    auto future = promise->get_future();
    workers->poll({"t", std::move(queues), "w", limit, lease, wait, "tally"},
                  [promise](std::vector<Leased> got) { promise->set_value(std::move(got)); });
    return future.get();
  }
};

inline Input count(const std::string& name) {
  return {.program = "tally", .verb = "add", .body = name, .caller = {"t", "u", ""}};
}

}  // namespace pawl
