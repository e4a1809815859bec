#pragma once
// A kernel driven by hand on memory stores: what the tests of this folder stand on.

#include "kernel/commit.h"
#include "kernel/kernel.h"
#include "kernel/replay.h"
#include "kernel/verify.h"
#include "storage/memory/memory.h"

namespace pawl {

// Verbs of the counter: "add" (body a number) on the cell named by the caller's user; and words for
// everything else a turn can do.
class Counter final : public Program {
 public:
  std::string_view name() const override { return "counter"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override {
    for (const Change& c : frame.changes) {
      if (c.before.exists()) rows.erase(Bytes(c.before.value()) + "/" + Bytes(c.key));
      if (c.after.exists()) rows.put(Bytes(c.after.value()) + "/" + Bytes(c.key), "");
    }
  }
  bool keeps_history(BytesView) const override { return true; }
  bool conflicts_after_begin(BytesView cell) const override {
    return cell == key({"counter", "snap"});
  }
  bool accepts_stale_read(Turn&, BytesView cell, const Cell&, const Cell&) const override {
    return cell == key({"counter", "rule"});
  }
};

struct TestKernel {
  MemoryJournal journal;
  MemoryRows rows;
  Counter counter;
  std::vector<const Program*> programs{&counter};
  CellCache cache{rows, 1 << 20};
  std::unique_ptr<Kernel> kernel = std::make_unique<Kernel>(
      cache, [this] { return snapshot(); }, programs, 0);
  std::unique_ptr<Committer> committer =
      std::make_unique<Committer>(journal, rows, cache, Digest{});
  std::vector<Effect> sent;
  std::vector<std::string> back;
  Time now = kSecond;
  uint64_t dice = 1;

  Input input(std::string verb, Bytes body, std::string user = "a") {
    return Input{.program = "counter",
                 .verb = std::move(verb),
                 .body = std::move(body),
                 .caller = {"t", std::move(user), ""},
                 .stamp = {0, {dice++, 7}}};
  }
  Input receipt(std::string effect, Bytes body) {
    Input in = input("receipt", std::move(body));
    in.settles = std::move(effect);
    return in;
  }
  // Runs and commits; the answer is what the caller hears.
  Result<Answer> say(Input in) {
    std::optional<Result<Answer>> heard;
    submit(std::move(in), &heard);
    flush();
    if (!heard) return fail(Code::unavailable, "SILENT", "no answer yet");
    return std::move(*heard);
  }
  void submit(Input in, std::optional<Result<Answer>>* heard) {
    kernel->tick(now += kMillisecond);
    kernel->run(std::move(in), [heard](Result<Answer> a) {
      if (heard) heard->emplace(std::move(a));
    });
  }
  void flush() {
    Group group = kernel->take();
    std::span one(&group, 1);
    CHECK(committer->append(one));
    committer->publish(one);
    for (auto& moved : group.moved) {
      if (moved.opened)
        sent.push_back(*moved.effect);
      else
        back.push_back(moved.effect->id);
    }
    for (auto& [reply, answer] : group.answers)
      reply(std::move(answer));
  }
  ReadSnapshot snapshot() {
    CHECK(committer->apply());
    return ReadSnapshot(rows.snapshot());
  }
  std::string value(const std::string& name) {
    auto cell = kernel->current(key({"counter", name}));
    return std::string(cell->value());
  }
  // The whole journal run again; what came out otherwise.
  Verified rerun() {
    MemoryRows scratch;
    auto verified = verify(journal, scratch, programs);
    CHECK(verified);
    return *std::move(verified);
  }
};

}  // namespace pawl
